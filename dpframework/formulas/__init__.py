"""Formulas that score candidates: their values, compiled code, sensitivities, and proofs of these sensitivities."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
