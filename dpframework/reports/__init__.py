"""Reports for people on a plan, on the findings about it, and on the releases of its run.

Pages for a browser are made by `dpframework.reports.html`. It is not imported here, since only pages need a template
engine.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
