"""No value of the core shows a key or an option of storage when it is printed, whoever prints it and why."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import attrs
import polars as pl
import pytest

import dpframework
from dpframework.facts.read_options import ReadOptions
from dpframework.tables.cluster_worker_answers import ReadAnswer
from dpframework.tables.column_encoding import Unfit
from dpframework.tables.csv_file import CsvFile
from dpframework.tables.excel_file import ExcelFile
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
