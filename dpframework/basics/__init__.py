"""The everyday miners: counts and their tables, sums, means, quantiles, shares, frequent values, bounds and grids."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
