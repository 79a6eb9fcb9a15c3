"""The secret key that seals the rows of journals, the files that store the outputs of unfinished runs.

Each user of a ledger has one key, in a file that others cannot read. Without a seal, anyone who can write to the folder
of a journal could add outputs that no run drew. The key is in its own file next to the ledger, since many people may
read the ledger itself.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from pathlib import Path

from dpframework.facts.errors import InputError
from dpframework.facts.files import sync_folder
from dpframework.ledger.entry_hash_chain import Chain

BYTES = 32
_TEXT = re.compile(f"[0-9a-f]{{{2 * BYTES}}}\n")


def key_place(ledger: Path) -> Path:
    """Return the path of this user's key for a ledger. If `ledger` is a link, the key is next to its target."""
    place = ledger.resolve()
    user = f".{os.getuid()}" if hasattr(os, "getuid") else ""
    return place.with_name(f"{place.name}{user}.key")


def journal_key(chain: Chain, *, make: bool) -> bytes:
    """Return this user's key for the journals of a ledger.

    Parameters
    ----------
    chain
        The chain of the ledger.
    make
        Whether to make a key if there is none yet.

    Raises
    ------
    InputError
        If there is no key, if it belongs to another user, if others may read it, if it is damaged, or if it cannot be
        read or written.
    """
    place = key_place(chain.path)
    with chain.writing():  # locks the ledger, so that two processes do not make two keys
        try:
            text = _text_of(place, make=make)
        except FileNotFoundError:
            raise InputError(
                f"{place}: there is no such key, and the journal of an unfinished run is sealed with it; put the key "
                "back from a backup, or look whether the journal is of another ledger"
            ) from None
        except OSError as error:
            raise InputError(f"{place}: cannot be read or written: {error.strerror}") from None
    if not _TEXT.fullmatch(text):
        raise InputError(f"{place}: is damaged; put this key back from a backup")
    return bytes.fromhex(text)


def _text_of(place: Path, *, make: bool) -> str:
    """Return the text of the key's file. With `make`, a missing or empty file gets a new key."""
    flags = os.O_RDWR | (os.O_CREAT if make else 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    with contextlib.ExitStack() as closing:
        file = os.open(place, flags | getattr(os, "O_NONBLOCK", 0), 0o600)
        closing.callback(os.close, file)
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{place}: is no regular file, and so no key; remove it")
        if hasattr(os, "getuid"):  # on other systems the file mode does not say who may read a file
            if found.st_uid != os.geteuid():
                raise InputError(f"{place}: belongs to another user, who could forge journals with it; remove it")
            if stat.S_IMODE(found.st_mode) & 0o077:
                raise InputError(
                    f"{place}: other users may read or write this key, and so forge journals; remove it, and the "
                    "journals of unfinished runs with it"
                )
        text = os.read(file, 4 * BYTES).decode("ascii", "replace")
        if make and not text:
            text = f"{secrets.token_hex(BYTES)}\n"
            os.write(file, text.encode())
            os.fsync(file)
            sync_folder(place.parent)
    return text
