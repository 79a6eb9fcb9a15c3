"""Redescriptions (pairs of descriptions that hold for nearly the same rows), and what miners need to find them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
