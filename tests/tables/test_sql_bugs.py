"""The conformance suite of engines catches the mistakes that databases invite: each is planted in the engine.

`test_duckdb.py` shows that the suite passes the engine without them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

import dpframework as dpf
from dpframework.tables import crosstabs_by_grouping_sets, sql_encoding
from dpframework.tables.database_row_selection import RowChooser
from dpframework.tables.duckdb_connection import DuckDBConnection
from dpframework.tables.sql_cell_conversion import ColumnType
from dpframework.tables.sql_engine import SqlEngine
from dpframework.tables.sql_expressions import SqlColumns
from dpframework.verify import EngineConformance

pytest.importorskip("duckdb", reason="the extra 'database' is not installed")


class Suite(EngineConformance):
    @classmethod
    def build_engine(cls) -> dpf.Engine:
        return dpf.DuckDB(threads=1)


Patch = Callable[[Any, str, Any], None]


def nulls_join_nothing(patch: Patch) -> None:
    looked_up = sql_encoding.SourceEncoder._look_up

    def inner(*given: Any) -> Any:
        found = looked_up(*given)
        return attrs.evolve(found, joined=found.joined.replace("left join", "join"))

    patch(DuckDBConnection, "lookups", lambda *given: None)
    patch(sql_encoding.SourceEncoder, "_look_up", inner)


def nulls_are_a_group_of_the_first_code(patch: Patch) -> None:
    looked_up = sql_encoding.SourceEncoder._look_up

    def first(*given: Any) -> Any:
        found = looked_up(*given)
        return attrs.evolve(found, code=re.sub("is null then [0-9]+", "is null then 0", found.code))

    patch(sql_encoding.SourceEncoder, "_look_up", first)


def collation(patch: Patch) -> None:
    cell: Any = ColumnType.cell

    def merged(self: ColumnType, column: str) -> str:
        own = str(cell(self, column))
        return f"encode(lower(cast({column} as varchar)))" if "encode(" in own else own

    patch(ColumnType, "cell", merged)


def query_text(change: Callable[[str], str]) -> Callable[[Patch], None]:
    text: Any = crosstabs_by_grouping_sets.GroupingQuery.text

    def plant(patch: Patch) -> None:
        patch(crosstabs_by_grouping_sets.GroupingQuery, "text", property(lambda self: change(text.fget(self))))

    return plant


def overflow(query: str) -> str:
    """Wrap sums round at 32 bits."""
    for k in range(9):
        sum_of, wrapped = f"sum(x{k})", f"(cast(sum(x{k}) + 2147483648 as bigint) & 4294967295) - 2147483648"
        query = query.replace(sum_of, wrapped)
    return query


def float_sums(patch: Patch) -> None:
    patch(SqlColumns, "steps", lambda self, one: f"({self.value(one.attribute)} / {one.step!r})")


def reused_sample(patch: Patch) -> None:
    sampled, kept = SqlEngine._sample, dict[str, Any]()

    def first(self: SqlEngine, rows: Any, *given: Any) -> Any:
        if rows.table.name not in kept:
            kept[rows.table.name] = sampled(self, rows, *given)
        return kept[rows.table.name]

    patch(SqlEngine, "_sample", first)


def rows_of_units(patch: Patch) -> None:
    patch(SqlEngine, "sample_units", SqlEngine.sample)


def unbounded_pieces(patch: Patch) -> None:
    of_units = RowChooser.of_units
    patch(
        RowChooser,
        "of_units",
        lambda self, pieces, unit, key, placed: [of_units(self, [one], unit, key, placed=placed)[0] for one in pieces],
    )


def brothers(patch: Patch) -> None:
    patch(crosstabs_by_grouping_sets.Family, "_is_free", lambda self, steps: True)


ODD = "test_labels_and_numbers_that_databases_confuse"
SAMPLE = "test_a_sample_is_of_the_rows_that_are_drawn_anew_each_time"
UNITS, BOUND = "test_samples_take_whole_units", "test_units_keep_no_more_rows_than_they_may"
MANY = "test_many_functions_are_counted_in_one_call"
#: Each mistake, the test that sees it, and what that says.
BUGS: dict[str, tuple[Callable[[Patch], None], str, str]] = {
    "a null joins nothing": (nulls_join_nothing, ODD, "labels"),
    "nulls are a group of the first code": (nulls_are_a_group_of_the_first_code, ODD, "labels"),
    "a collation merges labels": (collation, ODD, "labels"),
    "sums overflow": (query_text(overflow), ODD, "the sum of costs"),
    "sums are of floats": (float_sums, ODD, "the sum of costs"),
    "a sample is reused": (reused_sample, SAMPLE, "as if the first were reused"),
    "a sample takes rows of units": (rows_of_units, UNITS, "one draw for each person|some rows of a person"),
    "units are bounded in each file": (unbounded_pieces, BOUND, "rows are bounded in each block or file"),
    "a part is counted with its brother": (brothers, MANY, "counts_of"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_the_suite_sees_the_mistakes_that_databases_invite(
    bug: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant, test, says = BUGS[bug]
    Suite.setup_class()
    given = () if test == UNITS else (tmp_path,)
    with monkeypatch.context() as patched:
        plant(patched.setattr)
        with pytest.raises((AssertionError, dpf.InputError, pytest.fail.Exception), match=says):
            getattr(Suite(), test)(*given)
    Suite.teardown_class()
