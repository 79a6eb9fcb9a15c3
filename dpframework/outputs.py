"""Writing files whole or not at all, one or several to a folder."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

from dpframework.errors import InputError


@contextlib.contextmanager
def staged(out: Path, names: Collection[str]) -> Iterator[Path]:
    """Yield an empty folder next to `out`; what is written there moves to `out` if the block ends well.

    The folder is made before the block runs, so that an output that cannot be written is refused before any budget
    is spent.

    Parameters
    ----------
    out
        A folder that does not exist, or that holds nothing but files of these names.
    names
        The files that may be written, and replaced.

    Raises
    ------
    InputError
        If `out` is a file, holds anything else, or cannot be written.
    """
    _require_usable(out, names)
    stage = out.absolute().parent / f".{out.absolute().name}.{secrets.token_hex(4)}.part"
    try:
        try:
            stage.mkdir()
        except OSError as error:
            raise InputError(f"{out}: cannot be written: {error.strerror}") from None
        yield stage
        try:
            if out.exists():
                for written in sorted(stage.iterdir()):
                    os.replace(written, out / written.name)
            else:
                os.replace(stage, out)
        except OSError as error:
            raise InputError(f"{out}: cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def write_whole(path: Path, text: str) -> None:
    """Write a text file; an older one of that name is untouched if that fails.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


def _require_usable(out: Path, names: Collection[str]) -> None:
    if not out.exists():
        if not out.absolute().parent.is_dir():
            raise InputError(f"{out}: its parent folder does not exist; make it first")
        return
    if not out.is_dir():
        raise InputError(f"{out}: is a file; --out needs a folder")
    strange = sorted(entry.name for entry in out.iterdir() if entry.name not in names)
    if strange:
        raise InputError(f"{out}: holds other files, such as '{strange[0]}'; choose a new or an empty folder")
    if not os.access(out, os.W_OK | os.X_OK):
        raise InputError(f"{out}: cannot be written: permission denied")
