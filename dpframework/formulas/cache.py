"""The user's cache folder, for sources of kernels (beside which numba keeps its code) and for verdicts of solvers."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """Return a folder of the user's cache: `$XDG_CACHE_HOME/dpframework`, or `~/.cache/dpframework`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dpframework" / name


def write_kept(path: Path, text: str) -> bool:
    """Write a file of the cache whole, and tell whether that was possible. Without it everything works, but slower."""
    try:
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_suffix(f".{os.getpid()}")
            beside.write_text(text, encoding="utf-8")
            beside.replace(path)
    except OSError:
        return False
    return True
