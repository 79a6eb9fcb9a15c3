"""What a shell completes: miners, steps, columns; where nothing is known, nothing, and never an error or a cell."""

from __future__ import annotations

import pytest

from dpframework.cli import argument_completion, main
from dpframework.study.plugin_registry import registry

STUDY = """
[data]
path = "t.csv"
schema = "s.toml"
[[step]]
name = "ages"
miner = "histogram"
[[step]]
name = "all"
miner = "count"
"""


@pytest.fixture
def complete(tmp_path, monkeypatch, capsys):
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "t.csv").write_text("age;cost;sex\n1;2;f\n")
    (tmp_path / "broken.toml").write_text("[[")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("_DPFRAMEWORK_COMPLETE", "complete_bash")

    def completed(typed: str) -> list[str]:
        words = typed.split(" ")
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        with pytest.raises(SystemExit) as ended:
            main([])
        assert not ended.value.code
        out, err = capsys.readouterr()
        assert err == ""
        return out.split()

    return completed


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("dpframework expl", ["explain"]),
        ("dpframework mechanisms lap", ["laplace"]),
        ("dpframework verify dp-id3 --example gr", ["grid"]),
        ("dpframework verify study.toml --example a", ["ages", "all"]),
        ("dpframework verify stu", ["study.toml"]),
        ("dpframework epsilon study.toml al", ["all"]),
        ("dpframework epsilon broken.toml a", []),
        ("dpframework epsilon none.toml a", []),
        ("dpframework schema infer t.csv --exclude ", ["age", "cost", "sex"]),
        ("dpframework schema infer t.csv --open c", ["cost"]),
        ("dpframework schema check t.csv s.toml --unit a", ["age"]),
        ("dpframework schema infer t.csv --right u.csv --id s", ["sex"]),
        ("dpframework run study.toml --engine ma", ["mapped"]),
        ("dpframework ledger open study.toml --unit a", []),
        ("dpframework schema infer none.csv --categorical ", []),
    ],
)
def test_a_shell_completes(complete, typed, found):
    assert complete(typed) == found


def test_all_miners_are_completed(complete):
    assert complete("dpframework miners ") == list(registry().miners)


@pytest.mark.parametrize(
    "known",
    [
        argument_completion.miners,
        argument_completion.mechanisms,
        argument_completion.engines,
        argument_completion.subjects,
    ],
)
@pytest.mark.parametrize("typed", ["", "d", "no-such-name"])
def test_what_is_completed_begins_with_what_was_typed(known, typed) -> None:
    found = known(None, typed)
    assert found == [name for name in known(None, "") if name.startswith(typed)]
    assert known(None, "")
