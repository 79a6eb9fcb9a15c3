"""Functions that an experiment file names. They are in a Python file or in an installed module."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

import attrs

from dpframework.facts.errors import InputError, first_line, nearest
from dpframework.facts.files import file_digest
from dpframework.facts.toml import resolve_path


@final
@attrs.frozen
class Code:
    """A function, named by the file or module that defines it.

    Attributes
    ----------
    place
        `file.py:function`, with the file relative to `folder`, or `package.module:function`.
    folder
        The folder of the experiment file.
    """

    place: str
    folder: Path

    def __str__(self) -> str:
        return self.place

    def load(self) -> Callable[..., Any]:
        """Import the function.

        Raises
        ------
        InputError
            If there is no such file, module or function, or importing it fails.
        """
        where, _, name = self.place.rpartition(":")
        module = _module_of_file(self.path, self.digest) if self.path is not None else _module(where)
        function = getattr(module, name, None)
        if not callable(function):
            known = [key for key, value in vars(module).items() if inspect.isfunction(value) and key[0] != "_"]
            raise InputError(f"'{self.place}': there is no function '{name}' in {where}; {nearest(name, known)}")
        return function  # type: ignore[no-any-return]

    @property
    def path(self) -> Path | None:
        """The Python file that defines the function. None if it is in an installed module."""
        where, _, name = self.place.rpartition(":")
        if not where or not name.isidentifier():
            raise InputError(
                f"'{self.place}' is not the name of a function; write file.py:function or package.module:function"
            )
        return resolve_path(where, self.folder) if where.endswith(".py") else None

    @property
    def digest(self) -> str:
        """The SHA-256, in hex, of the file that defines the function. Empty if the function's module has no file.

        Raises
        ------
        InputError
            As `load`.
        """
        if self.path is not None:
            if not self.path.is_file():
                raise InputError(f"'{self.place}': there is no file {self.path}")
            return file_digest(self.path).hex()
        source = getattr(_module(self.place.rpartition(":")[0]), "__file__", None)
        return "" if source is None else file_digest(Path(source)).hex()


@functools.cache
def _module_of_file(path: Path, digest: str) -> Any:
    """Run a Python file as a module. In one process it runs again only if the file has changed."""
    name = f"dpframework_experiment_{digest[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path}: is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # attrs and dataclasses look up the module of a class here.
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise InputError(f"{path}: cannot be imported ({type(error).__name__}: {first_line(error)})") from None
    return module


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise InputError(
            f"the module {name} cannot be imported ({type(error).__name__}: {first_line(error)})"
        ) from None


def require_accepts(function: Callable[..., Any], positional: int, settings: Mapping[str, Any], what: str) -> None:
    """Refuse settings that a function does not take. Otherwise each cell would fail, perhaps after hours of work.

    Parameters
    ----------
    function
        The function that will be called.
    positional
        The number of positional arguments.
    settings
        The arguments by name.
    what
        The beginning of the error's sentence.

    Raises
    ------
    InputError
        If the function cannot be called with these arguments.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # Some built-in functions have no signature.
        return
    named = [p.name for p in list(signature.parameters.values())[positional:] if p.kind is not p.VAR_KEYWORD]
    open_ended = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    for key in settings:
        if key not in named and not open_ended:
            raise InputError(f"{what}: has no parameter '{key}'; {nearest(key, named)}")
    try:
        signature.bind(*[None] * positional, **settings)
    except TypeError as error:
        raise InputError(f"{what}: cannot be called with these settings: {error}") from None
