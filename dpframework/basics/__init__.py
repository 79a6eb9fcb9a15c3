"""The everyday miners, such as counts, sums and medians.

They release counts, tables of counts, marginals, sums, means, variances, quantiles, shares and frequent values. Others
find values that the schema does not list, bounds of an attribute, or the number of rows per privacy unit that is enough
for most units. One counts in a grid with smaller cells where there are more rows.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
