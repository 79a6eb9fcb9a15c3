"""Mechanisms, which turn a query's exact answer into a release, and the randomness that they draw from."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
