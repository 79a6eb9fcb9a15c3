"""Which data an approval is for: a salted digest of its files, which the data's owner has made.

It is the owner's knowledge, and no release: whoever has the ledger and guesses all bytes of the files sees that the
guess is right. Nothing else can be read off it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import final

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.files import require_no_stream


def file_digest(path: Path) -> bytes:
    """Return the SHA-256 of a file's bytes.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    require_no_stream(path)
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; a data file is expected") from None


@final
@attrs.frozen
class Binding:
    """The files that an approval is for.

    Attributes
    ----------
    salt
        Random, in hex: two approvals of one file have other digests.
    digest
        HMAC-SHA256, in hex, keyed by the salt, of the SHA-256 digests of the files, one after another.
    """

    salt: str
    digest: str

    @classmethod
    def of(cls, files: Iterable[Path]) -> Binding:
        """Bind to files, in their order.

        Raises
        ------
        InputError
            If one cannot be read.
        """
        salt = secrets.token_hex(16)
        return cls(salt, _digest(salt, [file_digest(path) for path in files]))

    def holds(self, digests: Sequence[bytes]) -> bool:
        """Tell whether files of these digests are those that it was made of."""
        return hmac.compare_digest(self.digest, _digest(self.salt, digests))


def _digest(salt: str, digests: Iterable[bytes]) -> str:
    return hmac.new(bytes.fromhex(salt), b"".join(digests), "sha256").hexdigest()
