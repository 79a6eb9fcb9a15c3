"""No value of the core shows a key, an option of storage or a row when it is printed, whoever prints it and why."""

from __future__ import annotations

import importlib
import inspect
import io
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import polars as pl
import pytest
from rich.console import Console
from rich.traceback import Traceback

import dpframework
import dpframework as dpf
from dpframework.facts.hidden_fields import hide_fields
from dpframework.facts.read_options import ReadOptions
from dpframework.tables.cluster_worker_answers import ReadAnswer
from dpframework.tables.column_encoding import Unfit
from dpframework.tables.csv_file import CsvFile
from dpframework.tables.excel_file import ExcelFile
from dpframework.tables.in_process_engines import InMemory
from dpframework.tables.shuffle_by_id_hash import IdFinding, ShuffleFindings
from dpframework.tables.sources import open_source
from dpframework.tables.table_builder import RowFindings

TYPES = ("bytes", "bytes | None", "Mapping[str, str]", "tuple[tuple[str, str], ...]")
SECRET_NAMES = ("key", "options", "secret", "password", "token", "credentials")


def values_of(package: ModuleType) -> Iterator[type[attrs.AttrsInstance]]:
    """Yield the attrs classes of a package."""
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(found.name)
        for one in vars(module).values():
            if inspect.isclass(one) and attrs.has(one) and one.__module__ == found.name:
                yield one


def shown_secrets(value: type[attrs.AttrsInstance]) -> list[str]:
    """Return the fields of a class that hold a key or options, and that the text which attrs makes shows."""
    written = getattr(value.__repr__, "__code__", None)
    if written is None or "attrs generated" not in written.co_filename:
        return []
    return [
        f"{value.__module__}.{value.__name__}.{field.name}"
        for field in attrs.fields(value)
        if field.name in SECRET_NAMES and str(field.type) in TYPES and field.repr is True
    ]


def test_no_value_shows_a_key_or_options() -> None:
    values = list(values_of(dpframework))
    assert len(values) > 300
    assert [shown for value in values for shown in shown_secrets(value)] == []


def test_what_is_found_in_rows_is_not_shown(tmp_path: Path) -> None:
    """The first line of a file without a header is a row. How many rows there are is secret, too."""
    count = 7654321987654321  # longer than the digits that an address or a temporary folder could hold by chance
    path = tmp_path / "t.csv"
    path.write_text(f"Zoltan,{count}\nBob,78\n")
    source, file = open_source(path), CsvFile.open(path, ReadOptions())
    found = RowFindings(count, (frozenset({Unfit.BEYOND}),))
    shuffled = ShuffleFindings(frozenset({(IdFinding.TWICE, 0)}), frozenset({("Zoltan", Unfit.BEYOND)}))
    for value in (
        source,
        file,
        ExcelFile(("Zoltan", str(count)), pl.DataFrame({"Zoltan": [count]})),
        found,
        ReadAnswer(found, b"Zoltan"),
        shuffled,
    ):
        shown = repr(value)
        assert not any(cell in shown for cell in ("Zoltan", str(count), "BEYOND", "TWICE")), shown
        assert " at 0x" not in shown, shown  # an address is another in each run
    assert source.columns == file.columns == ("Zoltan", str(count))


@attrs.frozen
class Shown:
    name: str
    key: bytes


@attrs.frozen
class Hidden:
    name: str
    key: bytes = attrs.field(repr=False)
    options: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=False)


@attrs.frozen(repr=False)
class Written:
    key: bytes

    def __repr__(self) -> str:
        return "Written()"


@pytest.mark.parametrize(("value", "shown"), [(Shown, ["key"]), (Hidden, []), (Written, [])])
def test_what_shows_a_key_is_found(value: type[attrs.AttrsInstance], shown: list[str]) -> None:
    assert [name.rsplit(".", 1)[1] for name in shown_secrets(value)] == shown


ROWS = 7193
SCHEMA = dpf.Schema([dpf.Numeric("age", 0, 100, bins=10), dpf.Categorical("town", ["zoltan", "bob"])])


def private_frame() -> pl.DataFrame:
    return pl.DataFrame({"age": [33.456] * ROWS, "town": ["zoltan"] * ROWS})


def shown_by_rich(value: object) -> str:
    """Return what rich prints of a value. It shows the fields of attrs classes, and does not call their `__repr__`."""
    console = Console(file=io.StringIO(), width=200)
    console.print(value)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def require_hidden(shown: str) -> None:
    assert not [secret for secret in (f"({ROWS}", "33.456", "array(", "Kowalski") if secret in shown], shown


@attrs.frozen(repr=False)
class Rows:
    cells: list[str]

    def __repr__(self) -> str:
        return "Rows(rows are private)"


@attrs.frozen(repr=False, field_transformer=hide_fields)
class MarkedRows(Rows):
    more: int = 0

    def __repr__(self) -> str:
        return "Rows(rows are private)"


def fields_that_printers_show(value: type[attrs.AttrsInstance]) -> list[str]:
    """Return the fields that rich shows, of a class which writes a text of its own that hides them."""
    written = getattr(value.__repr__, "__code__", None)
    if written is None or "attrs generated" in written.co_filename:
        return []
    return [f"{value.__module__}.{value.__name__}.{field.name}" for field in attrs.fields(value) if field.repr]


def test_a_class_that_hides_its_rows_hides_them_from_every_printer() -> None:
    assert [name.rsplit(".", 1)[1] for name in fields_that_printers_show(Rows)] == ["cells"]
    assert fields_that_printers_show(MarkedRows) == []
    values = list(values_of(importlib.import_module("dpframework.tables")))
    assert len(values) > 40
    assert [shown for value in values for shown in fields_that_printers_show(value)] == []


def test_rich_shows_no_row_of_a_table_and_of_an_engine() -> None:
    table = dpf.table_from_frame(private_frame(), SCHEMA)
    rows = InMemory().load(table)
    for value in (table, *rows, {"some": table}):
        require_hidden(shown_by_rich(value))
    assert repr(rows) == "BlockRows(rows are private)"


@attrs.frozen
class FailingNoise(dpf.mechanisms.Laplace):
    """Noise that fails, which a run says without the answer."""

    name = "failing-noise"

    def release_many(self, *_: object) -> list[Any]:
        raise ValueError


class FailingObserver(dpf.Observer):
    """An observer that fails after the noise was drawn."""

    def released(self, release: dpf.Release) -> None:
        raise ValueError


@attrs.frozen
class OneHistogram(dpf.Miner):
    """Release one histogram."""

    name = "one-histogram"
    noise: type[dpf.mechanisms.Laplace]

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        return dpf.step("ages", dpf.queries.Histogram(schema["age"]), self.noise(1))

    def mine(self, table: dpf.PrivateTable) -> object:
        return table.release("ages")


@pytest.mark.parametrize("failing", [FailingNoise, FailingObserver])
def test_the_traceback_of_a_private_run_holds_no_local_variable(failing: type) -> None:
    """Notebooks, test runners and services that collect errors show local variables, such as exact answers."""
    noise = failing if issubclass(failing, dpf.mechanisms.Laplace) else dpf.mechanisms.Laplace
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("ages", OneHistogram(noise))
    table = dpf.table_from_frame(private_frame(), SCHEMA)
    observers = [failing()] if issubclass(failing, dpf.Observer) else []
    require_no_row_in_traceback(lambda: study.run(table, observers=observers))
    shown = shown_with_locals(lambda: study.run(table, observers=observers, seed=1))
    assert "gate.py" in shown  # a seeded run shows where it failed, with all variables
    assert "array(" in shown


@pytest.mark.parametrize("last", ['1,"Kowalski', "1,zoltan,Kowalski"])
def test_the_traceback_of_reading_holds_no_local_variable(last: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"age,town\n{last}\n33.456,zoltan\n")
    require_no_row_in_traceback(lambda: dpf.read_table(path, SCHEMA))
    require_no_row_in_traceback(lambda: dpf.TableFiles(path, SCHEMA).read())


def shown_with_locals(act: Callable[[], object]) -> str:
    """Return rich's traceback of an error, with all local variables."""
    with pytest.raises(dpf.DPFrameworkError) as caught:
        act()
    error = caught.value
    trace = error.__traceback__
    while trace is not None and "argument_type_checks" not in trace.tb_frame.f_code.co_filename:
        trace = trace.tb_next  # the frames of this test hold what the test wrote
    assert trace is not None
    return shown_by_rich(Traceback.from_exception(type(error), error, trace, show_locals=True, locals_max_length=500))


def require_no_row_in_traceback(act: Callable[[], object]) -> None:
    shown = shown_with_locals(act)
    assert "Traceback" in shown
    require_hidden(shown)
