"""Accountants. Each totals a plan and charges its run by the same rules, in one notion of privacy loss."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
