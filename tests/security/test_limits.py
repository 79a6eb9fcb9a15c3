"""Bombs: small files that ask for very much are refused in a sentence, in little time and memory."""

from __future__ import annotations

import gzip
import json
import re
import resource
import time
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from people import SCHEMA_FILE, TREE_STUDY

import dpframework as dpf
from dpframework.cli import main
from dpframework.facts import input_limits
from dpframework.facts.json_reader_and_schema_check import parsed_json
from dpframework.facts.toml import parse_toml
from dpframework.plan import Budget, PublicFacts
from dpframework.plan.nodes import either, parallel, repeat, sequential
from dpframework.tables import parquet_files, table_builder

SECONDS = 10
SCHEMA = dpf.Schema([dpf.Boolean("ill")])
AROUND = {
    "sequential": lambda node: sequential(node),
    "named": lambda node: sequential(node, name="s"),
    "parallel": lambda node: parallel(node, by=SCHEMA["ill"]),
    "either": lambda node: either(node),
    "repeat": lambda node: repeat(1, node),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A study with its data."""
    monkeypatch.chdir(tmp_path)
    Path("people.schema.toml").write_text(SCHEMA_FILE)
    Path("study.toml").write_text(TREE_STUDY)
    Path("people.csv").write_text("ill,age\n" + "yes,20\nno,60\n" * 20)
    return tmp_path


def sentence(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line that was said."""
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1, said
    return said


KEYS = {
    "bare": ".".join("a" * 20_000) + " = 1",
    "header": "[" + ".".join("a" * 20_000) + "]",
    "list": "[[" + " . ".join(["'x'", '"y"', "z"] * 10) + "]]",
    "inline": "a = { " + ".".join("b" * 17) + " = 1 }",
}


@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_many_parts_is_refused_before_it_is_read(folder, capsys, key):
    for name, commands in (
        ("study.toml", ["plan", "study.toml"]),
        ("people.schema.toml", ["schema", "show", "people.schema.toml"]),
    ):
        Path(name).write_text(KEYS[key])
        began = time.process_time()
        assert main(commands) == 2
        assert f"a key of more than {input_limits.MOST_KEY_PARTS} parts" in sentence(capsys)
        assert time.process_time() - began < SECONDS


PARTS = st.sampled_from(["a", "b-1", "_", '"x.y"', "'.'", '"\\""'])
TEXTS = st.text("a.\"'\\#= \n[]{}", max_size=80)


@given(st.lists(PARTS, min_size=1, max_size=24), st.sampled_from([".", " . ", "\t."]), TEXTS)
@settings(max_examples=300)
def test_keys_alone_are_counted(parts, dot, text):
    """A text or a comment may hold as many dots as it likes; a key may have as many parts as the limit says."""
    written = json.dumps(text).replace("\x7f", "\\u007f")
    form = f"# {dot.join('a' * 40)}\nx = {written}\ny = 'a{dot.join('a' * 40)}'\n"
    form += f"z = \"\"\"{dot.join('b' * 40)}\"\"\"\nw = '''{dot.join('b' * 40)}'''\nk.{dot.join(parts)} = 1\n"
    if len(parts) + 1 > input_limits.MOST_KEY_PARTS:
        with pytest.raises(dpf.InputError, match="a key of more than"):
            parse_toml(form)
    else:
        assert parse_toml(form)["x"] == text


@pytest.mark.parametrize("text", ["x" * 3_000_000, '"' * 999_999, "'" * 999_999, '"\\' * 999_999, "a." * 999_999])
def test_a_key_is_looked_for_in_a_time_that_grows_with_the_file(text):
    began = time.process_time()
    with pytest.raises(dpf.InputError):
        parse_toml(text + "." * 40)
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize("depth", [input_limits.MOST_NESTED, 500, 5_000])
def test_what_is_nested_too_deep_is_refused(depth):
    for form in ("[" * depth + "]" * depth, "{a=" * depth + "1" + "}" * depth):
        with pytest.raises(dpf.InputError, match="is nested deeper than"):
            parse_toml(f"b = [{form}]")
    with pytest.raises(dpf.InputError, match="is nested deeper than"):
        parse_toml("b = " + "{a.a.a.a.a.a.a.a=" * (depth // 8 + 1) + "1" + "}" * (depth // 8 + 1))
    deep = "[" * (depth + input_limits.MOST_NESTED_JSON) + "]" * (depth + input_limits.MOST_NESTED_JSON)
    with pytest.raises(dpf.InputError, match="is nested deeper than"):
        parsed_json(deep)


def test_what_is_nested_as_deep_as_may_be_is_read():
    depth = input_limits.MOST_NESTED
    assert parse_toml("b = " + "[" * depth + "]" * depth)
    assert parsed_json("[" * input_limits.MOST_NESTED_JSON + "]" * input_limits.MOST_NESTED_JSON)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("study.toml", ["check", "study.toml"]),
        ("people.schema.toml", ["check", "study.toml"]),
        ("people.schema.toml", ["schema", "show", "people.schema.toml"]),
        ("plan.json", ["check", "plan.json"]),
        ("found.json", ["check", "study.toml", "--verified", "found.json"]),
    ],
)
def test_a_file_that_is_too_large_is_not_read(folder, capsys, name, command):
    """It is sparse: its size is a name's, and memory is what counts."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Path(name).open("ab") as file:
        file.truncate(1 << 40)
    assert main(command) == 2
    assert re.search(r"is larger than the (16|64) MiB", sentence(capsys))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10


def _plan(depth: int, kind: str) -> dpf.StudyPlan:
    node = dpf.step("rows", dpf.queries.Count(), dpf.mechanisms.DiscreteLaplace("1/10"))
    for _ in range(depth):
        node = AROUND[kind](node)
    return dpf.StudyPlan(node, dpf.Relation.REPLACE_ONE, PublicFacts.of(SCHEMA), Budget(1000), SCHEMA)


@pytest.mark.parametrize("kind", AROUND)
@pytest.mark.parametrize("depth", [input_limits.MOST_PLAN_DEPTH + 1, 400, 3_000])
def test_a_deep_plan_is_refused_when_it_is_made(kind, depth):
    with pytest.raises(dpf.InputError, match="compositions within each other"):
        _plan(depth, kind)


@pytest.mark.parametrize("kind", AROUND)
@pytest.mark.parametrize("depth", [input_limits.MOST_PLAN_DEPTH + 1, 400])
def test_a_deep_plan_is_refused_when_it_is_read(folder, capsys, kind, depth):
    form = json.loads(_plan(1, kind).to_json())
    inner = form["root"]
    step = inner.get("part") or inner["parts"][0]
    for _ in range(depth):
        step = {**inner, **({"part": step} if "part" in inner else {"parts": [step]})}
    Path("plan.json").write_text(json.dumps({**form, "root": step}))
    for command in (["check"], ["report"], ["report", "--format", "html"], ["plan", "--format", "dot"]):
        assert main([command[0], "plan.json", *command[1:]]) == 2
        assert re.search(r"within each other|nested deeper", sentence(capsys))


@pytest.mark.parametrize("kind", AROUND)
def test_a_plan_as_deep_as_may_be_is_read_and_shown(folder, capsys, kind):
    Path("plan.json").write_text(_plan(input_limits.MOST_PLAN_DEPTH, kind).to_json())
    commands = [["check"], *(["plan", "--format", form] for form in ("tree", "mermaid", "dot", "html", "json"))]
    commands += [["report", "--format", form] for form in ("terminal", "md", "html", "csv", "json")]
    for name, *options in [*commands, ["plan", "--diff", "plan.json"]]:
        assert main([name, "plan.json", *options]) in (0, 1), (name, options)
        assert "bug" not in capsys.readouterr().err


def _peak(action) -> float:
    """Return the most memory that an action takes, in MiB, above what the process has."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("needs /proc")

    def number(kind: str) -> int:
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(kind))

    Path("/proc/self/clear_refs").write_text("5")
    before = number("VmRSS")
    action()
    return (number("VmHWM") - before) / 1024


def test_a_packed_cell_of_any_size_takes_little_memory(tmp_path):
    """400 MB of one cell, in a file of 400 kB: quoted, so that it may go on over lines, and bare."""
    for name, begin in (("quoted", b'ill\n"'), ("bare", b"ill\n"), ("header", b"")):
        path = tmp_path / f"{name}.csv.gz"
        with gzip.open(path, "wb", compresslevel=1) as file:
            file.write(begin)
            for _ in range(100):
                file.write(b"a" * (1 << 22))

        def read(path: Path = path) -> None:
            with pytest.raises(dpf.InputError, match=r"a line is longer than the 16 MiB|is not a line of CSV"):
                dpf.read_table(path, SCHEMA)

        assert _peak(read) < 300


def test_a_line_is_too_long_wherever_it_stands(tmp_path):
    """Which lines are too long does not depend on how the file is cut into blocks."""
    for rows in (0, 100_000):
        path = tmp_path / "t.csv"
        with path.open("w") as file:
            file.write("ill,note\n" + "yes,\n" * rows + "yes,")
            file.write("a" * (input_limits.MOST_LINE_BYTES - len("yes,\n")) + "\n")
        assert dpf.read_table(path, SCHEMA)
        with path.open("a") as file:
            file.write("yes," + "a" * input_limits.MOST_LINE_BYTES + "\nno,\n")
        with pytest.raises(dpf.InputError, match="a line is longer"):
            dpf.read_table(path, SCHEMA)


@pytest.mark.parametrize("container", ["csv", "parquet", "list", "objects", "categories"])
def test_a_long_cell_is_outside_of_every_domain_and_stops_nothing(tmp_path, container):
    """A run's owner is not stopped by one cell, and the rule is the cell's alone, whatever holds it."""
    import polars as pl

    for size, fits in ((input_limits.MOST_CELL_BYTES, True), (input_limits.MOST_CELL_BYTES + 1, False)):
        label = "a" * size
        schema = dpf.Schema([dpf.Categorical("x", ["b", label])])
        cells = [label, "b"]
        if container in ("csv", "parquet"):
            path = tmp_path / f"t{size}.{container}"
            frame = pl.DataFrame({"x": cells})
            frame.write_csv(path) if container == "csv" else frame.write_parquet(path)
            codes = dpf.read_table(path, schema).columns[0]
        else:
            held = {"list": cells, "objects": [*cells, 1], "categories": pl.Series(cells, dtype=pl.Categorical)}
            codes = dpf.tables.table_from_columns({"x": held[container]}, schema).columns[0]
        assert list(codes[:2]) == [1 if fits else 0, 0]


def test_a_parquet_file_that_holds_a_long_text_once_takes_little_memory(tmp_path):
    """8,000 rows of one text of 100 kB, in a file of a few kB: whatever is made of the texts, it is made of few."""
    import polars as pl

    path = tmp_path / "t.parquet"
    pl.DataFrame({"ill": pl.repeat("A" * 100_000, 8_000, eager=True)}).write_parquet(path, row_group_size=8_000)
    assert path.stat().st_size < 1 << 20
    dpf.read_table(path, SCHEMA)
    for schema in (
        SCHEMA,
        dpf.Schema([dpf.Numeric("ill", 0, 1, bins=2)]),
        dpf.Schema([dpf.Categorical("ill", ["a", "b"])]),
    ):
        assert _peak(lambda schema=schema: dpf.read_table(path, schema)) < 700


def test_a_table_of_very_many_columns_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",".join(["ill", *map(str, range(input_limits.MOST_COLUMNS))]) + "\n")
    with pytest.raises(dpf.InputError, match="more than the 131,072 columns"):
        dpf.read_table(path, SCHEMA)


def test_a_small_parquet_file_of_very_many_rows_is_refused(tmp_path, monkeypatch):
    import polars as pl

    path = tmp_path / "t.parquet"
    pl.DataFrame({"ill": pl.repeat(True, 3_000_000, eager=True)}).write_parquet(path, row_group_size=3_000_000)
    assert dpf.read_table(path, SCHEMA)
    monkeypatch.setattr(parquet_files, "FREE_CELLS", 1_000_000)
    monkeypatch.setattr(parquet_files, "MOST_CELLS_PER_BYTE", 1)
    with pytest.raises(dpf.InputError, match="far more cells than a file of its size can hold"):
        dpf.read_table(path, SCHEMA)


@pytest.mark.parametrize("known", [{"max_rows": 1000}, {"rows": 1000}, {"rows": 10, "max_rows": 1000}])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_beyond_the_public_bound_are_not_read(tmp_path, monkeypatch, kind, known):
    """The sentence is the one that the whole table would get, and the rest of the file is not looked at."""
    import polars as pl

    schema = dpf.Schema([dpf.Boolean("ill")], **known)
    path = tmp_path / f"t.{kind}"
    frame = pl.DataFrame({"ill": ["yes", "no"] * 1_000_000})
    frame.write_csv(path) if kind == "csv" else frame.write_parquet(path)
    looked = []
    encode = table_builder.cells_of

    def counted(attribute, cells):
        looked.append(len(cells))
        return encode(attribute, cells)

    monkeypatch.setattr(table_builder, "cells_of", counted)
    with pytest.raises(dpf.facts.DoesNotFit) as stopped:
        dpf.read_table(path, schema)
    assert stopped.value.kind == ("rows" if "rows" in known else "max_rows")
    assert "2000000" not in str(stopped.value)
    assert len(looked) == 1
    with pytest.raises(dpf.facts.DoesNotFit) as at_the_end:
        table_builder.require_public_counts(schema, 2_000_000, path.name)
    assert str(stopped.value) == str(at_the_end.value)


def test_a_run_that_its_rows_end_uses_up_its_approval(folder, capsys):
    """However early reading stops, the ledger says that a run ended, and why, and not after how many rows."""
    Path("people.schema.toml").write_text("max_rows = 10\n" + SCHEMA_FILE)
    Path("people.csv").write_text("ill,age\n" + "yes,20\nno,60\n" * 1_000_000)
    ledger = dpf.Ledger.create("people.ledger")
    ledger.open("people", epsilon=9)
    ledger.approve("people", dpf.study.load_study("study.toml").study.plan(), by="the board")
    command = ["run", "study.toml", "--out", "out", "--ledger", "people.ledger", "--data-set", "people"]
    assert main(command) in (1, 2)
    assert "max_rows" in capsys.readouterr().err
    assert main(command) in (1, 2)
    assert "approv" in capsys.readouterr().err
    (run,) = dpf.Ledger("people.ledger").data_set("people").runs.values()
    assert "max_rows" in (run.end or "")


def test_the_limits_are_stated_on_one_page():
    page = Path(dpf.__file__).parents[1].joinpath("docs", "security.md").read_text(encoding="utf-8")
    stated = page.partition("## How large an input may be")[2].partition("\n## ")[0]
    for name, value in vars(input_limits).items():
        if name.startswith(("MOST_", "FREE_")):
            size = f"{value >> 20} MiB" if name.endswith("BYTES") else f"{value:,}"
            assert f"| {size} |" in stated, name
