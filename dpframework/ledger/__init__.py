"""The ledger: the durable record of what was planned, approved and spent on a data set; never data."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
