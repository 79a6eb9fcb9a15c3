"""The user's cache folder, for generated code (beside which numba keeps the compiled code) and verdicts on claims."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """Return the path of the folder `name` in `$XDG_CACHE_HOME/dpframework`, or else in `~/.cache/dpframework`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dpframework" / name


def write_cached(path: Path, text: str) -> bool:
    """Write a text into a file of the cache if the file holds another text. Tell whether the file now holds this one.

    Another process sees either the old file or the whole new one. Everything also works without the file, but slower.
    """
    try:
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_suffix(f".{os.getpid()}")
            beside.write_text(text, encoding="utf-8")
            beside.replace(path)
    except OSError:
        return False
    return True
