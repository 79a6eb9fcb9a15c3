"""The command `prove`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import attrs
import pytest
from proving import needs_solvers

from dpframework.cli import main
from dpframework.formulas import Certificate


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


@needs_solvers
@pytest.mark.parametrize(
    "computed", ["np.maximum(c[:, 0], 2) / 4", "c[:, 0].astype('int32') ** 2 / 4 / np.maximum(c[:, 0], 1)"]
)
def test_a_query_that_computes_another_score_is_not_called_proved(
    computed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The formula's claims would be proved; but squares exceed 32 bits, and the other score has a floor."""
    (tmp_path / "rounded_scores.py").write_text(
        "import numpy as np\nfrom dpframework.formulas import Cells, cells, most\n"
        "from dpframework.queries import FormulaScores\nhit, = cells('hit')\n"
        "class Rounded(FormulaScores):\n    name = 'rounded'\n"
        "    formula = Cells((hit,), hit * hit / most(hit, 1) / 4)\n"
        "    def count(self, block, *, candidates):\n        return np.array([[1]])\n"
        f"    def answer(self, c, **inputs):\n        return {computed}\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "rounded_scores", raising=False)
    assert main(["prove", "rounded_scores:Rounded", "--record", str(tmp_path / "verified.json")]) == 2
    said = capsys.readouterr().err
    assert "rounded does not compute its formula" in said
    assert "nothing is proved" in said
    assert not (tmp_path / "verified.json").exists()


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


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a study of a miner of trees, whose claims have formulas; proofs are kept in an empty folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "people.schema.toml").write_text(
        'max_rows = 500\n[[attribute]]\nname = "ill"\nkind = "boolean"\n[[attribute]]\nname = "old"\nkind = "boolean"\n'
    )
    path = tmp_path / "study.toml"
    path.write_text(
        '[data]\npath = "people.csv"\nschema = "people.schema.toml"\n'
        '[privacy]\nepsilon = 1\nrelation = "add-or-remove-one"\n'
        '[[step]]\nname = "tree"\nminer = "dp-id3"\nepsilon = 1\n'
        'params = { target = "ill", max_depth = 1, criterion = "max" }\n'
    )
    return path


@needs_solvers
def test_a_certificate_is_audited_and_its_claims_are_on_record(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = study.parent
    certificate, record, plan = (folder / name for name in ("study.proof.json", "verified.json", "plan.json"))
    assert main(["prove", str(study), "--certificate", str(certificate), "--record", str(record)]) == 0
    assert main(["plan", str(study), "--out", str(plan)]) == 0
    capsys.readouterr()
    assert main(["audit-proof", str(study), "--json"]) == 0
    audited = json.loads(capsys.readouterr().out)
    assert {claim["name"] for claim in audited["claims"]} >= {"max", "counts of disjoint cells"}
    assert all(claim["stands"] for claim in audited["claims"])
    assert main(["audit-proof", str(plan), "--certificate", str(certificate)]) == 0
    shown = capsys.readouterr().out
    assert "max: rise <= 1: stands" in shown
    assert "one part: a row is in one part" in shown
    # The plan's steps are proved by the record, and by no other.
    assert main(["check", str(study), "--verified", str(record)]) == 0
    assert "DP030" not in capsys.readouterr().out
    assert main(["report", str(study), "--format", "md", "--verified", str(record)]) == 0
    assert "proved by z3 and cvc5, for all tables" in capsys.readouterr().out
    assert main(["plan", str(study), "--verified", str(record)]) == 0
    shown = capsys.readouterr().out
    assert "\nsensitivities:\n  " in shown
    assert "split: proved by z3 and cvc5, for all tables\n" in shown
    assert main(["plan", str(study)]) == 0
    assert "sensitivities" not in capsys.readouterr().out
    # Another plan's certificate, and one whose text was changed.
    other = folder / "other.toml"
    other.write_text(study.read_text().replace("max_depth = 1", "max_depth = 2"))
    assert main(["audit-proof", str(other), "--certificate", str(certificate)]) == 2
    assert "the certificate is of plan" in capsys.readouterr().err
    certificate.write_text(certificate.read_text().replace("rest", "c"))
    assert main(["audit-proof", str(study)]) == 2
    assert "does not fit its SHA-256" in capsys.readouterr().err


@needs_solvers
def test_a_spoilt_certificate_ends_in_a_refusal(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever spoils it can write its SHA-256, too."""
    certificate = study.parent / "study.proof.json"
    assert main(["prove", str(study), "--certificate", str(certificate)]) == 0
    true = Certificate.from_json(certificate.read_text())
    spoilt = [
        (name, attrs.evolve(one, goals=tuple(goal.replace("(+ c 1.0)", "c") for goal in one.goals)))
        for name, one in true.proofs
    ]
    certificate.write_text(attrs.evolve(true, proofs=tuple(spoilt)).to_json())
    capsys.readouterr()
    assert main(["audit-proof", str(study)]) == 1
    shown = capsys.readouterr().out
    assert "max: rise <= 1: DOES NOT STAND" in shown
    assert "problem: rise <= 1 of sum over parts of largest(n): " in shown


def test_without_solvers_a_study_is_planned_and_says_what_is_not_proved(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpframework.formulas.solvers.has_solvers", lambda: False)
    monkeypatch.setitem(sys.modules, "z3", None)
    monkeypatch.setitem(sys.modules, "cvc5", None)
    assert main(["plan", str(study), "--format", "json"]) == 0
    assert '"largest(n)' in capsys.readouterr().out.replace("sum over parts of ", "")
    assert main(["report", str(study), "--format", "md"]) == 0
    assert "declared; not proved here" in capsys.readouterr().out
    for command in (["prove", str(study)], ["audit-proof", str(study)]):
        assert main(command) == 2
        assert "proofs need the solvers z3 and cvc5" in capsys.readouterr().err


def test_a_certificate_is_of_a_study(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = str(tmp_path / "proof.json")
    assert main(["prove", "dp-id3", "--certificate", out]) == 2
    assert "needs a study file or a plan" in capsys.readouterr().err
    assert main(["prove", "dp-id3", "--refute", "rise=1", "--record", out]) == 2
    assert "makes no proofs to write" in capsys.readouterr().err
