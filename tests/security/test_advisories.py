"""The command that looks for advisories sees one that is there, and says so if it could not look."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

COMMAND = Path(__file__).with_name("advisories.py")


def advisory(name: str, *events: dict[str, str], versions: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    affected = {
        "package": {"ecosystem": "PyPI", "name": name},
        "ranges": [{"type": "ECOSYSTEM", "events": list(events)}] if events else [],
        "versions": list(versions),
    }
    return {"id": "TEST-1", "summary": "It breaks.", "affected": [affected], **more}


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(COMMAND), "--advisories", str(folder)], capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(
    ("form", "found"),
    [
        (advisory("JinJa2", {"introduced": "0"}), True),
        (advisory("jinja2", {"introduced": "0"}, {"fixed": "3.1.7"}), True),
        (advisory("jinja2", {"introduced": "0"}, {"last_affected": "3.1.6"}), True),
        (advisory("jinja2", versions=("3.1.6",)), True),
        (advisory("jinja2", {"introduced": "0"}, {"fixed": "3.1.6"}), False),
        (advisory("jinja2", {"introduced": "3.1.7"}), False),
        (advisory("jinja2", {"introduced": "0"}, withdrawn="2026-01-01T00:00:00Z"), False),
        (advisory("jinja", {"introduced": "0"}), False),
    ],
)
def test_an_advisory_of_a_lowest_version_is_found(tmp_path: Path, form: dict[str, Any], found: bool) -> None:
    pytest.importorskip("packaging")
    (tmp_path / "one.json").write_text(json.dumps(form))
    done = checked(tmp_path)
    assert ("lowest: jinja2 3.1.6: TEST-1: It breaks." in done.stdout) == found, done.stdout + done.stderr
    assert "versions checked with the advisories in" in done.stdout


def test_a_service_that_does_not_answer_is_not_taken_for_good_news(tmp_path: Path) -> None:
    """pip-audit exits with 0 where its service knows none of the packages."""
    pytest.importorskip("packaging")
    (tmp_path / "pip_audit.py").write_text(
        "import json, sys\n"
        "names = [line.split('==') for line in open(sys.argv[sys.argv.index('--requirement') + 1])]\n"
        "print(json.dumps({'dependencies': [{'name': n, 'skip_reason': 'not found'} for n, _ in names]}))\n"
    )
    done = subprocess.run(
        [sys.executable, str(COMMAND)],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout.count("NOT CHECKED") == 2
