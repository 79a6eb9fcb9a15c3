"""The tutorial of a new criterion: from nothing to a verified miner, in 25 lines or fewer."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path

import pytest
from proving import needs_solvers

from dpframework.cli import main
from dpframework.verify import verify_examples

PAGE = Path(__file__).parents[2] / "docs" / "tutorial-criterion.md"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write the page's file where Python can import it, and return its text."""
    found = re.search(r"```python run\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    (tmp_path / "best_pair.py").write_text(found[1], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delitem(sys.modules, "best_pair", raising=False)
    return found[1]


def test_the_miner_of_the_page_has_25_lines_at_most_and_is_verified(written: str) -> None:
    assert sum(bool(line.strip()) for line in written.splitlines()) <= 25
    miner = importlib.import_module("best_pair").BestPair
    found = verify_examples("best-pair", miner.examples(), replays=3000, runs=0)
    assert found.passed, found.verdict
    assert found.tightness >= 0.9


@needs_solvers
def test_what_the_page_says_of_the_proof_is_what_the_command_says(
    written: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prove", "best_pair:FMeasure", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert [claim["verdict"] for claim in one["claims"]] == ["proved"] * 3
    assert f"by {sum(claim['proved']['z3'] for claim in one['claims'])} goals" in PAGE.read_text(encoding="utf-8")
