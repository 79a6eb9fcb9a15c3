"""Ids: one rule for each cell, exact in every container, so that two people never become one."""

from __future__ import annotations

import collections
import datetime
import enum
import itertools
import math
import random
import sys
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpframework as dpf
from dpframework.facts import DoesNotFit
from dpframework.facts.canonical_cells import id_of_decimal, id_of_float, id_of_whole, of_id
from dpframework.mechanisms import DiscreteLaplace
from dpframework.tables.contribution_bounding import kept_rows
from dpframework.tables.ids import MARK, SPACE, ids_of
from dpframework.tables.schema_fit import check_fit

BIG = 2**53
ONE = dpf.PrivacyUnit("person")
TOWN = dpf.Schema([dpf.Categorical("town", ["A", "B"])])
KEY = bytes(32)


def ids(values: Any) -> list[str | None]:
    return ids_of(values, "t").series.to_list()


class Tag(str, enum.Enum):  # noqa: UP042 - its text is not what str() says
    FIRST = "1.0"


class Number(enum.IntEnum):
    SEVEN = 7


# The rule


def test_equal_numbers_are_one_person_however_they_are_written() -> None:
    sevens = [7, 7.0, "7", " 7 ", "7.00", "70e-1", "0.7E+1", Decimal("7.00"), Decimal("7E0"), np.int8(7), np.uint64(7)]
    sevens += [np.float16(7), np.float32(7), np.longdouble(7), Number.SEVEN]
    assert set(ids(sevens)) == {"7"}
    for cell in sevens:
        assert ids([cell]) == ["7"]
    assert set(ids([0, 0.0, -0.0, "-0", "-0.00", "0e99", Decimal("-0"), Decimal("0E+9")])) == {"0"}
    assert set(ids([0.1, "0.1", "1e-1", Decimal("0.10")])) == {"0.1"}
    assert set(ids([math.inf, "inf", np.float32(math.inf), Decimal("Infinity")])) == {"inf"}
    assert set(ids([-math.inf, Decimal("-Infinity")])) == {"-inf"}


@pytest.mark.parametrize("number", [BIG, 2**60, 10**22, 10**23, 2**200, 17 * 10**17 + 256, -(2**70)])
def test_a_float_that_is_whole_is_the_number_that_it_is(number: int) -> None:
    """As a number of any type, and as programs write it into a CSV file."""
    number = int(float(number))
    written = [repr(float(number)), f"{float(number):.17e}" if number == BIG else str(number), f"{number}.0"]
    assert len({*ids([number, float(number), Decimal(number), *written])}) == 1
    assert len({*ids([number, number + 1, number - 1, Decimal(number) + Decimal("0.5")])}) == 4


def test_ids_are_written_plainly_up_to_sixty_places() -> None:
    texts = {
        "1e60": str(int(1e60)),
        "1e22": "1" + "0" * 22,
        "1000e57": "1" + "0" * 60 if float("1000e57") == 10**60 else str(int(1e60)),
        "1.00000000000000000001e60": "1" + "0" * 19 + "1" + "0" * 40,
        "1" + "0" * 60: "1" + "0" * 60,
        "1" + "0" * 61: "1e61",
        "-12" + "0" * 61: "-12e61",
        "-1e-60": "-0." + "0" * 59 + "1",
        "1e-61": "1e-61",
        "12.50e-70": "125e-71",
        "1." + "0" * 99: "1",
        "-0.0": "0",
        "-2.50": "-2.5",
        "1e99999999": "1e99999999",
        "1e0000000000000000000001": "10",
        "0e" + "9" * 100: "0",
        "-1E-0000000000002": "-0.01",
    }
    assert {text: of_id(text) for text in texts} == texts
    assert ids(list(texts)) == list(texts.values())
    assert id_of_whole(10**5000) == of_id("1" + "0" * 5000) == of_id("1e5000") == "1e5000"
    assert id_of_whole(10**5000 + 1) == of_id("1" + "0" * 4999 + "1") == "1" + "0" * 4999 + "1e0"
    assert id_of_decimal(Decimal("1E+5000")) == "1e5000"
    assert id_of_float(5e-324) == "5e-324"
    assert of_id("1e" + "9" * 4001) == "1e" + "9" * 4001


def test_a_text_that_is_no_number_is_itself_without_the_space_around_it() -> None:
    for text in (
        "007",
        "+1",
        "1_000",
        "0x10",
        "1.",
        ".5",
        "one",
        "1 2",
        "--1",
        "NaN",
        "Inf",
        "٣",
        "True",
        "\u00e9",
        "e\u0301",
    ):
        assert ids([f"\x1f {text}\u3000\n"]) == ids(pl.Series([f"\x1f {text}\u3000\n"])) == [text]
    assert (
        len(set(ids(["a", "A", "\u00e4", "a\u0308", "a b", "a  b", "7", "07", "007", "7a", "a" * 999, "a" * 998])))
        == 12
    )
    assert ids(["", " \t", None, "\x1f\u2028"]) == ids(pl.Series(["", " \t", None, "\x1f\u2028"])) == [None] * 4


def test_the_space_around_a_text_is_all_that_python_strips() -> None:
    assert set(SPACE) == {chr(k) for k in range(sys.maxunicode + 1) if chr(k).isspace()}


def test_bytes_are_no_texts_and_sixteen_are_a_uuid() -> None:
    some = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")
    cells = [b"7", b"a", b" a", b"\0", b"\0\0", b"\xff" * 15, b"\xff" * 17, some, bytearray(b"b"), memoryview(b"c")]
    texts = ["7", "a", "\0", "\0b61", "\0t61", "\0b", "b'a'", "\ud800", "\ud801", str(some).upper()]
    assert len(set(ids([*cells, *texts]))) == 20
    assert ids(pl.Series(texts[:7])) == ids([*texts[:7], b"a"])[:7], "also where a column holds nothing but texts"
    assert set(ids([some, str(some), some.bytes])) == {str(some)}
    assert set(ids([b"a", bytearray(b"a"), np.bytes_(b"a")])) == {f"{MARK}b61"}
    assert ids([b"", None, bytearray()]) == [None] * 3
    assert ids([Tag.FIRST, True, np.False_]) == ["1", "true", "false"]
    assert ids([math.nan, np.float32("nan"), Decimal("sNaN"), pd.NA, pd.NaT]) == [None] * 5


def test_floats_of_more_bits_than_usual_keep_them() -> None:
    one, half = np.longdouble(2) ** 53 + 1, np.longdouble(2) ** 52 + np.longdouble(2) ** -1 + np.longdouble(2) ** -2
    cells = np.array([one, one - 1, half, np.longdouble(1) / 4, np.longdouble("nan")])
    assert ids(cells) == [str(BIG + 1), str(BIG), "4503599627370496.75", "0.25", None]


# Every container


def objects(cells: Sequence[Any]) -> Any:
    held = np.empty(len(cells), dtype=object)
    held[:] = cells
    return held


CONTAINERS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "numpy": objects,
    "pandas objects": lambda cells: pd.Series(objects(cells)),
    "pandas categories": lambda cells: pd.Series(pd.Categorical(objects(cells))),
    "polars objects": lambda cells: pl.Series(cells, dtype=pl.Object),
}
TYPED: dict[str, list[Callable[[Sequence[Any]], Any]]] = {
    "int64": [
        np.array,
        lambda cells: np.array(cells, dtype=">i8"),
        pl.Series,
        lambda cells: pl.Series(cells, dtype=pl.Int128),
        lambda cells: pl.Series([*cells, None], dtype=pl.Decimal(38, 2))[:-1],
        pd.Series,
        lambda cells: pd.Series([*cells, None], dtype="Int64"),
        lambda cells: pd.Series([*cells, None], dtype="int64[pyarrow]"),
        lambda cells: pa.chunked_array([pa.array(cells)]),
        lambda cells: pa.chunked_array([pa.array(cells).dictionary_encode()]),
        lambda cells: pd.Series(cells, dtype="category"),
    ],
    "texts": [
        np.array,
        lambda cells: np.array(cells, dtype=np.dtypes.StringDType()),
        pl.Series,
        lambda cells: pl.Series(cells, dtype=pl.Categorical),
        lambda cells: pl.Series(cells, dtype=pl.Enum(list(dict.fromkeys(cells)))),
        pd.Series,
        lambda cells: pd.Series(cells, dtype="string"),
        lambda cells: pd.Series(cells, dtype="category"),
        lambda cells: pa.chunked_array([pa.array(cells)]),
        lambda cells: pa.chunked_array([pa.array(cells, type=pa.large_string())]),
    ],
    "bytes": [
        lambda cells: pl.Series(cells, dtype=pl.Binary),
        lambda cells: pa.chunked_array([pa.array(cells, type=pa.large_binary())]),
        lambda cells: pd.Series(cells, dtype=pd.ArrowDtype(pa.binary())),
    ],
    "floats": [
        np.array,
        pl.Series,
        pd.Series,
        lambda cells: pd.Series(cells, dtype="Float64"),
        lambda cells: np.array(cells, dtype=np.longdouble),
        lambda cells: pa.chunked_array([pa.array(cells)]),
        lambda cells: pd.Series(cells, dtype="category"),
    ],
}


def drawn(kind: str, number: int, rng: random.Random) -> list[Any]:
    """Return ids of one kind, each once by its value."""

    def one() -> Any:
        match kind:
            case "int64":
                return rng.choice([rng.randrange(-9, 99), rng.randrange(BIG, BIG + 10 * number), rng.getrandbits(62)])
            case "ints":
                return rng.choice([BIG + rng.randrange(number), rng.getrandbits(64), -rng.getrandbits(130), 1 << 9999])
            case "decimals":
                digits, exponent = rng.choice([3, 17, 18, 40]), rng.choice([0, 0, -2, -20, 5, 70])
                return Decimal((rng.randrange(2), tuple(rng.randrange(1, 10) for _ in range(digits)), exponent))
            case "floats":
                whole = float(BIG + 2 * rng.randrange(number))
                return rng.choice([rng.random(), rng.uniform(1e15, 1e17), rng.uniform(-9, 9) * 1e300, whole])
            case "texts":
                some = "".join(rng.choices("aAbä é.-_@e\0", k=rng.randrange(1, 30)))
                return rng.choice(["x", "X"]) + some + rng.choice("yY")
            case "digits":
                return rng.choice(["0", "00", "+", "_", "1_"]) + str(rng.getrandbits(60) | 1)
            case "bytes":
                return rng.randbytes(rng.choice([1, 2, 8, 15, 16, 17]))
            case _:
                return uuid.UUID(int=rng.getrandbits(128))

    found: dict[Any, Any] = {}
    while len(found) < number:
        found.setdefault(cell := one(), cell)
    return list(found.values())


KINDS = ("int64", "ints", "decimals", "floats", "texts", "digits", "bytes", "uuids")


def test_of_many_ids_no_two_become_one_and_none_changes_by_another_row() -> None:
    """In each container: 100,000 cells, each read beside all others, beside its own kind, and beside few or none.

    Python compares numbers exactly across types, and so says which cells are the same person. Floats that are not whole
    stand for a decimal number and are compared with each other alone.
    """
    rng = random.Random(34)
    by_kind = {kind: drawn(kind, 1_600, rng) for kind in KINDS}
    texts_of_bytes = {str(uuid.UUID(bytes=cell)) for cell in by_kind["bytes"] if len(cell) == 16}
    everything = list(dict.fromkeys(itertools.chain(*by_kind.values())))
    rng.shuffle(everything)
    tried = 0
    of_cell: dict[Any, str | None] = {}
    for name, container in CONTAINERS.items():
        found = ids(container(everything))
        assert None not in found, name
        assert len(set(found)) == len(everything), name
        assert of_cell in ({}, dict(zip(everything, found, strict=True))), f"{name} spells ids differently"
        of_cell = dict(zip(everything, found, strict=True))
        tried += len(everything)
    for kind, cells in by_kind.items():
        for build in [*CONTAINERS.values(), *TYPED.get(kind, [])]:
            found = ids(build(cells))[: len(cells)]
            assert found == [of_cell[cell] for cell in cells], (kind, build)
            tried += len(cells)
    for cell in rng.sample(everything, 400):
        assert (
            ids([cell]) == ids([rng.choice([None, "a", 1.5, datetime.date.today(), True]), cell])[1:] == [of_cell[cell]]
        )
        tried += 2
    assert tried >= 100_000
    assert not texts_of_bytes & {cell for cell in everything if isinstance(cell, str)}


@pytest.mark.parametrize("kind", ["int64", "texts", "digits", "floats", "decimals", "uuids", "bytes"])
def test_files_hold_the_same_ids_as_lists(kind: str, tmp_path: Path) -> None:
    """CSV, as Python writes it, and Parquet, in blocks and in several files: which rows are kept tells."""
    rng = random.Random(kind)
    people = drawn(kind, 300, rng)
    if kind == "texts":
        people = [text.replace("\0", "0") for text in people]
    if kind == "decimals":
        people = list({Decimal(k).scaleb(-2) for k in range(BIG * 100, BIG * 100 + 300)})
    whose = [cell for cell in people for _ in range(3)]
    rng.shuffle(whose)
    rows = [f"r{k}" for k in range(len(whose))]
    schema = dpf.Schema([dpf.Categorical("row", rows)])
    unit = dpf.PrivacyUnit("person", 2)
    expected = dpf.tables.table_from_columns({"person": whose, "row": rows}, schema, unit=unit, key=KEY).codes.tolist()
    assert len(expected[0]) == 2 * len(people)
    arrow = pa.table({"person": pa.array(whose, type=pa.uuid() if kind == "uuids" else None), "row": rows})
    pq.write_table(arrow, tmp_path / "one.parquet", row_group_size=100)
    pq.write_table(arrow[:400], tmp_path / "parts-1.parquet")
    held: list[Any] = [tmp_path / "one.parquet"]
    if kind != "bytes":
        for name, some in (("all.csv", range(len(rows))), ("half.csv", range(400, len(rows)))):
            lines = [f'"{str(whose[k]) if kind != "floats" else repr(whose[k])}",{rows[k]}' for k in some]
            (tmp_path / name).write_text("\n".join(["person,row", *lines]), encoding="utf-8")
        held += [tmp_path / "all.csv", [tmp_path / "parts-1.parquet", tmp_path / "half.csv"]]
    for path in held:
        assert dpf.read_table(path, schema, unit=unit, key=KEY).codes.tolist() == expected
    for frame in (pl.DataFrame(arrow), arrow, pd.DataFrame({"person": objects(whose), "row": rows})):
        assert dpf.table_from_frame(frame, schema, unit=unit, key=KEY).codes.tolist() == expected
    assert dpf.table_from_frame(pl.DataFrame(arrow).lazy(), schema, unit=unit, key=KEY).codes.tolist() == expected


def test_blocks_of_several_types_have_the_ids_of_each(tmp_path: Path) -> None:
    """A file may hold the column as integers, another as floats or texts: no file changes another's ids."""
    columns = [[BIG, BIG + 1], [float(BIG), 2.0**60], ["9007199254740993", "1e3"], [Decimal("1000.00"), None]]
    for number, column in enumerate(columns):
        pl.DataFrame({"person": column, "town": ["A", "B"]}).write_parquet(tmp_path / f"{number}.parquet")
    table = dpf.read_table(tmp_path, TOWN, unit=ONE, key=KEY)
    assert table.codes.shape == (1, 4)  # 2^53, 2^53 + 1, 2^60 and 1000


# Cells that cannot be ids

DATE = datetime.date(2020, 1, 1)
INTERVALS = pa.array([(1, 2, 3), (4, 5, 6)], type=pa.month_day_nano_interval())


def either(*columns: Sequence[Any]) -> Any:
    """Return a column that holds cells of several types, and takes its rows from the first."""
    types = pa.array([0] * len(columns[0]), type=pa.int8())
    return pa.UnionArray.from_sparse(types, [pa.array(column) for column in columns])


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pl.Series([DATE]), "Date"),
        (pl.Series([None], dtype=pl.Datetime), "Datetime"),
        (pl.Series([[1]]), "List"),
        (pl.Series([{"a": 1}]), "Struct"),
        (pd.Series([DATE], dtype="datetime64[ns]"), "Datetime"),
        (np.array([DATE], dtype="M8[D]"), "Date"),
        (pa.chunked_array([pa.array([datetime.timedelta(1)])]), "Duration"),
        (pa.chunked_array([INTERVALS]), "month_day_nano_interval"),
        (pd.Series(INTERVALS, dtype=pd.ArrowDtype(INTERVALS.type)), "month_day_nano_interval"),
        (pa.chunked_array([INTERVALS[:0]]), "month_day_nano_interval"),
        (pa.chunked_array([pa.nulls(2, INTERVALS.type)]), "month_day_nano_interval"),
        (pa.chunked_array([pa.array([[1]], type=pa.list_view(pa.int8()))]), "list_view<item: int8>"),
        (pa.chunked_array([pa.RunEndEncodedArray.from_arrays([2], [DATE])]), "date32[day]"),
        (pa.chunked_array([either([1], [DATE])]), "sparse_union<0: int64=0, 1: date32[day]=1>"),
        (pd.Series([DATE], dtype="datetime64[s]").astype("category"), "datetime64[s]"),
        (pd.Series(pd.period_range("2020", periods=1, freq="M")), "period[M]"),
        (pd.Series(pd.interval_range(0, 1)), "interval[int64, right]"),
        (pd.Series(pd.arrays.SparseArray([1j], fill_value=0j)), "complex128"),
        (np.array([1j]), "complex128"),
        (np.array([b"ab"], dtype="V2"), "|V2"),
        (np.array([DATE], dtype="M8[Y]"), "datetime64[Y]"),
        (np.array([1], dtype="m8[D]"), "timedelta64[D]"),
        (np.array([1], dtype="m8[Y]"), "timedelta64[Y]"),
    ],
)
def test_a_column_whose_type_is_none_of_ids_is_refused(column: Any, kind: str) -> None:
    with pytest.raises(dpf.InputError) as caught:
        kept_rows(column, ONE, source="visits.csv", key=KEY)
    assert str(caught.value) == (
        f"visits.csv: the column of ids has the type {kind}; ids are numbers, texts, booleans, bytes or UUIDs"
    )


def test_types_of_ids_that_polars_lacks_are_read_cell_by_cell() -> None:
    long = pa.array([Decimal(10**60), Decimal(10**60 + 1), None], type=pa.decimal256(76, 2))
    expected = ["1" + "0" * 60, "1" + "0" * 59 + "1", None]
    for held in (long, long.dictionary_encode()):
        assert ids(pa.chunked_array([held])) == ids(pd.Series(held, dtype=pd.ArrowDtype(held.type))) == expected
    assert ids(pa.chunked_array([pa.RunEndEncodedArray.from_arrays([1, 3], ["a", "b"])])) == ["a", "b", "b"]
    assert ids(pa.chunked_array([either([BIG, BIG + 1], ["a", "b"])])) == [str(BIG), str(BIG + 1)]
    assert ids(pd.Series(pd.arrays.SparseArray([BIG, BIG + 1]))) == [str(BIG), str(BIG + 1)]


@pytest.mark.parametrize("encoded", [False, True])
def test_decimal_numbers_too_long_for_parquet_are_named(encoded: bool, tmp_path: Path) -> None:
    """The file was called damaged. Of fewer digits they are read, and so is a file that nobody asks for them."""
    long = pa.array([Decimal(BIG), Decimal(BIG + 1)], type=pa.decimal256(39, 2))
    columns = {"person": long.dictionary_encode() if encoded else long, "town": ["A", "B"]}
    pq.write_table(pa.table(columns), tmp_path / "long.parquet")
    with pytest.raises(dpf.InputError) as caught:
        dpf.read_table(tmp_path / "long.parquet", TOWN, unit=ONE, key=KEY)
    assert str(caught.value) == (
        "long.parquet: column 'person' has decimal numbers of more than 38 digits, which cannot be read from Parquet; "
        "write them as texts, or with fewer digits"
    )
    assert dpf.read_table(tmp_path / "long.parquet", TOWN).codes.tolist() == [[0, 1]]
    pq.write_table(pa.table({**columns, "person": long.cast(pa.decimal256(38, 2))}), tmp_path / "short.parquet")
    assert dpf.read_table(tmp_path / "short.parquet", TOWN, unit=ONE, key=KEY).codes.tolist() == [[0, 1]]


def test_one_cell_that_cannot_be_an_id_stops_no_run() -> None:
    columns = {"person": ["a", DATE, [1], 1j, np.timedelta64(1, "D"), None, np.timedelta64(1, "Y")], "town": ["A"] * 7}
    assert dpf.tables.table_from_columns(columns, TOWN, unit=ONE).codes.tolist() == [[0]]
    with pytest.raises(DoesNotFit) as caught:
        dpf.tables.table_from_columns(columns, TOWN, unit=ONE, out_of_domain="error")
    assert str(caught.value) == (
        "table: the id column 'person' holds values that cannot be ids, such as dates or lists; ids are numbers, "
        "texts, booleans, bytes or UUIDs"
    )
    told = [
        str(misfit)
        for misfit in check_fit(pd.DataFrame({**columns, "person": objects(columns["person"])}), TOWN, unit=ONE)
    ]
    assert told == [
        "person: a value of a type that cannot be an id (such rows are left out) in 5 rows",
        "person: no id (such rows are left out) in 1 row",
    ]


# What it is for


def loss_between(both: list[Any], alone: list[Any], town: list[str]) -> float:
    """Return the largest loss of a noisy histogram between tables with and without the first person, over all keys."""
    histogram = dpf.queries.Histogram(TOWN["town"])
    plan = dpf.Study(TOWN, epsilon=1, unit="person")
    plan.add_plan("n", dpf.step("n", histogram, DiscreteLaplace(1)))
    assert float(plan.plan().total().epsilon) == 1
    calibration = DiscreteLaplace(1).calibrate(histogram.facts(), dpf.Relation.ADD_OR_REMOVE_ONE)
    outputs = np.array(list(itertools.product(range(-2, 4), repeat=2)))
    keys = [bytes([k]) * 32 for k in range(64)]

    def densities(people: list[Any], towns: list[str]) -> Any:
        held = pd.DataFrame({"person": pd.Series(people, dtype=object), "town": towns})
        tables = [dpf.table_from_frame(held, TOWN, unit=ONE, key=key).codes[0] for key in keys]
        found = collections.Counter(tuple(np.bincount(codes, minlength=2).tolist()) for codes in tables)
        logs = [
            [math.log(n) + DiscreteLaplace(1).log_density(np.array(counts), output, calibration) for output in outputs]
            for counts, n in found.items()
        ]
        return np.logaddexp.reduce(logs, axis=0) - math.log(len(keys))

    return float(np.abs(densities(both, town) - densities(alone, town[1:])).max())


@pytest.mark.parametrize("first", [BIG + 1, Decimal(BIG + 1), 17 * 10**17 + 1, 10**400 + 1], ids=range(4))
def test_people_whose_ids_have_one_float_are_not_one_person(first: Any) -> None:
    """Their rows displaced each other: 1.43 was lost for a claim of 1, whatever the key."""
    second = type(first)(int(first) - 1)
    assert loss_between([first, second], [second], ["A", "B"]) <= 1 + 1e-9


def test_people_numbered_one_after_the_other_stay_as_many_as_they_are() -> None:
    start = 17 * 10**17
    for cells in ([start + k for k in range(400)], [Decimal(start + k) for k in range(400)]):
        for container in CONTAINERS.values():
            assert len(kept_rows(container(cells), ONE, key=KEY)) == 400


def test_views_are_joined_by_the_same_rule(tmp_path: Path) -> None:
    views = dpf.Schema([dpf.Boolean("l", view="left"), dpf.Boolean("r", view="right")])
    left, right = tmp_path / "left.parquet", tmp_path / "right.csv"
    some = uuid.UUID(int=5)
    pq.write_table(pa.table({"id": pa.array([some.bytes], type=pa.uuid()), "l": [True]}), left)
    right.write_text(f"id,r\n{some},1\n")
    assert dpf.read_two_views(left, right, views, id="id").codes.tolist() == [[1], [1]]
    pl.DataFrame({"id": [2.0**60, 1e300, 0.1, -0.0], "l": [True, False, True, True]}).write_parquet(left)
    right.write_text(f"id,r\n1.152921504606847e+18,1\n1e+300,0\n{int(1e300)},1\n1e-1,0\n0,0\n")
    assert dpf.read_two_views(left, right, views, id="id").codes.tolist() == [[1, 1, 1], [1, 0, 0]]
