"""Installed packages with their distributions, versions and digests of all their code."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import types
from collections.abc import Mapping
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path

from dpframework.version import __version__

#: The name of this distribution, of its package, and of the group of entry points for plugins.
CORE = "dpframework"

_CODE_FILES = (".py", ".so", ".pyd")


def importing_environment(**more: str) -> dict[str, str]:
    """Return environment variables with which a new Python process imports the same modules as this one."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **more}


def place_of(package: str) -> Path | None:
    """Return the folder of an imported package or the file of a module, or None if it has no file of its own.

    The result is also None for a folder without `__init__.py`, since it may hold files that do not belong to the
    package.
    """
    file = getattr(sys.modules.get(package), "__file__", None)
    if file is None or not Path(file).is_file():
        return None
    return Path(file).parent if Path(file).stem == "__init__" else Path(file)


@functools.cache
def package_form(package: str) -> Mapping[str, str]:
    """Return a package's name ("package"), "distribution" and "version", and the "digest" of all its code files."""
    digest = hashlib.sha256()
    root = place_of(package)
    assert root is not None, package
    if root.is_file():
        names = [root.name]
    else:
        names = []
        for folder, inner, files in os.walk(root):  # pathlib would take ten times as long
            if "__pycache__" in inner:
                inner.remove("__pycache__")
            place = os.path.relpath(folder, root.parent).replace(os.sep, "/")
            for file in files:
                if file.endswith(_CODE_FILES):
                    names.append(f"{place}/{file}")
        names.sort()
    for name in names:
        content = (root.parent / name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    distribution, version = distributions().get(package, ("", ""))
    form = {"package": package, "distribution": distribution, "version": version, "digest": digest.hexdigest()}
    return types.MappingProxyType(form)


@functools.cache  # slow: searches the files of every installed distribution
def plugin_points() -> EntryPoints:
    """Return the entry points of the installed plugins."""
    return entry_points(group=CORE)


@functools.cache
def distributions() -> dict[str, tuple[str, str]]:
    """Return, by package, the name and the version of the distribution of the core and of each plugin."""
    found = {CORE: (CORE, __version__)}
    for point in plugin_points():
        if point.dist is not None:
            found.setdefault(point.module.partition(".")[0], (point.dist.name, point.dist.version))
    return found
