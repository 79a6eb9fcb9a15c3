"""The signers of a ledger: people with keys, one of whom must sign each decision.

Five kinds of entries are decisions: a data set with its cap, an approval, a revocation, a change of the signers, and a
release outside of the ledger, which may be charged to the cap. In a ledger with signers, a person who is a signer at
that time must sign each decision. The signature covers the ledger's id, the hash of the entry before, the kind and the
content (see `text_to_sign`). Through that hash it also seals all earlier entries, and it cannot be moved to another
place.
"""

from __future__ import annotations

import functools
import os
import re
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import final

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.files import read_text
from dpframework.ledger.ssh_signatures import verify_signature

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]*")
_KEY = re.compile(
    r"(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\.com|"
    r"sk-ecdsa-sha2-nistp256@openssh\.com) [A-Za-z0-9+/]{40,}={0,2}"
)


def read_signers(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read names and public keys from a file, one `NAME KEY-TYPE KEY` per line, as in ssh-keygen's allowed signers.

    Raises
    ------
    InputError
        If the file cannot be read, if it has no signer, if it has a name or a key twice, or if a line has another form.
        Patterns, options and certificate authorities are also refused, since a ledger stores names and keys only.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(read_text(Path(path)).splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        name, key = words[0], " ".join(words[1:3])
        if not _NAME.fullmatch(name) or not _KEY.fullmatch(key):
            raise InputError(
                f"{path}, line {number}: is not the name and the key of a signer; write NAME KEY-TYPE KEY, such as "
                "'board@example.org ssh-ed25519 AAAA...', without options"
            )
        if name in found or key in found.values():
            raise InputError(f"{path}, line {number}: this name or this key was given before; give each once")
        found[name] = key
    if not found:
        raise InputError(f"{path}: names no signer; write a line NAME KEY-TYPE KEY for each")
    return found


@final
@attrs.frozen
class Signers:
    """The signers of a ledger at some time.

    Attributes
    ----------
    keys
        At least one public key, by the signer's name.
    """

    keys: Mapping[str, str]

    def __str__(self) -> str:
        *others, last = sorted(self.keys)
        return f"{', '.join(others)} or {last}" if others else last

    def signer_of(self, signature: str, text: str) -> str:
        """Return the name of the signer who signed a text.

        Raises
        ------
        SignatureError
            If no signer has the key, or if the signature does not fit the text.
        InputError
            If OpenSSH is not installed.
        """
        return _find_signer(signature, text, "".join(f"{name} {key}\n" for name, key in sorted(self.keys.items())))

    def changed(self, add: Mapping[str, str], remove: Collection[str]) -> Signers:
        """Return the signers after a change.

        Raises
        ------
        InputError
            If no signer would be left, if nothing would change, if an added name or key is already present, or if a
            removed name is not present.
        """
        for name in remove:
            if name not in self.keys:
                raise InputError(f"'{name}' is not a signer of this ledger; the signers are {self}")
        kept = {name: key for name, key in self.keys.items() if name not in remove}
        for name, key in add.items():
            if name in kept or key in kept.values():
                raise InputError(f"'{name}' or its key is a signer of this ledger already; the signers are {self}")
        if not (add or remove) or not (kept or add):
            raise InputError("a change names signers to add or remove, and a ledger with signers keeps at least one")
        return Signers({**kept, **add})


@functools.lru_cache(maxsize=4096)
def _find_signer(signature: str, text: str, allowed: str) -> str:
    # Each reading of a ledger verifies all signatures, and each verification starts two processes. So results are
    # cached.
    with tempfile.TemporaryDirectory(prefix="dpframework-") as folder:
        path = Path(folder) / "signers of the ledger"
        path.write_text(allowed, encoding="ascii")
        return verify_signature(signature, text, path)
