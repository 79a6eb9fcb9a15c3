"""The ledger, the durable record of the plans, approvals and charges of a data set. It holds no data."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
