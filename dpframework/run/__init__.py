"""Runs of plans, with the miners that ask for releases, the scopes that allow them, and the gate that makes them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
