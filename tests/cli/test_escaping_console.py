"""What commands show on a terminal: nothing breaks within a word, and trees keep their branches; and `explain`."""

import io
import json
import re
import textwrap

import pytest
from rich.console import Console

import dpframework as dpf
from dpframework.checks import ASSUMPTIONS, BUILT_IN, check_page
from dpframework.cli import common, main
from dpframework.cli.escaping_console import Screen
from dpframework.reports import terminal_report, tree
from dpframework.reports.terminal_line_breaks import fit_facts, fit_prose, fit_tree

SCHEMA = dpf.Schema(
    [dpf.Categorical("a long name", [f"value {k}" for k in range(9)]), dpf.Boolean("ill")], max_rows=100
)


@pytest.fixture
def plan():
    study = dpf.Study(SCHEMA, epsilon=2)
    study.add("the tree", dpf.miner("dp-id3", target="a long name", epsilon=1, max_depth=2))
    study.add("the table", dpf.miner("crosstab", attributes=["ill", "a long name"], epsilon=1))
    return study.plan()


@pytest.mark.parametrize("width", [80, 100])
def test_a_tree_keeps_its_words_its_branches_and_its_losses(plan, width):
    whole = tree(plan)
    fitted = fit_tree(whole, width)
    branches = re.compile(r"[│├└─]")
    assert re.sub(r"\s+", " ", branches.sub("", fitted)) == re.sub(r"\s+", " ", branches.sub("", whole))
    assert sorted(re.findall(r"\[[^\]\n]*\]", fitted)) == sorted(re.findall(r"\[[^\]\n]*\]", whole))
    assert max(map(len, fitted.split("\n"))) <= width
    assert fit_tree(whole, None) == whole
    for line, following in zip(fitted.split("\n"), fitted.split("\n")[1:], strict=False):
        for column, sign in enumerate(following):
            if sign == "│":  # a branch comes from one above, or from what is joined there
                assert line[column : column + 1] in ("│", "├")


@pytest.mark.parametrize("width", [80, 100])
def test_a_report_breaks_no_word(plan, width):
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=True, color_system=None, highlight=False)
    console.print(terminal_report(plan), soft_wrap=False, crop=False)
    lines = stream.getvalue().split("\n")
    assert max(len(line.rstrip()) for line in lines) <= width
    wide = io.StringIO()
    Console(file=wide, width=120, highlight=False).print(terminal_report(plan), soft_wrap=True)
    words = set(wide.getvalue().split()) | {"│", "├─", "└─"}
    assert set(stream.getvalue().split()) <= words


def test_facts_and_prose_are_broken_between_words():
    text = "one two three four five six seven eight nine ten eleven twelve"
    assert fit_prose(text, 40, "  ") == textwrap.fill(text, 40, initial_indent="  ", subsequent_indent="  ")
    assert fit_prose("a\n\nb", 40) == "a\n\nb"
    facts = [("name", text), ("hash", "x" * 64)]
    lines = ["".join(line) for line in fit_facts(facts, 68)]
    assert lines[0].startswith("name  one two")
    assert "    " + "x" * 64 in lines
    assert ["".join(line) for line in fit_facts(facts, None)] == [f"name  {text}", "hash  " + "x" * 64]


def test_every_check_has_a_page_that_says_what_why_and_how():
    for check in BUILT_IN:
        page = check_page(check.code)
        assert page is not None, check.code
        assert page.text.startswith(f"# {check.code}: ")
        for name in ("What it finds", "Why it matters", "How to fix it"):
            assert page.section(name), (check.code, name)
        assert "](" not in page.text
    assert check_page("XX001") is None
    assert check_page("../DP001") is None


def test_each_assumption_is_explained_by_the_page_that_it_names():
    for name, (_, code) in ASSUMPTIONS.items():
        page = check_page(code)
        assert page is not None, code
        assert f"`{name}`" in page.text, (name, code)


def test_explain_prints_a_check_an_assumption_and_a_mechanism(capsys):
    assert main(["explain", "dp012"]) == 0
    assert capsys.readouterr().out.startswith("# DP012: budget left over\n")
    for name, (_, code) in ASSUMPTIONS.items():
        assert main(["explain", name]) == 0
        assert f"dpframework explain {code}" in capsys.readouterr().out
    assert main(["explain", "k-norm", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "k-norm"
    assert main(["explain", "DP01"]) == 2
    assert "did you mean 'DP0" in capsys.readouterr().err


def test_a_plan_is_written_as_its_name_ends(tmp_path, plan, capsys):
    source = tmp_path / "plan.json"
    source.write_text(plan.to_json())
    for name, begins in {
        "a.html": "<!doctype",
        "a.mmd": "flowchart",
        "a.dot": "digraph",
        "a.txt": "sequential",
    }.items():
        assert main(["plan", str(source), "--out", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_text().startswith(begins)
    assert main(["plan", str(source), "--out", str(tmp_path / "again.json")]) == 0
    assert (tmp_path / "again.json").read_text() == source.read_text()
    assert main(["plan", str(source), "--out", str(tmp_path / "a.gif")]) == 2
    assert "end it in .json" in capsys.readouterr().err
    assert main(["plan", str(source), "--diff", str(source), "--out", str(tmp_path / "b.txt")]) == 2


@pytest.mark.parametrize("columns", ["0", "3"])
def test_a_terminal_that_says_it_has_no_width_shows_something(columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    common.console.cache_clear()
    assert main(["miners"]) == 0
    common.console.cache_clear()
    assert "histogram" in capsys.readouterr().out


def test_only_richs_own_controls_steer_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")  # a dumb one has no bell
    shown = Screen(file=io.StringIO(), force_terminal=True, color_system=None)
    shown.print("[b]one\x1b[2J :snake:")
    shown.bell()
    assert shown.file.getvalue() == "[b]one\\x1b[2J :snake:\n\x07"


def test_without_arguments_the_help_is_printed(capsys):
    main([])
    out = "".join(capsys.readouterr())
    assert "Usage: dpframework" in out
    assert "explain" in out
