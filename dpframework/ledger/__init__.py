"""The ledger: a durable record of plans, approvals and charges. It holds no data."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
