"""The command `prove`."""

from __future__ import annotations

import json

import pytest

from dpframework.cli import main
from dpframework.formulas import installed

needs_solvers = pytest.mark.skipif(not installed(), reason="proofs need the extra 'prove': pip install -e '.[prove]'")


@needs_solvers
def test_each_claim_is_shown_with_rule_goals_verdict_and_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "scored_formulas:MAX"]) == 0
    shown = capsys.readouterr().out
    for text in ("sum over parts of largest(n)", "rise <= 1", "proved", "one part", "5/5", "[[0 0 0]] -> [[1 0 0]]: 1"):
        assert text in shown
    assert main(["prove", "scored_formulas:MAX", "--json"]) == 0  # from the verdicts that were kept
    (one,) = json.loads(capsys.readouterr().out)
    assert [claim["verdict"] for claim in one["claims"]] == ["proved"] * 3
    assert one["claims"][0]["proved"] == {"z3": 5, "cvc5": 5}


def test_a_claim_is_refuted_with_tables_and_without_solvers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "dp-id3", "--refute", "rise=1/2", "--refute", "fall=1", "--json"]) == 1
    found = {
        one["name"]: [claim["refuted_by"] for claim in one["claims"]] for one in json.loads(capsys.readouterr().out)
    }
    assert found["gini"] == ["[[0 0 0]] -> [[1 0 0]]: 1", None]
    assert found["information-gain"] == [None, "[[1 0 1]] -> [[0 0 1]]: 2"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["no-such-miner"], "no miner or query is named"),
        (["additive-scores"], "no miner or query is named"),
        (["no_such_module:NAME"], "cannot be imported"),
        (["scored_formulas:DERIVED"], "neither a formula nor a query"),
        (["dp-id3", "--refute", "rises"], "is no claim"),
        (["dp-id3", "--refute", "rise=much"], "a formula or a number"),
    ],
    ids=lambda given: given if isinstance(given, str) else " ".join(given),
)
def test_what_cannot_be_proved_is_said_in_a_sentence(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prove", *arguments]) == 2
    assert says in capsys.readouterr().err
