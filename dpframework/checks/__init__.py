"""Checks: the questions that an auditor asks about a plan. Each has a code, such as DP001, and a documentation page."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
