"""Reading a text file, and writing one file, or a folder with several, as a whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TypeVar

from dpframework.facts.errors import InputError, is_failure
from dpframework.facts.input_limits import MOST_JSON_BYTES
from dpframework.facts.interrupts import delay_interrupts, uninterrupted
from dpframework.facts.output_overwrite_rule import FileKind, require_output
from dpframework.facts.unfinished_files import Part, new_part_file, new_part_folder

T = TypeVar("T")


@contextlib.contextmanager
def stage_folder(out: Path, names: Collection[str]) -> Iterator[Path]:
    """Yield an empty folder next to `out`. Its contents move to `out` if the block ends without an error.

    The folder is made before the block runs, so that an output that cannot be written is refused before any budget is
    spent. If its contents cannot be moved afterwards, they stay beside `out` under another name. The error names it.

    Parameters
    ----------
    out
        A folder that does not exist yet or is empty, since results that were paid for are never replaced.
    names
        The names of the files that will be written. A folder that holds one of them is refused as an earlier result.

    Raises
    ------
    InputError
        If `out` is a file, holds anything, or cannot be written.
    """
    require_usable(out, names)
    with part_at(out.absolute(), new_part_folder, out) as part:
        assert part.path is not None
        yield part.path
        with uninterrupted():
            # From here on the folder must not be removed: its releases may have been paid for.
            stage, part.path = part.path, None
            _move(stage, out, names)


@contextlib.contextmanager
def part_at(place: Path, make: Callable[[Path], Part], called: Path) -> Iterator[Part]:
    """Make an unfinished file or folder for the block, and remove it afterwards unless the block has moved it.

    Raises
    ------
    InputError
        If it cannot be made. The message names the path `called`.
    """
    part: Part | None = None
    try:
        with delay_interrupts():
            try:
                part = make(place)
            except OSError as error:
                raise _unwritable(called, error) from None
        yield part
    finally:
        try:
            _end(part)
        finally:  # once more, since Ctrl-C may have come before the first call held it back
            _end(part)


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"{path}: cannot be written: {error.strerror}")


def _end(part: Part | None) -> None:
    with delay_interrupts():
        if part is not None:
            part.end()


def _move(stage: Path, out: Path, names: Collection[str]) -> None:
    """Move the contents of a folder to `out`. If that fails, they stay under a name that no later run removes."""
    try:
        # Checked once more, since another run may have written there meanwhile.
        require_usable(out, names)
        if out.exists():
            for written in sorted(stage.iterdir()):
                os.replace(written, out / written.name)
            stage.rmdir()
        else:
            os.replace(stage, out)
        sync_folder(out.absolute().parent)
    except (InputError, OSError) as error:
        says = error if isinstance(error, InputError) else _unwritable(out, error)
        kept = stage.with_name(f".{out.absolute().name}.{secrets.token_hex(4)}.kept")
        with contextlib.suppress(OSError):
            stage = stage.rename(kept)
        raise InputError(f"{says}; the content of that folder is in {stage}") from None


def sync_folder(folder: Path) -> None:
    """Synchronise a folder's list of files with the disk. The files' contents are synchronised when written."""
    with contextlib.suppress(OSError):  # some systems open no folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_text(path: Path, expected: str | None = None, *, most: int = MOST_JSON_BYTES) -> str:
    """Return the text of a file in UTF-8, with each line end as a single line feed.

    Parameters
    ----------
    path
        The path of the file.
    expected
        The kind of file that is expected, for error messages; None for any.
    most
        The largest size, in bytes.

    Raises
    ------
    InputError
        If there is no such file, it is larger than `most`, it is not UTF-8, or it cannot be read. The message names the
        file.
    """
    remedy = f"; {expected} is expected" if expected else ""
    require_no_stream(path)
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise InputError(f"{path}: is larger than the {most >> 20} MiB that such a file may have{remedy}")
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file{remedy}") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a directory{remedy}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text{remedy}") from None


def require_no_stream(path: Path) -> None:
    """Refuse a pipe, a device or a socket, since reading it may never end and cannot be repeated.

    Raises
    ------
    InputError
        If the path leads to one of these, or is not a path at all.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return  # the code that reads the file reports that it is missing
    except OSError as error:  # for example, its name is too long
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{str(path)!r}: is not a path, since it holds a NUL character") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(f"{path}: is a pipe, a device or a socket, not a regular file; save its content to a file")


def file_digest(path: Path, expected: str | None = None) -> bytes:
    """Return the SHA-256 of a file's bytes.

    Parameters
    ----------
    path
        The path of the file.
    expected
        The kind of file that is expected, for the error message.

    Raises
    ------
    InputError
        If the file cannot be read. The message names it.
    """
    require_no_stream(path)
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        remedy = f"; {expected} is expected" if expected else ""
        raise InputError(f"{path}: cannot be read: {error.strerror}{remedy}") from None


def write_whole(path: Path, content: str | bytes, kind: FileKind | None = None, *, called: Path | None = None) -> None:
    """Write a file to the disk. If that fails, an older file of that name stays as it was.

    Parameters
    ----------
    path
        The path of the file.
    content
        The text of the file, which is written in UTF-8, or its bytes.
    kind
        The kind of the file. Only an existing file of the same kind is replaced. With None no file is replaced.
    called
        The path to which the file is moved afterwards. Error messages about writing show it in place of `path`.

    Raises
    ------
    InputError
        If the file cannot be written, or would replace a file of another kind.
    """
    held = content.encode() if isinstance(content, str) else content
    assert kind is None or kind.holds(held), (
        f"{kind.name} that its own kind does not recognize, so that it could never be replaced"
    )
    require_output(path, kind)
    with part_at(path, new_part_file, called or path) as part:
        try:
            with open(part.descriptor, "wb", closefd=False) as file:
                file.write(held)
                file.flush()
                os.fsync(part.descriptor)
            with delay_interrupts():
                assert part.path is not None
                os.replace(part.path, path)
                part.path = None
        except OSError as error:
            raise _unwritable(called or path, error) from None
    sync_folder(path.absolute().parent)


def require_writable(out: Path, names: Collection[str]) -> None:
    """Refuse a folder that `stage_folder` could not write, before a run is charged.

    Raises
    ------
    InputError
        As `stage_folder`.
    """
    require_usable(out, names)
    with part_at(out.absolute(), new_part_folder, out):
        pass


def require_usable(out: Path, names: Collection[str]) -> None:
    """Refuse a folder that results cannot be written to (see `stage_folder`).

    Raises
    ------
    InputError
        As `stage_folder`.
    """
    try:
        mode = os.lstat(out).st_mode
    except (FileNotFoundError, NotADirectoryError):
        if not out.absolute().parent.is_dir():
            raise InputError(f"{out}: its parent folder does not exist; make it first") from None
        return
    except (OSError, ValueError) as error:  # for example, its name is too long
        raise InputError(f"{out}: cannot be written: {getattr(error, 'strerror', None) or 'it is no path'}") from None
    if stat.S_ISLNK(mode):
        raise InputError(f"{out}: is a symbolic link; give the name of the folder that you mean")
    if not stat.S_ISDIR(mode):
        raise InputError(f"{out}: is a file; --out needs a folder")
    if not os.access(out, os.R_OK | os.W_OK | os.X_OK):
        raise InputError(f"{out}: cannot be written: permission denied")
    held = sorted(entry.name for entry in out.iterdir())
    if any(name in names for name in held):
        raise InputError(f"{out}: holds the results of an earlier run; give a new folder")
    if held:
        raise InputError(f"{out}: holds other files, such as '{held[0]}'; give a new folder")


def read_by_library(action: Callable[[], T], sentence: str) -> T:
    """Call a library that reads a file. If it fails or panics, raise an InputError with `sentence` and nothing else.

    The library's own message is not shown, since it may quote a cell.
    """
    try:
        return action()
    except (InputError, MemoryError):
        raise
    except BaseException as error:
        if not is_failure(error):
            raise
    raise InputError(sentence)
