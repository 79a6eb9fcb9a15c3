"""Serenade, greedy redescription mining for dpframework."""

import lazy_loader

from dpframework_greedy.hooks import dpframework_mechanisms, dpframework_miners  # noqa: F401 (pluggy finds them here)

# The stub's `__dir__` is left out, since pluggy would import every name to see whether it is a hook.
__getattr__, _, __all__ = lazy_loader.attach_stub(__name__, __file__)
