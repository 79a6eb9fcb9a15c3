"""Checks, an auditor's questions about a plan, each with a code and a documentation page."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
