"""Synthetic tables for dpframework."""

import lazy_loader

from dpframework_tables.hooks import dpframework_miners  # noqa: F401 (pluggy finds hooks in the package)

# without the stub's `__dir__`: pluggy would import every name to see whether it is a hook
__getattr__, _, __all__ = lazy_loader.attach_stub(__name__, __file__)
