"""A study: one table, one budget, several miners; its file, and the registry of what plugins bring."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
