"""The everyday miners for counts, histograms, cross tables, sums, means and quantiles."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
