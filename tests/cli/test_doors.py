"""What comes in from strangers: every file and number that cannot be used ends in one clear sentence, and no hang."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import dpframework as dpf
from dpframework.cli import main
from dpframework.cli.common import say
from dpframework.ledger import entry_hash_chain
from dpframework.plan.plan import hash_of

SCHEMA = '[[attribute]]\nname = "ill"\nkind = "boolean"\n[[attribute]]\nname = "old"\nkind = "boolean"\n'
STUDY = """
[data]
path = {data}
schema = "people.schema.toml"
[privacy]
epsilon = {epsilon}
[[step]]
name = "tree"
miner = "dp-id3"
epsilon = {epsilon}
params = {{ target = "ill" }}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.schema.toml").write_text(SCHEMA)
    (tmp_path / "people.csv").write_text("ill,old\nyes,no\nno,no\n")
    return tmp_path


def write_study(folder, *, data='"people.csv"', epsilon="1", after=""):
    (folder / "study.toml").write_text(STUDY.format(data=data, epsilon=epsilon) + after)


def sentence(capsys, *arguments) -> str:
    """Run a command that must refuse bad input; return its one sentence."""
    assert main(list(arguments)) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert "bug" not in said
    assert len(said) < 2200
    return said


DEEP = "x = " + "[" * 5000 + "]" * 5000
DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("study", "told"),
    [
        ({"after": DEEP}, "nested deeper than"),
        ({"epsilon": DIGITS}, "a number in it has thousands of digits"),
        ({"epsilon": f'"{DIGITS}"'}, "epsilon"),
        ({"data": '"people\\u0000.csv"'}, "cannot be printed"),
        ({"after": f'allow = ["{"x" * 9000}"]'}, "study.toml"),
    ],
    ids=["deep", "digits", "digits in a text", "NUL", "long"],
)
def test_what_a_parser_cannot_take_is_said_in_one_sentence(folder, capsys, study, told):
    write_study(folder, **study)
    (folder / "out").mkdir()
    assert told in sentence(capsys, "run", "study.toml", "--out", "out/results")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"schema_version": ' + DIGITS + "}", "\x00", ""])
@pytest.mark.parametrize("command", ["check", "plan", "report"])
def test_a_plan_file_that_a_parser_cannot_take(folder, capsys, command, text):
    (folder / "plan.json").write_text(text)
    assert "plan.json" in sentence(capsys, command, "plan.json")


def test_a_pipe_or_a_device_is_refused_at_once(folder, capsys):
    write_study(folder)
    os.mkfifo(folder / "pipe.toml")
    for path in ("pipe.toml", "/dev/zero"):
        assert "not a regular file" in sentence(capsys, "check", path)
    os.mkfifo(folder / "pipe.csv")
    write_study(folder, data='"pipe.csv"')
    assert "not a regular file" in sentence(capsys, "run", "study.toml", "--out", "out")
    os.mkfifo(folder / "pipe.ledger")
    assert "not a regular file" in sentence(capsys, "ledger", "show", "pipe.ledger")


def test_a_pipe_or_a_device_is_no_table(folder):
    os.mkfifo(folder / "pipe.csv")
    (folder / "zero.parquet").symlink_to("/dev/zero")
    schema = dpf.Schema([dpf.Boolean("ill")])
    for path in ("pipe.csv", "zero.parquet"):
        with pytest.raises(dpf.InputError, match="not a regular file"):
            dpf.read_table(path, schema)


@pytest.mark.parametrize("command", [("check",), ("plan",), ("report",), ("ledger", "show"), ("schema", "infer")])
def test_standard_input_is_no_file(folder, capsys, command):
    assert "give a file's name" in sentence(capsys, *command, "-")


def test_a_long_value_is_cut_where_it_is_quoted():
    error = dpf.InputError(f"epsilon is {'9' * 5000}; a finite number is needed")
    assert str(error) == f"epsilon is {'9' * 100}...{'9' * 19}; a finite number is needed"
    assert len(str(dpf.InputError("many words " * 5000))) < 2100
    assert str(dpf.InputError("short")) == "short"


def test_what_an_error_quotes_cannot_steer_the_terminal(folder, capsys):
    write_study(folder)
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(text.replace('name = "tree"', 'name = "\\u001b[2J\\u202etree"'))
    said = sentence(capsys, "check", "study.toml")
    assert "\\x1b[2J\\u202etree" in said
    assert said.rstrip("\n").isprintable()
    say("half a \ud800 character")
    assert capsys.readouterr().err == "half a \\ud800 character\n"


def test_a_name_that_is_too_long_for_a_plot(folder, capsys):
    (folder / "experiment.toml").write_text(f'[[data]]\nname = "{"a b " * 3000}"\n[[method]]\n[[measure]]\n')
    assert "more than 200 characters" in sentence(capsys, "experiment", "experiment.toml")


@pytest.mark.parametrize("key", ["name", "self", "kind"])
def test_a_parameter_may_have_any_name(folder, capsys, key):
    write_study(folder)
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(text.replace("{ target", f'{{ {key} = "x", target'))
    assert f"'{key}'" in sentence(capsys, "check", "study.toml")


def test_a_name_that_is_too_long_for_a_file(folder, capsys):
    write_study(folder, data=f'"{"9" * 5000}.csv"')
    for command in (("run", "study.toml", "--out", "out"), ("check", "9" * 5000), ("ledger", "show", "9" * 5000)):
        assert "ile name too long" in sentence(capsys, *command)


def test_an_experiment_starts_no_more_processes_than_there_are_processors(folder, capsys):
    (folder / "experiment.toml").write_text("")
    assert "--force" in sentence(capsys, "experiment", "experiment.toml", "--jobs", "1000")


@pytest.mark.parametrize("after", [0.05, 0.15, 0.3, 0.6])
def test_ctrl_c_while_it_starts_ends_in_one_line(folder, after):
    write_study(folder)
    code = "import sys; from dpframework.__main__ import main; print(flush=True); sys.exit(main())"
    command = [sys.executable, "-c", code, "plan", "study.toml"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) in ((130, "interrupted\n"), (0, "")), said


def plan_form() -> dict:
    schema = dpf.Schema([dpf.Boolean("ill"), dpf.Numeric("age", 0, 100, cuts=[18])])
    study = dpf.Study(schema, epsilon=1)
    study.add("tree", dpf.miner("dp-id3", target="ill", epsilon=1))
    return json.loads(study.plan().to_json())


def places(form, path=()):
    """Yield the path of every value within JSON content."""
    items = form.items() if isinstance(form, dict) else enumerate(form) if isinstance(form, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def replaced(form, path, value):
    copy = json.loads(json.dumps(form))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copy


STRANGE = (None, True, 7, -1, 1e400, "x", "", "\ud800", "9" * 5000, "1/0", [], {}, [[]], {"kind": "step"})


def test_a_plan_of_wrong_types_with_a_fitting_hash_ends_in_a_sentence_or_is_a_plan(folder, capsys):
    """Sixty fields of a plan, each replaced by one strange value (seeded), the hash computed anew."""
    form = plan_form()
    rng = np.random.default_rng(3)
    accepted = 0
    paths = list(places(form))
    for path in (paths[k] for k in rng.choice(len(paths), 60, replace=False)):
        broken = replaced(form, path, STRANGE[rng.integers(len(STRANGE))])
        broken["hash"] = hash_of({key: value for key, value in broken.items() if key != "hash"})
        (folder / "plan.json").write_text(json.dumps(broken))
        for command in (["check"], ["plan"], ["report", "--format", "md"]):
            code = main([*command, "plan.json"])
            said = capsys.readouterr().err
            assert code in (0, 1, 2)
            assert "bug" not in said, (path, said)
            assert said.count("\n") <= 1
            accepted += code != 2
    assert accepted


def test_a_plan_field_that_is_wrong_is_named():
    broken = replaced(plan_form(), ("root", "parts", 0, "kind"), 5)
    with pytest.raises(dpf.InputError, match=r"root\.parts\[0\]\.kind must be"):
        dpf.StudyPlan.from_json(json.dumps(broken))


def used_ledger(folder):
    """Return the entries of a ledger with a run."""
    schema = dpf.Schema([dpf.Boolean("ill"), dpf.Numeric("age", 0, 100, cuts=[18])])
    study = dpf.Study(schema, epsilon=1)
    study.add("tree", dpf.miner("dp-id3", target="ill", max_depth=1, epsilon=1))
    ledger = dpf.Ledger.create(folder / "people.ledger")
    ledger.open("people", epsilon=3)
    ledger.approve("people", study.plan(), by="officer", runs=2)
    study.run(dpf.Table.from_codes(schema, np.array([[0, 1, 1], [0, 1, 0]])), ledger=ledger.run("people"))
    with entry_hash_chain.Chain(ledger.path).reading() as transaction:
        return transaction.read()


def outcomes_with(folder, capsys, kept, entry, content):
    """Yield the exit code and the sentence of each command on a ledger with other content in an entry, chained anew."""
    place = folder / "odd.ledger"
    place.unlink(missing_ok=True)
    first = {key: value for key, value in kept[0].content.items() if key != "format"}
    odd = entry_hash_chain.Chain.create(place, content if entry.number == 1 and isinstance(content, dict) else first)
    with odd.writing() as transaction:
        transaction.read()
        for other in kept[1:]:
            transaction.append(other.kind, content if other is entry else other.content)
    for command in (["show"], ["show", "--data-set", "people"], ["verify"]):
        yield main(["ledger", command[0], str(place), *command[1:]]), capsys.readouterr().err


def test_a_ledger_with_an_odd_entry_that_is_well_chained_is_shown_or_refused(folder, capsys):
    """Three fields of each entry of a used ledger, each replaced by one strange value, the chain written anew."""
    kept = used_ledger(folder)
    rng = np.random.default_rng(4)
    finite = [value for value in STRANGE if value != 1e400]  # which a ledger cannot write
    for entry in kept:
        paths = list(places(dict(entry.content)))
        for path in (paths[k] for k in rng.choice(len(paths), min(len(paths), 3), replace=False)):
            broken = replaced(entry.content, path, finite[rng.integers(len(finite))])
            for code, said in outcomes_with(folder, capsys, kept, entry, broken):
                assert code in (0, 1, 2)
                assert "bug" not in said, (entry.kind, path, said)
                assert said.count("\n") <= 1


def test_an_amount_of_a_billion_digits_is_refused_and_not_written_out(folder, capsys):
    kept = used_ledger(folder)
    (run,) = (entry for entry in kept if entry.kind == "run")
    broken = replaced(run.content, ("amount", "pure", "replace-one"), "1e999999999")
    for code, said in outcomes_with(folder, capsys, kept, run, broken):
        assert code == 1
        assert f"entry {run.number} is not one that dpframework makes: field amount.pure.replace-one must be" in said


def test_a_ledger_whose_list_of_tables_is_no_text_is_damaged(folder, capsys):
    used_ledger(folder)
    place = folder / "people.ledger"
    place.write_bytes(place.read_bytes().replace(b"CREATE TABLE entry", b"CREATE TABL\xd0 entry"))
    assert main(["ledger", "show", str(place)]) == 2
    assert capsys.readouterr().err == f"error: {place}: is damaged; take this ledger from a backup\n"


def test_half_a_character_in_a_ledger_is_refused_before_it_is_written_elsewhere(folder, capsys):
    kept = used_ledger(folder)
    for code, said in outcomes_with(folder, capsys, kept, kept[0], {"id": "\ud800"}):
        assert code == 1
        found = "holds half a character (a lone surrogate), which no file in UTF-8 can hold"
        assert f"entry 1 is not one that dpframework makes: {found}" in said
