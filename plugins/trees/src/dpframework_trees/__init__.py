"""Trees and additive models for dpframework: miners, mechanisms, and estimators for scikit-learn.

The miners are DP-ID3, trees sampled as a whole, additive models, a classifier that chooses between an additive model
and a sampled tree, and redescriptions from pairs of trees.
"""

from __future__ import annotations

from typing import Any

import lazy_loader

from dpframework.facts import needing_scikit_learn
from dpframework_trees.hooks import dpframework_mechanisms, dpframework_miners  # noqa: F401 (pluggy finds them here)

# The stub's `__dir__` is left out, since pluggy would import every name to see whether it is a hook.
_import_name, _, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    with needing_scikit_learn(name):
        return _import_name(name)
