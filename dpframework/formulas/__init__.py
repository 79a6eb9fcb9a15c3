"""Formulas of scores: their values, their kernels, their sensitivities, and the proofs of these."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
