"""Results of miners: noisy numbers and tables of noisy numbers, which can be printed, plotted and stored."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
