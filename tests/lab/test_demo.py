"""The demo: refused when over budget, private by default, and its trees find what was planted."""

import json

import pytest

from dpframework.cli import main
from dpframework.lab.clinic import clinic_schema
from dpframework.lab.demo import demo_study, run_demo


@pytest.fixture(scope="module")
def done():
    return run_demo()


def test_one_tree_too_many_is_refused_before_the_table_is_opened(done):
    assert "DP001" in done.refused
    assert "1.25" in done.refused
    assert not done.opened_when_refused


def test_the_run_is_private_and_spends_the_budget(done):
    assert done.results.private
    assert str(done.results.spent) == "PrivacyLoss(epsilon=1.0)"
    assert [f for f in done.findings if f.severity.value == "error"] == []


def test_the_trees_find_what_was_planted(done):
    for comparison in done.comparisons:
        assert comparison.found
        assert comparison.accuracy > comparison.majority
        assert comparison.overlap > 0.5
        assert comparison.rules


def test_seeded_demos_repeat_and_say_that_they_are_not_private():
    first, again = run_demo(seed=5, patients=2000), run_demo(seed=5, patients=2000)
    assert first.results.to_dict() == again.results.to_dict()
    assert not first.results.private


def test_the_demo_study_is_planned_without_a_table():
    assert demo_study(clinic_schema()).plan().total().epsilon == 1


def test_on_the_command_line(capsys, tmp_path):
    assert main(["demo", "--out", str(tmp_path / "out")]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for part in ("1. Plan too much", "2. Plan", "3. Check", "4. Run", "5. Against the truth", "not private", "HbA1c"):
        assert part in out
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["plan.json", "report.html", "results.json"]
    assert main(["report", str(tmp_path / "out"), "--json"]) == 0
    capsys.readouterr()


def test_interrupted(capsys, tmp_path, monkeypatch):
    from dpframework.run.run_scopes_and_charges import Scope

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Scope, "charge", interrupt)
    assert main(["demo", "--out", str(tmp_path / "out")]) == 130
    assert capsys.readouterr() == ("", "step 'diabetes': interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_as_json(capsys):
    assert main(["demo", "--seed", "2", "--json"]) == 0
    form = json.loads(capsys.readouterr().out)
    assert form["private"] is False
    assert len(form["comparisons"]) == 4
