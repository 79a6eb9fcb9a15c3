"""The command line: exit codes, one sentence on standard error, JSON that parses, and data that stays shut."""

import json
import os
import shlex
import signal
import subprocess
import sys

import numpy as np
import pytest
from people import SCHEMA_FILE, tree_step

import dpframework as dpf
from dpframework.cli import COMMANDS as MODULES, command as program, main
from dpframework.cli.common import json_text
from dpframework.facts.errors import InputError, ReleaseRefused

STUDY = """
[data]
path = "{data}"
schema = "people.schema.toml"

[privacy]
epsilon = {epsilon}
allow = {allow}

[[step]]
name = "ill-tree"
miner = "dp-id3"
epsilon = 0.75
params = {{ target = "ill", max_depth = 2 }}
"""


@pytest.fixture
def study(tmp_path):
    """A study whose data file is missing until `with_data` writes it."""

    def written(*, epsilon=1.0, inferred="", allow=(), data="people.csv"):
        (tmp_path / "people.schema.toml").write_text(inferred + SCHEMA_FILE)
        path = tmp_path / "study.toml"
        path.write_text(STUDY.format(epsilon=epsilon, data=data, allow=list(allow)))
        return path

    return written


@pytest.fixture
def with_data(tmp_path):
    rows = "".join(f"{str(age > 50).lower()},{age}\n" for age in range(100)) * 10
    (tmp_path / "people.csv").write_text("ill,age\n" + rows)


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return code, out, err


def is_one_sentence(text):
    return text.endswith("\n") and text.count("\n") == 1


def test_plan_does_not_open_the_data(capsys, study):
    code, out, err = run(capsys, "plan", study(data="nowhere/at/all.csv"))
    assert code == 0
    assert "ill-tree  [epsilon 0.75]" in out
    assert "(budget 1.0)\n\naccuracy, in 95 % of releases: The number of rows is not known" in out
    assert err == ""


@pytest.mark.parametrize(("form", "start"), [("mermaid", "flowchart TD"), ("dot", "digraph plan {"), ("json", "{")])
def test_plan_formats(capsys, study, form, start):
    code, out, _ = run(capsys, "plan", study(), "--format", form)
    assert code == 0
    assert out.startswith(start)


def test_a_written_plan_can_be_checked_and_reported(capsys, study, tmp_path):
    _, out, _ = run(capsys, "plan", study(), "--json")
    written = tmp_path / "plan.json"
    written.write_text(out)
    assert run(capsys, "check", written)[0] == 0
    assert run(capsys, "report", written, "--format", "md")[0] == 0
    written.write_text(out.replace('"0.75"', '"0.5"').replace('"3/4"', '"1/2"'))
    code, out, err = run(capsys, "check", written)
    assert code == 2
    assert is_one_sentence(err)
    assert "hash" in err


def test_check(capsys, study):
    code, out, _ = run(capsys, "check", study())
    assert code == 0
    assert out.endswith("checks passed; not yet approved\n")
    code, out, _ = run(capsys, "check", study(epsilon=0.5))
    assert code == 1
    assert "DP001 error" in out
    assert out.endswith("refused\n")
    code, out, _ = run(capsys, "check", study(epsilon=0.5), "--json")
    assert code == 1
    form = json.loads(out)
    assert form["refused"] is True
    assert form["findings"][0]["code"] == "DP001"


REFUSALS = [
    (1, {"epsilon": 0.5}, "the plan's total epsilon is 0.75"),
    (1, {"inferred": 'inferred = ["numeric bounds: observed"]'}, "the schema was inferred from private data"),
    (2, {}, "people.csv: there is no such file"),
    (2, {"data": "$DPFRAMEWORK_TEST_UNSET/a.csv"}, "no variable expands in a study"),
]


@pytest.mark.parametrize(("expected", "changes", "says"), REFUSALS)
def test_run_stops_before_any_data_is_opened(capsys, study, tmp_path, monkeypatch, expected, changes, says):
    if expected == 1:  # there is a file, but nobody may look
        (tmp_path / "people.csv").write_text("ill,age\ntrue,1\n")
        monkeypatch.setattr("dpframework.tables.read_table", lambda *_, **__: pytest.fail("opened"))
    code, out, err = run(capsys, "run", study(**changes), "--out", tmp_path / "out")
    assert code == expected
    assert out == ""
    assert is_one_sentence(err)
    assert says in err
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))


@pytest.mark.usefixtures("with_data")
def test_run_writes_and_report_reads(capsys, study, tmp_path):
    out_dir = tmp_path / "out"
    code, out, err = run(capsys, "run", study(), "--out", out_dir)
    assert code == 0
    assert err == ""
    assert "private: the noise was drawn from the operating system's cryptographic generator" in out
    assert sorted(p.name for p in out_dir.iterdir()) == ["plan.json", "report.html", "results.json"]
    results = json.loads((out_dir / "results.json").read_text())
    assert results["private"] is True
    assert results["plan"] == json.loads((out_dir / "plan.json").read_text())["hash"]
    assert "tree" in results["results"]["ill-tree"]
    code, out, _ = run(capsys, "report", out_dir)
    assert code == 0
    assert "Result: ill-tree" in out
    code, out, _ = run(capsys, "report", out_dir, "--json")
    assert json.loads(out)["run"]["private"] is True
    code, _, _ = run(capsys, "report", out_dir, "--out", tmp_path / "again.html")
    assert code == 0
    again = (tmp_path / "again.html").read_text()
    assert again.replace("out", "study") == (out_dir / "report.html").read_text().replace("out", "study")


@pytest.mark.usefixtures("with_data")
def test_a_seeded_run_says_that_it_is_not_private(capsys, study, tmp_path):
    arguments = ("run", study(), "--out", tmp_path / "out", "--seed", 3, "--engine", "threads")
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert "NOT PRIVATE" in out
    assert "NOT PRIVATE" in (tmp_path / "out" / "report.html").read_text()
    first = json.loads((tmp_path / "out" / "results.json").read_text())
    (tmp_path / "empty").mkdir()
    code, out, _ = run(capsys, *arguments[:3], tmp_path / "empty", *arguments[4:], "--json")
    assert code == 0
    assert json.loads(out) == first == json.loads((tmp_path / "empty" / "results.json").read_text())


@pytest.mark.usefixtures("with_data")
def test_an_inferred_schema_is_never_reported_as_private(capsys, study, tmp_path):
    file = study(inferred='inferred = ["numeric bounds: observed"]', allow=["schema-inferred-from-data"])
    code, out, _ = run(capsys, "run", file, "--out", tmp_path / "out")
    assert code == 0
    assert "NOT PRIVATE: the schema was inferred" in out


@pytest.mark.usefixtures("with_data")
def test_out_is_refused_before_anything_is_spent(capsys, study, tmp_path, monkeypatch):
    monkeypatch.setattr("dpframework.tables.read_table", lambda *_, **__: pytest.fail("opened"))
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.tex").write_text("")
    (tmp_path / "file").write_text("")
    (tmp_path / "earlier" / "report.html").mkdir(parents=True)
    refusals = [
        ("taken", "holds other files, such as 'thesis.tex'; give a new folder"),
        ("earlier", "earlier: holds the results of an earlier run; give a new folder"),
        ("file", "is a file"),
        ("no/such/parent", "parent folder"),
    ]
    for out, says in refusals:
        code, _, err = run(capsys, "run", study(), "--out", tmp_path / out)
        assert code == 2
        assert is_one_sentence(err)
        assert says in err
    assert [p.name for p in (tmp_path / "taken").iterdir()] == ["thesis.tex"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_out_that_cannot_be_written(capsys, study, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    code, _, err = run(capsys, "run", study(), "--out", locked / "out")
    assert code == 2
    assert is_one_sentence(err)


@pytest.fixture
def stopping(study, monkeypatch):
    """A study of two trees, the second of which a given error stops after one release."""
    from dpframework.run.run_scopes_and_charges import Scope

    def written(error):
        charge, charged = Scope.charge, []

        def stop_or_charge(self, step):
            if any(path.startswith("second/") for path in charged):
                raise error
            made = charge(self, step)
            charged.append(made.path)
            return made

        monkeypatch.setattr(Scope, "charge", stop_or_charge)
        path = study()
        path.write_text(path.read_text() + tree_step("second", 0.25))
        return path

    return written


STOPS = [
    (ArithmeticError("in the middle"), 2, "error: step 'second': miner 'dp-id3' failed with ArithmeticError; "),
    (InputError("no such thing"), 2, "error: no such thing\n"),
    (ReleaseRefused("not planned"), 1, "refused: not planned\n"),
    (KeyboardInterrupt(), 130, "step 'second': interrupted\n"),
]


@pytest.mark.usefixtures("with_data")
@pytest.mark.parametrize(("error", "expected", "says"), STOPS, ids=lambda value: type(value).__name__)
def test_a_run_that_stops_keeps_what_had_finished(capsys, stopping, tmp_path, error, expected, says):
    out = tmp_path / "out"
    code, printed, err = run(capsys, "run", stopping(error), "--out", out)
    assert code == expected
    assert printed == ""
    note, last = err.splitlines(keepends=True)
    assert last.startswith(says)
    assert "in the middle" not in err  # a private run: the text may quote anything
    form = json.loads((out / "results.json").read_text())
    spent = f"stopped after {form['releases']} releases, {form['spent_text']} spent"
    assert note == f"{spent}; the results that were finished are in {out}\n"
    assert form["stopped"] in last
    assert list(form["results"]) == ["ill-tree"]
    assert form["private"] is True
    assert form["charges"][-1].startswith("second/")
    assert "<span>STOPPED before its end: " in (out / "report.html").read_text()
    assert not list(tmp_path.glob(".out*"))
    code, printed, _ = run(capsys, "report", out)
    assert code == 0
    assert "STOPPED before its end" in printed
    assert "Result: ill-tree" in printed
    assert "Result: second" not in printed


@pytest.mark.usefixtures("with_data")
def test_a_seeded_run_that_stops_says_where(capsys, stopping, tmp_path):
    arguments = ("run", stopping(ArithmeticError("in the middle")), "--out", tmp_path / "out", "--seed", 1, "--json")
    code, printed, err = run(capsys, *arguments)
    assert code == 2
    assert "ArithmeticError in test_cli.py, line " in err
    assert "(in the middle)" in err
    assert json.loads(printed) == json.loads((tmp_path / "out" / "results.json").read_text())


@pytest.mark.usefixtures("with_data")
def test_results_are_written_although_the_user_interrupts(capsys, study, tmp_path, monkeypatch):
    from dpframework.reports import html

    report = html.html_report

    def interrupted(plan, ran=None, **options):
        if ran is not None:
            signal.raise_signal(signal.SIGINT)
        return report(plan, ran, **options)

    monkeypatch.setattr(html, "html_report", interrupted)
    before = signal.getsignal(signal.SIGINT)
    code, _, err = run(capsys, "run", study(), "--out", tmp_path / "out")
    assert (code, err) == (0, "")
    assert (tmp_path / "out" / "results.json").exists()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_plan_that_cannot_be_reported_is_not_run(capsys, study, tmp_path, monkeypatch):
    def broken(*_, **__):
        raise OSError(2, "No such file or directory", "report.html.jinja")

    (tmp_path / "people.csv").write_text("ill,age\ntrue,1\n")
    monkeypatch.setattr("dpframework.reports.html.require_reportable", broken)
    monkeypatch.setattr("dpframework.tables.read_table", lambda *_, **__: pytest.fail("opened"))
    code, out, err = run(capsys, "run", study(), "--out", tmp_path / "out")
    assert (code, out, err) == (2, "", "error: report.html.jinja: No such file or directory\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("with_data")
def test_results_that_cannot_be_moved_are_kept(capsys, study, tmp_path, monkeypatch):
    from dpframework.tables import reading

    read = reading.read_table

    def written_by_another_run_meanwhile(*arguments, **options):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "results.json").write_text("theirs")
        return read(*arguments, **options)

    monkeypatch.setattr(reading, "read_table", written_by_another_run_meanwhile)
    code, _, err = run(capsys, "run", study(), "--out", tmp_path / "out")
    assert code == 2
    assert is_one_sentence(err)
    (kept,) = tmp_path.glob(".out.*.kept")
    assert str(kept) in err
    assert sorted(p.name for p in kept.iterdir()) == ["plan.json", "report.html", "results.json"]
    assert (tmp_path / "out" / "results.json").read_text() == "theirs"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("plna",), "No such command 'plna'"),
        (("plan",), "see 'dpframework plan --help'"),
        (("plan", "none.toml"), "none.toml: there is no such file"),
        (("plan", "none.json"), "none.json: there is no such file"),
        (("plan", "."), "is a folder"),
        (
            ("plan", "x.toml", "--format", "xml"),
            "'--format': 'xml' is unknown; accepted are tree, mermaid, dot, json, html",
        ),
        (("run", "none.toml", "--out", "o"), "none.toml: there is no such file"),
        (("run", "none.toml", "--out", "o", "--engine", "memry"), "no engine is named 'memry'; did you mean 'memory'?"),
        (("run", "none.toml", "--out", "o", "--seed", "-1"), "--seed"),
        (("report", "none.toml"), "there is no such file"),
        (("report", "none"), "a study file (.toml), a plan (.json) or a folder that run wrote is expected"),
        (("report", "."), ".: is not the folder of a run"),
        (("report", "x.toml", "--format", "xml"), "'xml' is unknown; accepted are terminal, md, html"),
        (("run", "plan.json", "--out", "o"), "plan.json: a plan cannot be run; give the study file"),
        (("run", "none.toml", "--out="), "'--out': a name is expected, not an empty text"),
        (("run", "none.toml", "--out", "o", "--seed", "x"), "'--seed': 'x' is not a whole number"),
        (("miners", "dp-id4"), "no miner is named 'dp-id4'; did you mean 'dp-id3'?"),
        (("mechanisms", "laplac"), "did you mean 'laplace'?"),
        (("schema", "show", "none.toml"), "there is no such file"),
        (("schema", "infer", "none.csv"), "there is no such file"),
        (("schema", "infer", "none.csv", "--id", "who"), "--right"),
        (("schema", "infer", "none.csv", "--bins", "abc"), "'--bins': 'abc' is not a whole number"),
        (("schema", "infer", "none.csv", "--bins", "0"), "--bins must be from 1"),
        (("schema", "infer", "none.csv", "--max-categories", "0"), "--max-categories must be at least 1"),
        (("report", "none.toml", "--json", "--format", "md"), "leave out --format"),
        (("report", "none.toml", "--json", "--out", "o.html"), "leave out --out"),
        (("report", "none.toml", "--dossier", "--json", "--out", "o.html"), "leave out --out"),
        (("report", "none.toml", "--registry", "--format", "html"), "cannot be combined with --dossier or --format"),
        (("report", "none.toml", "--registry", "--dossier"), "cannot be combined with --dossier or --format"),
        (("plan", "none.toml", "--json", "--out", "o.html"), "leave out --out"),
        (("plan", "none.toml", "--json", "--format", "dot"), "leave out --format"),
        (("ledger", "show", "none", "--json", "--out", "o.html"), "leave out --out"),
        (("ledger", "show", "none", "--json", "--group-by", "month"), "leave out --group-by"),
        (("ledger", "show", "none", "--data-set", "a", "--out", "o.csv", "--group-by", "month"), "give no --out"),
        (("run", "none.toml", "--out", "o", "--by", "ann"), "--by has no effect on a run without a ledger"),
        (("run", "none.toml", "--out", "o", "--purpose", "x"), "--purpose has no effect on a run without a ledger"),
        (("plan", "none.json", "--engine", "threads"), "--engine has no effect on none.json, a plan that was made"),
        (("plan", "none.json", "--diff", "a.json", "--engine", "threads"), "--engine has no effect on two plans"),
        (("plan", "none.toml", "--diff", "a.toml", "--rows", "9"), "--rows has no effect on a difference"),
        (("plan", "none.toml", "--format", "dot", "--rows", "9"), "--rows has no effect on a plan in the format dot"),
        (("plan", "none.toml", "--json", "--verified", "v"), "--verified has no effect on a plan in the format json"),
        (("report", "none.toml", "--format", "csv", "--rows", "9"), "--rows has no effect on a list of releases"),
        (("report", "none.toml", "--out", "o.json", "--ledger", "l"), "--ledger has no effect on a list of releases"),
        (
            ("schema", "check", "none.csv", "none.toml", "--rows-per-unit", "2"),
            "has no effect on a check without --unit",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(capsys, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert is_one_sentence(err)
    assert says in err


def test_a_difference_does_not_tell_of_the_options_that_both_plans_got(capsys, study, tmp_path):
    """The engine and the records were given to the first plan only, and the second one seemed to change them."""
    file, records = study(), tmp_path / "verified.json"
    assert (
        run(
            capsys,
            "verify",
            "dp-id3",
            "--example",
            "max",
            "--replays",
            100,
            "--runs",
            0,
            "--seconds",
            1,
            "--record",
            records,
        )[0]
        == 0
    )
    for options in (("--engine", "threads"), ("--verified", records)):
        code, out, _ = run(capsys, "plan", file, "--diff", file, *options)
        assert code == 0
        assert out.endswith("no difference\n")
    _, text, _ = run(capsys, "plan", file, "--json")
    (tmp_path / "plan.json").write_text(text)
    _, out, _ = run(capsys, "plan", tmp_path / "plan.json", "--diff", file, "--engine", "threads")
    assert "code: the engine is 'threads', not 'memory'" in out


@pytest.mark.parametrize("text", ["", "{}", "[]", "nonsense", '{"schema_version": 99}', '{"schema_version": 1}'])
def test_plans_that_dpframework_did_not_write(capsys, tmp_path, text):
    path = tmp_path / "plan.json"
    path.write_text(text)
    code, _, err = run(capsys, "check", path)
    assert code == 2
    assert is_one_sentence(err)
    assert str(path) in err
    assert "Error" not in err


def test_a_schema_is_no_study(capsys, study, tmp_path):
    study()
    code, _, err = run(capsys, "check", tmp_path / "people.schema.toml")
    assert code == 2
    assert err.endswith(
        "people.schema.toml: looks like a schema; a study is expected, with [data], [privacy] and [[step]]\n"
    )


@pytest.mark.usefixtures("with_data")
def test_a_results_folder_that_does_not_fit(capsys, study, tmp_path):
    out = tmp_path / "out"
    run(capsys, "run", study(), "--out", out, "--seed", 1)
    results = out / "results.json"
    good = results.read_text()
    for text, says in [("[1]", "not results"), ("{", "not JSON"), ("{}", "not results")]:
        results.write_text(text)
        code, _, err = run(capsys, "report", out)
        assert (code, says in err) == (2, True)
    form = json.loads(good)
    results.write_text(json.dumps({**form, "plan": "0" * 64}))
    code, _, err = run(capsys, "report", out)
    assert code == 2
    assert "another plan" in err


def test_each_parameter_of_each_miner_is_explained(capsys):
    _, out, _ = run(capsys, "miners", "--json")
    for name in [miner["name"] for miner in json.loads(out)["miners"]]:
        _, out, _ = run(capsys, "miners", name, "--json")
        assert [one["name"] for one in json.loads(out)["parameters"] if not one["doc"]] == [], name


def test_miners_and_mechanisms(capsys):
    code, out, _ = run(capsys, "miners")
    assert code == 0
    assert "dp-id3" in out
    _, out, _ = run(capsys, "miners", "dp-id3")
    assert "target: str, required\n    The class attribute." in out
    assert "max_depth: int | None, default None" in out
    _, out, _ = run(capsys, "miners", "--json")
    form = json.loads(out)
    assert {"name", "plugin", "summary"} == set(form["miners"][0])
    assert form["problems"] == []
    _, out, _ = run(capsys, "mechanisms", "--json")
    assert "laplace" in [m["name"] for m in json.loads(out)["mechanisms"]]
    _, out, _ = run(capsys, "mechanisms", "laplace", "--json")
    assert [p["name"] for p in json.loads(out)["parameters"]] == ["epsilon"]


def test_plugin_problems_are_warnings(capsys, monkeypatch):
    from dpframework.study.plugin_registry import Problem, registry

    monkeypatch.setattr(registry(), "problems", [Problem("torn", "cannot be imported")])
    code, out, err = run(capsys, "miners")
    assert code == 0
    assert err == "warning: plugin 'torn': cannot be imported\n"
    code, out, err = run(capsys, "miners", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["problems"] == ["plugin 'torn': cannot be imported"]


@pytest.mark.usefixtures("with_data")
def test_schema_infer_and_show(capsys, tmp_path):
    made = tmp_path / "made.toml"
    arguments = ("schema", "infer", tmp_path / "people.csv", "--numeric", "quantile", "--bins", 5)
    code, out, err = run(capsys, *arguments, "--out", made)
    assert code == 0
    assert "is not private" in err
    assert is_one_sentence(err)
    code, out, _ = run(capsys, *arguments)
    assert out == made.read_text()
    code, out, _ = run(capsys, *arguments, "--json")
    assert json.loads(out)["inferred"]
    code, out, _ = run(capsys, "schema", "show", made)
    assert "inferred from private data: numeric cuts: quantile" in out
    code, out, _ = run(capsys, "schema", "show", made, "--json")
    assert [a["name"] for a in json.loads(out)["attribute"]] == ["ill", "age"]
    before = made.read_text()
    code, _, err = run(capsys, *arguments, "--out", made)
    assert code == 2
    assert "exists" in err
    code, _, err = run(capsys, *arguments, "--numeric", "observed")
    assert (code, err) == (2, "error: --bins has no effect on --numeric observed; leave it out\n")
    assert made.read_text() == before


def test_schema_check_tells_the_owner_what_does_not_fit(capsys, tmp_path):
    def check(text, *more):
        (tmp_path / "rows.csv").write_text(text)
        return run(capsys, "schema", "check", tmp_path / "rows.csv", tmp_path / "s.toml", *more)

    schema = dpf.Schema(
        [
            dpf.Boolean("ill"),
            dpf.Numeric("age", 0, 99, bins=3, missing=True),
            dpf.Categorical("town", ["A", "1"], missing=True),
        ],
        max_rows=3,
    )
    schema.dump(tmp_path / "s.toml")
    code, out, err = check("ill,age,town\nyes,3,A\n0,,1.0\n")
    assert (code, out) == (0, "the data fits the schema\n")
    assert err.startswith("NOT private: ")
    text = "ill,age,town\nyes,3,A\n,-1,B\nmaybe,old,B\n1,120,\n"
    code, out, err = check(text)
    assert code == 1
    assert err.startswith("NOT private: ")
    assert out.splitlines() == [
        "ill: values that are neither true nor false in 1 row, such as 'maybe'",
        "ill: missing values (the schema does not set missing = true) in 1 row",
        "age: values that are not numbers in 1 row, such as 'old'",
        "age: numbers beyond its bounds 0 and 99 in 2 rows, such as '-1', '120'",
        "town: values that are not in its public list in 2 rows, such as 'B'",
        "the table: max_rows = 3 in the schema, but the number of rows is 4",
        "the data does not fit the schema; correct the cells or the schema",
    ]
    code, out, err = check(text, "--json")
    form = json.loads(out)
    assert (code, form["fits"], form["private"], len(form["misfits"])) == (1, False, False, 6)
    assert form["misfits"][0] == {
        "where": "ill",
        "what": "values that are neither true nor false",
        "rows": 1,
        "examples": ["maybe"],
    }
    unfit = "the data does not fit the schema; correct the cells or the schema\n"
    assert check("ill,town\nyes,A\n")[:2] == (1, f"age: no such column in rows.csv\n{unfit}")
    for text, says in (("ill,age,town\n1\n", "more or fewer fields"), ("", "is empty")):
        code, out, err = check(text)
        assert (code, out) == (2, "")
        assert is_one_sentence(err)
        assert says in err
    assert check("ill,age,town\n", "--id", "who")[0] == 2
    assert run(capsys, "schema", "check", tmp_path / "none.csv", tmp_path / "s.toml")[0] == 2


def test_schema_check_of_two_views(capsys, tmp_path):
    schema = dpf.Schema([dpf.Boolean("ill", view="left"), dpf.Numeric("age", 0, 99, bins=3, view="right")], rows=2)
    schema.dump(tmp_path / "s.toml")
    (tmp_path / "l.csv").write_text("who,ill\na,true\nb,false\nb,false\n,true\nc,1\n")
    (tmp_path / "r.csv").write_text("who,age\nb,3\na,50\nc ,50\n")
    arguments = ("schema", "check", tmp_path / "l.csv", tmp_path / "s.toml", "--right", tmp_path / "r.csv")
    code, out, _ = run(capsys, *arguments, "--id", "who")
    assert code == 1
    assert out.splitlines()[:-1] == [
        "l.csv: who: no id (such rows join nothing) in 1 row",
        "l.csv: who: ids that occur more than once, and so join nothing in 2 rows, such as 'b'",
    ]
    code, out, _ = run(capsys, *arguments)
    assert "5 and 3 rows, and no id that joins them" in out


def test_schema_infer_of_two_views(capsys, tmp_path):
    (tmp_path / "l.csv").write_text("who,ill\na,true\nb,false\n")
    (tmp_path / "r.csv").write_text("who,age\nb,3\na,50\n")
    code, out, _ = run(capsys, "schema", "infer", tmp_path / "l.csv", "--right", tmp_path / "r.csv", "--id", "who")
    assert code == 0
    assert 'view = "left"' in out
    assert 'view = "right"' in out


def test_schema_infer_names_its_options(capsys, tmp_path):
    (tmp_path / "names.csv").write_text("exclude\n" + "".join(f"name-{k}\n" for k in range(20)))
    code, _, err = run(capsys, "schema", "infer", tmp_path / "names.csv", "--max-categories", 5)
    assert code == 2
    assert err.endswith(
        "column 'exclude' has more than 5 distinct values; leave it out with --exclude, declare it open with --open, "
        "or raise --max-categories\n"
    )
    code, _, err = run(capsys, "schema", "infer", tmp_path / "names.csv", "--exclude", "exclud")
    assert err.endswith("there is no 'exclud'; did you mean 'exclude'?\n")
    (tmp_path / "empty.csv").write_text("a,b\n,\n")
    code, _, err = run(capsys, "schema", "infer", tmp_path / "empty.csv")
    assert (code, err.count("leave it out with --exclude"), err.count("with exclude")) == (2, 2, 0)


def test_schema_infer_of_one_column(capsys, tmp_path):
    (tmp_path / "one.csv").write_text("ill\ntrue\nfalse\n")
    _, out, _ = run(capsys, "schema", "infer", tmp_path / "one.csv", "--out", tmp_path / "one.toml")
    assert out.endswith("one.toml: 1 attribute\n")


COMMANDS = ["miners", "mechanisms", "plan", "check", "run", "report", "demo", "schema infer", "schema show"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(capsys, command):
    code, out, err = run(capsys, *command.split(), "--help")
    assert code == 0
    assert run(capsys, *command.split(), "-h") == (code, out, err)
    assert "bool" not in out
    assert f"Example: dpframework {command}" in " ".join(out.split())
    assert err == ""
    assert "--json" in out


def leaves(command, path=()):
    """Yield each command that has none below it, with its words."""
    below = {name: one for name, one in getattr(command, "commands", {}).items() if not one.hidden}
    if not below:
        yield " ".join(path), command
    for name, one in below.items():
        yield from leaves(one, (*path, name))


def test_help_is_broken_at_the_width_of_the_terminal_alone(capsys, monkeypatch):
    """A docstring's own line breaks would end lines of the help early."""
    monkeypatch.setenv("COLUMNS", "72")
    _, out, _ = run(capsys, "describe", "--help")
    assert "smallest. Read and change the file before you plan it." in map(str.strip, out.splitlines())


def test_no_help_has_a_bracket_which_would_be_taken_for_markup():
    texts = [one.help or "" for _, command in leaves(program()) for one in (command, *command.params)]
    assert len(texts) > 100
    assert [text for text in texts if "[" in text] == []


def test_every_command_has_examples_that_it_takes():
    """Each is parsed as the command line parses it: no word or option of an example is unknown."""
    assert list(program().commands) == list(MODULES)
    assert all(name in program(name).commands for name in MODULES)  # made without the modules of the others
    found = dict(leaves(program()))
    assert len(found) > 15
    for name, command in found.items():
        text = command.epilog.removeprefix("Example: ")
        for example in text.split("; "):
            words = shlex.split(example)
            assert " ".join(words[: 1 + len(name.split())]) == f"dpframework {name}"
            command.make_context(name, words[1 + len(name.split()) :])


def test_version(capsys):
    assert run(capsys, "--version") == (0, f"dpframework {dpf.__version__}\n", "")


def process(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "dpframework", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


@pytest.mark.usefixtures("with_data")
def test_a_pipe_shows_no_progress_and_no_colours(study, tmp_path):
    done = process("run", study(), "--out", tmp_path / "out", "--seed", 1)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout


def test_a_reader_that_goes_away(study):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "dpframework", "plan", str(study())]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert done.returncode == 141
    assert done.stderr == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["plan", "report"])
def test_a_full_disk(study, command):
    with open("/dev/full", "w") as full:
        arguments = [sys.executable, "-m", "dpframework", command, str(study())]
        done = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: cannot write: No space left on device\n"


@pytest.mark.usefixtures("with_data")
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1:strict"])
def test_streams_that_lack_characters(study, tmp_path, encoding):
    (tmp_path / "größe").mkdir()
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    out = tmp_path / "größe" / "out"
    commands = [
        ("plan", study()),
        ("run", study(), "--out", out),
        ("report", out, "--format", "md"),
        ("report", out),
        ("report", out, "--format", "html"),
    ]
    # Everything is printed through the same streams: one encoding tries all of it.
    for command in commands if encoding == "ascii" else commands[:1]:
        done = process(*command, env=environment, encoding="latin-1")
        assert (done.returncode, done.stderr) == (0, "")
        assert "?" in done.stdout or done.stdout == ""
    assert encoding != "ascii" or "├─" in (out / "report.html").read_text(encoding="utf-8")


def test_a_schema_is_not_printed_with_other_values(tmp_path):
    (tmp_path / "turtles.csv").write_text("name\nżółw\nrak\n", encoding="utf-8")
    arguments = ("schema", "infer", tmp_path / "turtles.csv")
    done = process(*arguments, env={**os.environ, "PYTHONIOENCODING": "cp1252"})
    assert done.returncode == 2
    assert done.stdout == ""
    assert "give a file with --out" in done.stderr
    done = process(*arguments, "--out", tmp_path / "s.toml", env={**os.environ, "PYTHONIOENCODING": "cp1252"})
    assert done.returncode == 0
    assert "żółw" in (tmp_path / "s.toml").read_text(encoding="utf-8")


def test_json_holds_whatever_a_result_holds():
    text = json_text({"a": [float("nan"), np.float64("inf"), np.arange(2)], "b": {3: (1.5, {2})}})
    assert json.loads(text) == {"a": [None, None, [0, 1]], "b": {"3": [1.5, "{2}"]}}


def test_interrupted(capsys, monkeypatch, study):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpframework.cli.plan.open_plan", interrupt)
    code, out, err = run(capsys, "plan", study())
    assert (code, out, err.strip()) == (130, "", "interrupted")


def test_a_working_folder_that_is_gone_is_named(capsys, monkeypatch, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run(capsys, "miners") == (2, "", "error: the working folder was deleted; change to another one\n")


def test_planning_imports_nothing_heavy(study):
    path = study(data="/nowhere.csv")
    heavy = {
        "polars",
        "narwhals",
        "numba",
        "sklearn",
        "scipy",
        "dp_accounting",
        "opendp",
        "pandas",
        "randomgen",
        "jinja2",
        "pydantic",
        "rich",
        "dpframework.cli.ledgers",
        "dpframework.basics.keys_miner",
        "dpframework.tables.dask_engine",
        "dpframework_distance.miner",  # the study has none of their miners
        "dpframework_greedy.serenade",
    }
    code = "import sys; from dpframework.cli import main; main(['plan', sys.argv[1]]); print(*sys.modules, sep=',')"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert not heavy & set(done.stdout.splitlines()[-1].split(","))
