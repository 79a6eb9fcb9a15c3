"""Serenade, greedy redescription mining for dpframework."""

import lazy_loader

from dpframework_greedy.hooks import dpframework_mechanisms, dpframework_miners  # noqa: F401 (pluggy finds them here)

# without the stub's `__dir__`: pluggy would import every name to see whether it is a hook
__getattr__, _, __all__ = lazy_loader.attach_stub(__name__, __file__)
