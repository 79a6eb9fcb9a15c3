"""Sign a ledger's entries, and verify signatures, with OpenSSH's tool `ssh-keygen` (8.2 or later).

An approval is an entry of the ledger, so everyone who can write to the ledger's file could make one. A signature binds
an entry to a person's key. It covers the entry's kind and content, the ledger's id, and the hash of the entry before,
so that it cannot be moved to another place. `ssh-keygen -Y` signs with a private key, or with a key in an SSH agent. It
needs no network. A file of allowed signers has one line for each key, with the owner's name and the public key (see
`man ssh-keygen`, ALLOWED SIGNERS).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpframework.facts.errors import InputError
from dpframework.ledger.entry_hash_chain import canonical

#: The purpose that is part of each signature. What a key signs for other purposes cannot pass for an approval.
NAMESPACE = "dpframework-approval"
TOOL = "ssh-keygen"


class SignatureError(Exception):
    """The signature does not fit the text, or its signer is not allowed."""


def text_to_sign(ledger: str, previous: str, kind: str, content: Mapping[str, Any]) -> str:
    """Return the text that a signature covers.

    It holds the ledger's id, the hash of the entry before, and the entry's kind and content.
    """
    signed = {key: value for key, value in content.items() if key != "signature"}
    return canonical({"ledger": ledger, "after": previous, kind: signed})


def sign(key: str | os.PathLike[str], text: str) -> str:
    """Sign a text with a key file, and return the signature.

    Raises
    ------
    InputError
        If the key cannot be used, or OpenSSH is not installed.
    """
    if not Path(key).is_file():
        raise InputError(
            f"{key}: there is no such key; give the file of a private key, or of a public key whose private key is in "
            "an SSH agent"
        )
    done = _run(["sign", "-f", os.fspath(key), "-n", NAMESPACE], text)
    if done.returncode or "BEGIN SSH SIGNATURE" not in done.stdout:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise InputError(f"{key}: cannot sign with it: {said[-1] if said else 'ssh-keygen says nothing'}")
    return done.stdout


def verify_signature(signature: str, text: str, signers: str | os.PathLike[str] | None = None) -> str:
    """Verify a signature, and return the name of its signer. Without `signers`, return the key's fingerprint.

    Raises
    ------
    SignatureError
        If the signature does not fit the text, or if no allowed signer has the key.
    InputError
        If there is no such file of signers, or OpenSSH is not installed.
    """
    if signers is not None and not Path(signers).is_file():
        raise InputError(f"{signers}: there is no such file of allowed signers")
    with tempfile.TemporaryDirectory(prefix="dpframework-") as folder:
        kept = Path(folder) / "signature"
        kept.write_text(signature, encoding="utf-8")
        at = ["-n", NAMESPACE, "-s", str(kept)]
        if signers is None:
            done = _run(["check-novalidate", *at], text)
            found = re.search(r"SHA256:\S+", done.stdout)
            if done.returncode or found is None:
                raise SignatureError("its signature does not fit its text")
            return f"the key {found.group()}"
        named = _run(["find-principals", "-f", os.fspath(signers), *at[2:]], "")
        for name in named.stdout.splitlines() if not named.returncode else ():
            if not _run(["verify", "-f", os.fspath(signers), "-I", name, *at], text).returncode:
                return name
        if _run(["check-novalidate", *at], text).returncode:
            raise SignatureError("its signature does not fit its text")
        raise SignatureError(f"no signer in {signers} has the key that it is signed with")


def _run(arguments: list[str], text: str) -> subprocess.CompletedProcess[str]:
    tool = shutil.which(TOOL)
    if tool is None:
        raise InputError(f"signatures need {TOOL} of OpenSSH, which is not installed; unsigned approvals need no tool")
    return subprocess.run([tool, "-Y", *arguments], input=text, capture_output=True, text=True, check=False)
