"""Results of miners, namely noisy numbers and tables of them, with their text, plots and files."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
