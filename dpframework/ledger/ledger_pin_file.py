"""The pin of a ledger: a file, kept elsewhere, that notes the ledger's first and last entry.

A ledger alone cannot show that it was replaced by an older copy or by another ledger, or that its last entries were cut
off. A pin shows all of this, if it is stored where those who can write to the ledger cannot write.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, final

from dpframework.facts.errors import InputError
from dpframework.facts.files import read_text, write_whole
from dpframework.facts.json_reader_and_schema_check import parsed_json
from dpframework.facts.output_overwrite_rule import FileKind

if TYPE_CHECKING:
    from dpframework.ledger.entry_hash_chain import Entry, Head

_HASH = re.compile("[0-9a-f]{64}")

#: The kind of file that a pin is. Writing a pin never replaces a file of another kind.
KIND = FileKind.of_beginning("a pin", '{\n  "ledger": "')


@final
class Pin:
    """A pin: a file that notes a ledger's first and last entry.

    Parameters
    ----------
    path
        The file.
    create
        Whether the file may be missing. If it is missing, a new pin will note the ledger as it is now.

    Raises
    ------
    InputError
        If the file is missing and `create` is False, if its folder cannot be written, or if it is not a pin.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False) -> None:
        self.path = Path(path)
        self._identity, self._number, self._hash = "", 0, ""
        if self.path.exists():
            self._read()
        elif not create:
            raise InputError(f"{path}: there is no such pin; 'dpframework ledger verify --pin' makes one")
        if not os.access(self.path.absolute().parent, os.W_OK):
            raise InputError(f"{path}: cannot be written; a pin is brought up to date when the ledger changes")

    def _read(self) -> None:
        text = read_text(self.path)
        try:
            held = parsed_json(text)
            identity, number, head = held["ledger"], held["entries"], held["head"]
        except (InputError, KeyError, TypeError):
            raise self._other() from None
        whole = isinstance(number, int) and number >= 1 and not isinstance(number, bool)
        if not whole or not all(isinstance(text, str) and _HASH.fullmatch(text) for text in (identity, head)):
            raise self._other()
        self._identity, self._number, self._hash = identity, number, head

    def _other(self) -> InputError:
        return InputError(f"{self.path}: is not a pin of a ledger")

    @property
    def holds_a_ledger(self) -> bool:
        """Whether the pin notes a ledger already. False for a new pin."""
        return bool(self._identity)

    def broken_by(self, entries: Sequence[Entry]) -> str | None:
        """Return the reason, in words, why a chain does not continue the noted chain; None if it does."""
        if not self._identity:
            return None
        if not entries or entries[0].hash != self._identity:
            return f"is not the ledger that {self.path} notes: its first entry is another one"
        if len(entries) < self._number or entries[self._number - 1].hash != self._hash:
            gone = f"entry {self._number}, which {self.path} notes, is gone"
            return f"was replaced by an older copy, cut or rewritten: {gone}"
        return None

    def note(self, identity: str, head: Head) -> None:
        """Note a ledger's last entry, unless the pin notes this entry or a later one.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        if self.path.exists():
            self._read()  # another process may have noted more
        if head.number > self._number:
            form = {"ledger": identity, "entries": head.number, "head": head.hash}
            write_whole(self.path, json.dumps(form, indent=2) + "\n", KIND)
            self._identity, self._number, self._hash = identity, head.number, head.hash
