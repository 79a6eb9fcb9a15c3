"""Studies, which have one table, one budget and several miners. Study files and the registry of plugins are here."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
