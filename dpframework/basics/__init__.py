"""The everyday miners.

They release counts, tables of counts, marginals, sums, means, variances, quantiles, shares, frequent values, keys of
open attributes, bounds, grids, and how many rows per unit are enough.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
