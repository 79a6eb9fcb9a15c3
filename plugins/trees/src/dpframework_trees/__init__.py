"""Decision trees for dpframework: DP-ID3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpframework.hookspecs import hookimpl

if TYPE_CHECKING:
    from dpframework_trees.estimator import DPID3Classifier
    from dpframework_trees.id3 import DPID3

__all__ = ["DPID3", "DPID3Classifier"]


@hookimpl
def dpframework_miners() -> list[type[Any]]:
    """Bring the tree miners."""
    from dpframework_trees.id3 import DPID3

    return [DPID3]


def __getattr__(name: str) -> Any:
    # scikit-learn is an extra and slow to import: only who asks for the estimator needs it and waits for it
    if name == "DPID3":
        from dpframework_trees.id3 import DPID3

        return DPID3
    if name == "DPID3Classifier":
        try:
            from dpframework_trees.estimator import DPID3Classifier
        except ModuleNotFoundError as error:
            raise ImportError("DPID3Classifier needs scikit-learn: pip install 'dpframework[sklearn]'") from error
        return DPID3Classifier
    raise AttributeError(f"module 'dpframework_trees' has no attribute {name!r}")
