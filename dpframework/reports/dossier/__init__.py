"""The dossier of a study for a review board, and its entry for the public registry of deployments."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
