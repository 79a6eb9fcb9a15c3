"""The tables on which engines are tried, the counts and samples that are asked of them, and how counts may differ."""

from __future__ import annotations

import inspect
import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.tables.encoded_row_blocks import Block
from dpframework.tables.in_process_engines import BlockEngine, InMemory
from dpframework.tables.unread_table_files import TableFiles
from dpframework.verify import EngineConformance
from dpframework.verify.tables import engine_conformance as suite_module
from dpframework.verify.tables.engine_tables import (
    CASES,
    CUTS,
    GROUP,
    PEOPLE,
    PERSON,
    SCHEMA,
    Heavy,
    all_counts,
    difference,
    histograms,
    miscount,
    write,
)

MANY = 20_000


def frame(folder: Path, rows: int, **options: Any) -> pl.DataFrame:
    write(folder, (rows,), **options)
    return pl.read_parquet(folder / "0.parquet")


def test_cells_are_drawn_over_all_that_there_are(tmp_path: Path) -> None:
    """A tenth of the ages is missing, and as many are below 0 as above 100."""
    drawn = frame(tmp_path / "made", MANY)
    assert drawn.columns == ["ill", "ward", "age", "wide"]
    assert drawn["ill"].mean() == pytest.approx(0.4, abs=0.02)
    assert drawn["age"].null_count() / MANY == pytest.approx(0.1, abs=0.02)
    ages = drawn["age"].drop_nulls()
    assert (ages.min(), ages.max()) == (-10.0, 110.0)
    assert ages.equals(ages.round(1))
    assert not ages.equals(ages.round(0))
    wards = drawn["ward"].value_counts(sort=True)
    assert sorted(wards["ward"]) == ["x", "y", "z"]
    assert all(abs(count / MANY - 1 / 3) < 0.02 for count in wards["count"])
    assert drawn["wide"].n_unique() == 300


def test_a_share_of_the_rows_may_be_in_one_ward(tmp_path: Path) -> None:
    drawn = frame(tmp_path, MANY, common=0.95)
    assert (drawn["ward"] == "x").mean() == pytest.approx(0.95 + 0.05 / 3, abs=0.01)
    assert set(frame(tmp_path, 50, common=1.0)["ward"]) == {"x"}


def test_files_are_those_of_the_sizes_and_differ(tmp_path: Path) -> None:
    files = write(tmp_path, (7, 0, 7))
    frames = [pl.read_parquet(tmp_path / f"{k}.parquet") for k in range(3)]
    assert [len(one) for one in frames] == [7, 0, 7]
    assert frames[0].schema == frames[1].schema
    assert not frames[0].equals(frames[2])
    assert files.schema is SCHEMA
    assert (SCHEMA["age"].lower, SCHEMA["age"].upper, SCHEMA["age"].bins) == (0, 100, 5)
    assert files.unit.id is None
    assert files.read().rows == 14


def test_ids_go_round_in_each_file(tmp_path: Path) -> None:
    files = write(tmp_path, (11, 3), unit=PERSON)
    ids = [pl.read_parquet(tmp_path / f"{k}.parquet")["person"].to_list() for k in range(2)]
    assert ids == [[*(f"p{k}" for k in range(9)), "p0", "p1"], ["p0", "p1", "p2"]]
    assert files.unit is PERSON
    assert PrivacyUnit("person", 2) == PERSON
    assert PEOPLE == 9
    assert "person" not in frame(tmp_path / "rows", 3, unit=PrivacyUnit(rows=2)).columns


def test_counts_are_of_all_rows_parts_and_parts_of_parts(tmp_path: Path) -> None:
    """Beside counts in plain Python of the same cells."""
    table = write(tmp_path, (60,)).read()
    engine = InMemory()
    rows = engine.load(table)
    cells = list(zip(*(column.tolist() for column in table.columns), strict=True))
    (group,) = engine.map(engine.derive(rows, GROUP, CASES), lambda block: block.codes("group").tolist())

    def joint(chosen: Callable[[int], bool]) -> Any:
        counts = np.zeros((2, 3, SCHEMA["age"].size), dtype=int)
        for k, (ill, ward, age, _) in enumerate(cells):
            counts[ill, ward, age] += chosen(k)
        return counts.tolist()

    def grouped(chosen: Callable[[int], bool], by: list[int] = group) -> Any:
        counts = np.zeros((3, 2), dtype=int)
        for k, (ill, *_) in enumerate(cells):
            counts[by[k], ill] += chosen(k)
        return counts.tolist()

    # Ages are cut at 20, 40, 60 and 80, and code 5 is a missing age, of which no negation holds.
    negated = [
        0 if ward != 0 and age in (3, 4) else 1 if ill == 0 and age in (2, 3, 4) else 2 for ill, ward, age, _ in cells
    ]
    expected: dict[str, Any] = {"all rows": joint(lambda k: True)}
    by = {
        "an attribute": [cell[1] for cell in cells],
        "cases": group,
        "cases of negations": negated,
        "descriptions": [{0: 0, 2: 1}.get(cell[1], -1) for cell in cells],
        "an attribute with missing values": [cell[2] for cell in cells],
        "an attribute of many values": [cell[3] for cell in cells],
    }
    parts = {"an attribute": 3, "cases": 3, "cases of negations": 3, "descriptions": 2}
    for name, whose in by.items():
        for part in range(parts.get(name, 6)):
            expected[f"part {part + 1} by {name}"] = joint(lambda k: whose[k] == part)  # noqa: B023
    for ill, case in itertools.product(range(2), range(3)):
        expected[f"part {case + 1} by cases of part {ill + 1} by an attribute"] = joint(
            lambda k: (cells[k][0], group[k]) == (ill, case)  # noqa: B023
        )
    expected["rows with a derived attribute"] = grouped(lambda k: True)
    for part in range(3):
        expected[f"part {part + 1} with a derived attribute"] = grouped(lambda k: cells[k][1] == part)  # noqa: B023
    for part in range(3):
        expected[f"part {part + 1} by a derived attribute"] = grouped(lambda k: group[k] == part)  # noqa: B023
    expected["rows with an attribute of the same name, derived by other cases"] = grouped(lambda k: True, negated)
    expected["rows with the first of two derived attributes of the same name"] = grouped(lambda k: group[k] == 0)
    expected["the part that is left after many splits"] = joint(lambda k: cells[k][:2] == (1, 1))
    for part in range(3):
        expected[f"part {part + 1} by a derived attribute of a part"] = grouped(
            lambda k: cells[k][0] == 1 and group[k] == part  # noqa: B023
        )
    found = all_counts(engine, rows)
    assert list(found) == list(expected)
    assert found == expected
    assert list(CUTS) == list(by)
    assert [sum(one) for one in histograms(engine, rows)] == [60] * 4
    assert [len(one) for one in histograms(engine, rows)] == [2, 3, 6, 300]
    assert histograms(engine, rows)[1] == [Counter(cell[1] for cell in cells)[k] for k in range(3)]
    assert Heavy().evaluate(engine, rows).tolist() == [60 * 9_007_199_254_740_993]


def test_the_young_are_those_below_a_third(tmp_path: Path) -> None:
    """On either side of the age: 33.2 is young, 33.3 is not."""
    ages = [33.2, 33.3, 33.4, None, 5.0]
    columns = {"ill": [False] * 5, "ward": ["x"] * 5, "age": ages, "wide": ["v0"] * 5}
    tmp_path.joinpath("t").mkdir()
    pl.DataFrame(columns).write_parquet(tmp_path / "t" / "0.parquet")
    engine = InMemory()
    rows = engine.load(TableFiles(tmp_path / "t", SCHEMA, values=["age"]).read())
    (codes,) = engine.map(engine.derive(rows, GROUP, CASES), lambda block: block.codes("group").tolist())
    assert codes == [1, 2, 2, 2, 1]


def test_the_first_counts_that_differ_are_described() -> None:
    right = {"a": [3, 4], "b": [1, 1], "c": [2]}
    assert difference(right, right) is None
    assert difference({**right, "b": [1, 0], "c": [1]}, right) == "b: 1 rows are counted of 2: rows are lost"
    assert difference({**right, "c": [5]}, right) == "c: 5 rows are counted of 2: rows are counted twice"


MIXED = "as many rows as expected, but in other cells: rows are mixed up or merged"
LOST, TWICE, NO_MISSING = "rows are lost", "rows are counted twice", "rows with a missing cell are lost"


@pytest.mark.parametrize(
    ("found", "expected", "said"),
    [
        ([1, 2, 3], [1, 2], "there are 3 counts where 2 are expected"),
        ([[1, 2]], [1, 2], "there are 2 counts where 2 are expected"),
        ([1, 2], [2, 1], MIXED),
        ([1, 2], [1, 1], f"3 rows are counted of 2: {TWICE}"),
        ([1000, 2], [1000, 3], f"1,002 rows are counted of 1,003: {LOST}"),
        ([254, 2], [300, 2], f"256 rows are counted of 302: {LOST}"),
        ([256, 2], [300, 2], f"258 rows are counted of 302: {LOST}"),
        ([255, 400], [300, 400], f"655 rows are counted of 700: {LOST}"),
        ([255, 3], [255, 30], f"258 rows are counted of 285: {LOST}"),
        ([255, 2], [200, 2], f"257 rows are counted of 202: {TWICE}"),
        ([255, 2], [300, 1], "257 rows are counted of 301: a count of 300 stops at 255: counts are capped"),
        *(
            (
                [3, most],
                [3, most + 3000],
                f"{most + 3:,} rows are counted of {most + 3003:,}: a count of {most + 3000:,} stops at {most:,}: "
                "counts are capped",
            )
            for most in (255, 32767, 65535, 2147483647)
        ),
        ([[[3, 0]]], [[[3, 4]]], f"3 rows are counted of 7: {NO_MISSING}"),
        ([[[3, 5]]], [[[3, 4]]], f"8 rows are counted of 7: {TWICE}"),
        ([[[2, 4]]], [[[3, 4]]], f"6 rows are counted of 7: {LOST}"),
        ([[3, 0]], [[3, 4]], f"3 rows are counted of 7: {LOST}"),
        ([[[2, 1, 0]]], [[[2, 1, 4]]], f"3 rows are counted of 7: {NO_MISSING}"),
    ],
)
def test_counts_are_told_apart_by_how_they_differ(found: Any, expected: Any, said: str) -> None:
    assert miscount(found, expected) == said


class Listening(BlockEngine):
    """Rows in two blocks, and what is asked of them, with the number of rows each time."""

    name = "listening"

    def __init__(self) -> None:
        super().__init__(2)
        self.heard: list[str] = []

    def hears(self, what: str, rows: Any, more: str = "") -> None:
        self.heard.append(f"{what} {sum(block.rows for block in rows)}{more}")

    def map(self, rows: Any, function: Callable[[Block], Any]) -> list[Any]:
        self.hears("map", rows)
        return [function(block) for block in rows]

    def open(self, files: Any) -> Any:
        there = sum(len(pl.read_parquet(file)) for file in Path(files.path[0]).glob("*.parquet"))
        self.heard.append(f"files of {there}, {files.schema.rows} rows, {files.out_of_domain}")
        self.hears("open", rows := super().open(files))
        return rows

    def split(self, rows: Any, by: Any) -> Any:
        parts = super().split(rows, by)
        self.hears("split", rows, f" in {len(parts)}")
        return parts

    def derive(self, rows: Any, attribute: Any, cases: Any) -> Any:
        self.hears("derive", rows)
        return super().derive(rows, attribute, cases)

    def sample(self, rows: Any, drawn: Any) -> Any:
        masks: list[Any] = []

        def kept(number: int) -> Any:
            masks.append(drawn(number))
            return masks[-1]

        sampled = super().sample(rows, kept)
        places = np.flatnonzero(np.concatenate(masks))
        self.hears("sample", rows, f" to {len(places)} at {places.sum()}")
        return sampled

    def counts_of(self, asked: Any) -> Any:
        self.heard.append(f"counts of {len(asked)}")
        return super().counts_of(asked)

    def related_caches(self, rows: Any) -> Any:
        around = super().related_caches(rows)
        self.hears("around", rows, " none" if around is None else "")
        return around

    def drop(self, rows: Any) -> None:
        self.hears("drop", rows)
        super().drop(rows)


def heard(test: str, folder: Path) -> list[str]:
    """What a test of the suite asks, with how often it asks the same."""
    engine = Listening()
    suite = type("TestListening", (EngineConformance,), {"build_engine": classmethod(lambda cls: engine)})
    suite.setup_class()
    given = {"tmp_path": folder} if "tmp_path" in inspect.signature(getattr(suite, test)).parameters else {}
    try:
        getattr(suite(), test)(**given)
    except pytest.skip.Exception as skipped:
        return [str(skipped)]
    suite.teardown_class()
    return [f"{one} x{n}" if (n := len([*same])) > 1 else one for one, same in itertools.groupby(engine.heard)]


HEARD = {
    "test_a_failure_does_not_end_the_engine": "files of 13, None rows, clamp; open 13; map 13 x2; drop 13",
    "test_a_handle_shows_no_row": "files of 4321, None rows, clamp; open 4321; drop 4321",
    "test_a_sample_is_of_the_rows_that_are_drawn_anew_each_time": (
        "files of 65, None rows, clamp; open 65; map 65 x3; sample 65 to 37 at 1057; map 65; map 37 x5; map 65 x2; "
        "sample 65 to 28 at 1023; map 65; map 28 x4; map 65 x2; sample 65 to 0 at 0; map 65; map 0 x4; map 65 x2; "
        "sample 65 to 22 at 693; map 65; map 22 x4; map 37; drop 65"
    ),
    "test_counts_that_could_wrap_round_are_refused": "files of 9, None rows, clamp; open 9; map 9 x2; drop 9",
    "test_files_that_do_not_fit_are_refused_as_in_memory": (
        "files of 13, None rows, error; files of 13, 12 rows, clamp; files of 0, None rows, clamp"
    ),
    "test_large_blocks_lose_no_row_and_counts_have_no_end": (
        "files of 83001, None rows, clamp; open 83001; map 83001 x6; split 83001 in 3; map 33181; map 16222; map "
        "33598; drop 83001"
    ),
    "test_many_functions_are_counted_in_one_call": (
        "files of 42, None rows, clamp; open 42; map 42; split 42 in 300; map 42 x5; map 1 x5; map 42; split 42 in "
        "300; map 42; map 1; map 0 x2; counts of 4; map 42; map 1; map 0 x2; drop 42"
    ),
    "test_rows_are_gathered_in_their_order": (
        "files of 49, None rows, clamp; open 49; map 49; split 49 in 3; map 49; split 49 in 3; map 49; split 49 in "
        "3; map 49; split 49 in 2; map 49; split 49 in 6; map 49; split 49 in 300; map 49; map 23; map 18; map 13; "
        "map 23; map 11; map 0; drop 49"
    ),
    "test_rows_of_two_tables_are_kept_apart_and_one_can_be_dropped": (
        "files of 11, None rows, clamp; open 11; files of 20, None rows, clamp; open 20; map 20; split 20 in 2; map"
        " 13; map 7; drop 11; map 13; map 7; map 20; drop 20"
    ),
    "test_samples_of_parts_and_parts_of_samples": (
        "files of 65, None rows, clamp; open 65; sample 65 to 37 at 1057; map 65; split 65 in 2; sample 41 to 22 at"
        " 442; sample 37 to 25 at 433; map 25; split 25 in 3; derive 22; map 22; map 37; map 22; map 37; map 11; "
        "map 9; map 5; map 22; map 11; map 9; map 5; drop 65"
    ),
    "test_sums_are_exact_whole_numbers": "files of 15, None rows, clamp; open 15; map 15 x2; drop 15",
    "test_units_keep_no_more_rows_than_they_may": "files of 71, None rows, clamp; open 18; map 18; drop 18",
    "test_what_is_kept_of_rows_is_kept_for_them_alone": (
        "files of 20, None rows, clamp; open 20; files of 20, None rows, clamp; open 20; map 20; split 20 in 3; "
        "around 4; around 8 x2; map 20; split 20 in 2; around 4 none; around 8 none; map 20; split 20 in 3; map 4 "
        "x4; map 8 x8; map 20 x4; drop 20 x2"
    ),
}


@pytest.mark.parametrize("test", HEARD)
def test_the_suite_asks_of_an_engine(test: str, tmp_path: Path) -> None:
    """Of these rows, parts and samples, in this order: a size or a share that changes is seen here."""
    assert "; ".join(heard(test, tmp_path)) == HEARD[test]


def test_large_tables_have_more_than_16_bits_count() -> None:
    assert suite_module.LARGE == (70_000, 12_000, 1_001)
