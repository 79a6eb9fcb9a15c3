"""Studies: several miners that share one table and one budget. Also study files and the registry of plugins."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
