"""Reports for people on a plan, on the findings about it, and on the releases of its run.

Pages for a browser are in `dpframework.reports.html`, which who does not write one need not import.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
