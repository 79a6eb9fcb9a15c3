"""A study has one table, one budget and several miners. Here are its file and the registry of plugins, too."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
