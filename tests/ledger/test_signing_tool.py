"""Each answer of OpenSSH's tool, whether or not it is installed: what it signs, and whose a signature is."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpframework.facts.errors import InputError
from dpframework.ledger import ssh_signatures
from dpframework.ledger.ssh_signatures import SignatureError, sign, verify_signature

SIGNED = "-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n"
Answer = tuple[int, str, str]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[list[str]]]:
    """Return a function that says how the tool answers each of its commands, and returns what it is asked."""
    asked: list[list[str]] = []

    def say(**answer: Answer) -> list[list[str]]:
        def ran(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
            tool, how, *arguments = command
            assert (tool, how, options["text"], options["capture_output"]) == ("/ssh-keygen", "-Y", True, True)
            asked.append([*arguments, options["input"]])
            name = arguments[0] if "-I" not in arguments else f"verify {arguments[arguments.index('-I') + 1]}"
            return subprocess.CompletedProcess(command, *answer[name.replace("-", "_").replace(" ", "_")])

        monkeypatch.setattr(subprocess, "run", ran)
        monkeypatch.setattr(ssh_signatures.shutil, "which", lambda tool: f"/{tool}")
        return asked

    return say


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((0, SIGNED, ""), None),
        ((0, SIGNED, "Signing standard input"), None),
        ((1, SIGNED, "\n invalid format \n\n"), "invalid format"),
        ((0, "", "first\nagent refused"), "agent refused"),
        ((255, "", ""), "ssh-keygen says nothing"),
        ((0, "", " \n"), "ssh-keygen says nothing"),
    ],
)
def test_what_the_tool_signs_is_a_signature_or_no_approval(
    answer: Answer, why: str | None, answers: Callable[..., list[list[str]]], tmp_path: Path
) -> None:
    key = tmp_path / "key"
    with pytest.raises(InputError, match="there is no such key"):
        sign(key, "text")
    key.write_text("")
    asked = answers(sign=answer)
    if why is None:
        assert sign(key, "text") == SIGNED
    else:
        with pytest.raises(InputError, match=f": cannot sign with it: {why}$"):
            sign(key, "text")
    assert asked == [["sign", "-f", str(key), "-n", "dpframework-approval", "text"]]


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ((0, "Good signature with ED25519 key SHA256:abc/d", ""), "the key SHA256:abc/d"),
        ((0, "Good signature", ""), None),
        ((255, "with key SHA256:abc", ""), None),
        ((1, "", ""), None),
    ],
)
def test_without_signers_a_signature_names_its_key(
    answer: Answer, named: str | None, answers: Callable[..., list[list[str]]]
) -> None:
    asked = answers(check_novalidate=answer)
    if named is None:
        with pytest.raises(SignatureError, match=r"^its signature does not fit its text$"):
            verify_signature(SIGNED, "text")
    else:
        assert verify_signature(SIGNED, "text") == named
    ((*arguments, kept, text),) = asked
    assert arguments == ["check-novalidate", "-n", "dpframework-approval", "-s"]
    assert text == "text"
    assert not Path(kept).exists()


GOOD, BAD = (0, "", ""), (255, "", "")


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"find_principals": (0, "ann\n", ""), "verify_ann": GOOD}, "ann"),
        ({"find_principals": (0, "ann\nben\n", ""), "verify_ann": BAD, "verify_ben": GOOD}, "ben"),
        ({"find_principals": (0, "ann\nben\n", ""), "verify_ann": GOOD, "verify_ben": GOOD}, "ann"),
        (
            {"find_principals": (0, "ann\n", ""), "verify_ann": BAD, "check_novalidate": BAD},
            SignatureError("its signature does not fit its text"),
        ),
        (
            {"find_principals": (0, "ann\n", ""), "verify_ann": BAD, "check_novalidate": GOOD},
            SignatureError("no signer in .* has the key that it is signed with"),
        ),
        (
            {"find_principals": (255, "ann\n", ""), "verify_ann": GOOD, "check_novalidate": GOOD},
            SignatureError("no signer in .* has the key that it is signed with"),
        ),
        (
            {"find_principals": (0, "", ""), "check_novalidate": BAD},
            SignatureError("its signature does not fit its text"),
        ),
    ],
)
def test_a_signature_is_that_of_the_first_signer_whom_it_fits(
    given: dict[str, Answer], named: str | SignatureError, answers: Callable[..., list[list[str]]], tmp_path: Path
) -> None:
    signers = tmp_path / "signers"
    with pytest.raises(InputError, match="there is no such file of allowed signers"):
        verify_signature(SIGNED, "text", signers)
    signers.write_text("")
    asked = answers(**given)
    if isinstance(named, str):
        assert verify_signature(SIGNED, "text", signers) == named
    else:
        with pytest.raises(SignatureError, match=f"^{named}$"):
            verify_signature(SIGNED, "text", signers)
    assert asked[0][:4] == ["find-principals", "-f", str(signers), "-s"]
    assert asked[-1][0] == ("verify" if isinstance(named, str) else "check-novalidate")
    assert all(arguments[-1] == "text" for arguments in asked[1:])


def test_signatures_need_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_signatures.shutil, "which", lambda tool: None)
    with pytest.raises(InputError, match="signatures need ssh-keygen of OpenSSH, which is not installed"):
        verify_signature(SIGNED, "text")
