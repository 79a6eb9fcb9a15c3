"""Accountants, notions of privacy loss that total a plan and charge a run by the same rules."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
