"""Reading a file of text, and writing files whole or not at all, one or several to a folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import signal
import stat
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

from dpframework.facts.errors import InputError


@contextlib.contextmanager
def staged(out: Path, names: Collection[str]) -> Iterator[Path]:
    """Yield an empty folder next to `out`; what is written there moves to `out` if the block ends well.

    The folder is made before the block runs, so that an output that cannot be written is refused before any budget
    is spent. If it cannot be moved afterwards, it stays, and the error says where.

    Parameters
    ----------
    out
        A folder that does not exist, or that is empty: results that were paid for are never replaced.
    names
        The files that will be written, by which a folder of earlier results is known.

    Raises
    ------
    InputError
        If `out` is a file, holds anything, or cannot be written.
    """
    require_usable(out, names)
    stage = out.absolute().parent / f".{out.absolute().name}.{secrets.token_hex(4)}.part"
    try:
        stage.mkdir()
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror}") from None
    try:
        yield stage
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise
    try:
        require_usable(out, names)  # once more: another run may have written there meanwhile
        with uninterrupted():
            if out.exists():
                for written in sorted(stage.iterdir()):
                    os.replace(written, out / written.name)
                stage.rmdir()
            else:
                os.replace(stage, out)
    except InputError as error:
        raise InputError(f"{error}; what was to go there is in {stage}") from None
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror}; what was to go there is in {stage}") from None


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Take no notice of Ctrl-C while what was paid for is written; that takes a moment."""
    if threading.current_thread() is not threading.main_thread():  # it does not get Ctrl-C
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


def read_text(path: Path, expected: str | None = None) -> str:
    """Return the text of a file in UTF-8; `expected` names the kind of file that is wanted, if it must be one.

    Raises
    ------
    InputError
        If there is no such file, or it cannot be read; names the file.
    """
    remedy = f"; {expected} is expected" if expected else ""
    require_no_stream(path)
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file{remedy}") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a directory{remedy}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text{remedy}") from None


def require_no_stream(path: Path) -> None:
    """Refuse a pipe, a device or a socket: reading it may never end, and cannot be done again.

    Raises
    ------
    InputError
        If it is one, or no path at all.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return  # whoever reads it says what is expected
    except OSError as error:  # its name is too long, for one
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{str(path)!r}: is no path: it holds a NUL character") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(f"{path}: is no regular file but a pipe, a device or a socket; save its content to a file")


def file_digest(path: Path, expected: str | None = None) -> bytes:
    """Return the SHA-256 of a file's bytes.

    Parameters
    ----------
    path
        Where it is.
    expected
        What is expected there, for the error.

    Raises
    ------
    InputError
        If it cannot be read; names the file.
    """
    require_no_stream(path)
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        remedy = f"; {expected} is expected" if expected else ""
        raise InputError(f"{path}: cannot be read: {error.strerror}{remedy}") from None


def write_whole(path: Path, content: str | bytes, *, called: Path | None = None) -> None:
    """Write a file, on the disk when this returns; an older one of that name is untouched if that fails.

    Parameters
    ----------
    path
        Where it is written.
    content
        Its text, in UTF-8, or its bytes.
    called
        What errors call it, if it is written where it will not stay.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise InputError(f"{called or path}: cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


def require_usable(out: Path, names: Collection[str]) -> None:
    """Refuse a folder that results cannot be written to (see `staged`).

    Raises
    ------
    InputError
        As `staged`.
    """
    if not out.exists():
        if not out.absolute().parent.is_dir():
            raise InputError(f"{out}: its parent folder does not exist; make it first")
        return
    if not out.is_dir():
        raise InputError(f"{out}: is a file; --out needs a folder")
    if not os.access(out, os.R_OK | os.W_OK | os.X_OK):
        raise InputError(f"{out}: cannot be written: permission denied")
    held = sorted(entry.name for entry in out.iterdir())
    if any(name in names for name in held):
        raise InputError(f"{out}: holds the results of an earlier run; give a new folder")
    if held:
        raise InputError(f"{out}: holds other files, such as '{held[0]}'; give a new folder")
