"""Silence about private rows, for warnings and for numpy's complaints about arithmetic.

A warning such as numpy's "divide by zero" may appear on one of two neighbouring tables only, and then tells them apart.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator

import numpy as np

_lock = threading.Lock()
_filters: list[warnings.catch_warnings[None]] = []
_within = 0


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Show no warning while the block runs, in any thread, and turn none into an error.

    Warning filters belong to the whole process: the first block that begins sets them, and the last one that ends
    puts them back, so that runs in several threads do not undo each other's.
    """
    global _within
    with _lock:
        if not _within:
            kept = warnings.catch_warnings()
            kept.__enter__()
            _filters.append(kept)
            warnings.simplefilter("ignore")
        _within += 1
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        with _lock:
            _within -= 1
            if not _within:
                _filters.pop().__exit__(None, None, None)
