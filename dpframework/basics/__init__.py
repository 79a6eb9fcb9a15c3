"""The everyday miners, such as counts, sums and medians.

They release counts, tables of counts, marginals, sums, means, variances, quantiles, shares and frequent values. Others
find keys of open attributes, bounds, grids, and the number of rows per unit that is enough.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
