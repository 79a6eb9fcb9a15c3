"""The changes between two plans, in words and as a merged tree to draw."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
