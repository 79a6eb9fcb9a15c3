"""The data that an approval is for, as a salted digest that the data's owner makes of its files.

The digest is no private release. Somebody who has the ledger and guesses all bytes of the files can check the guess,
and can learn nothing else from it.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import final

import attrs

from dpframework.facts.files import file_digest


def data_digests(files: Iterable[Path]) -> list[bytes]:
    """Return the SHA-256 of each file's bytes.

    Raises
    ------
    InputError
        If one cannot be read.
    """
    return [file_digest(path, "a data file") for path in files]


@final
@attrs.frozen
class Binding:
    """The files that an approval is for.

    Attributes
    ----------
    salt
        Random, in hex, so that two approvals of one file have different digests.
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
        return cls(salt, _digest(salt, data_digests(files)))

    def holds(self, digests: Sequence[bytes]) -> bool:
        """Tell whether these are the digests of the files that it was made of."""
        return hmac.compare_digest(self.digest, _digest(self.salt, digests))


def _digest(salt: str, digests: Iterable[bytes]) -> str:
    return hmac.new(bytes.fromhex(salt), b"".join(digests), "sha256").hexdigest()
