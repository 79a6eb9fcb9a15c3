"""What comes out: noisy numbers, redescriptions, and how they are printed, plotted and kept."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
