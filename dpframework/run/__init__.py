"""The only way out, through the scope of a plan's releases, the gate that draws them, and the miner that asks."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
