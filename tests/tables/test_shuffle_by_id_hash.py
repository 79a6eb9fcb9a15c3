"""Tables that are read in pieces, although what becomes of a row follows from rows of other pieces.

They are compared with what one process reads, and mistakes that are planted in a shuffle are seen.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import attrs
import numpy as np
import polars as pl
import pytest

import dpframework as dpf
from dpframework.tables import reading, row_bound_shuffle, two_view_reader, view_join_shuffle
from dpframework.tables.coded_table import Table
from dpframework.tables.column_encoding import Unfit
from dpframework.tables.contribution_bounding import ranges
from dpframework.tables.ids import Ids, ids_in, ids_of
from dpframework.tables.reading_in_worker_pieces import read_in_pieces, shuffle_of
from dpframework.tables.row_bound_shuffle import BoundedRows, IdRows
from dpframework.tables.shuffle_by_id_hash import (
    IdFinding,
    Shuffle,
    ShuffleFindings,
    frames_of,
    numbers_by_hash,
    pack_frames,
)
from dpframework.tables.unit_aggregate_shuffle import RowsOfUnits
from dpframework.tables.unread_table_files import Piece, TableFiles
from dpframework.tables.view_join_shuffle import JoinedRows
from dpframework.verify import EngineConformance, check_bounding, unit_readers
from dpframework.verify.tables.people_table_files import (
    KEY,
    OF_PEOPLE,
    TOWNS,
    VIEWS,
    VISITS,
    tables_of_people,
    write_views,
    write_visits,
)

STRICT = dpf.Schema([dpf.Boolean("ill"), dpf.Numeric("cost", 0, 100, bins=5)])
NUMBERS = tuple(itertools.product((1, 3, 11), (1, 2, 5)))


def require_same(found: Table, expected: Table, *, ordered: bool = True) -> None:
    """Compare codes, values and keys, bit by bit."""
    assert found.rows == expected.rows
    assert (found.schema, found.unit, found.key) == (expected.schema, expected.unit, expected.key)
    assert [column.dtype for column in found.columns] == [column.dtype for column in expected.columns]
    assert sorted(found.values) == sorted(expected.values)
    tables = [
        [*map(np.asarray, table.columns), *(table.values[name].view(np.int64) for name in sorted(table.values))]
        for table in (found, expected)
    ]
    rows = [np.stack([column.astype(np.int64) for column in columns]) for columns in tables]
    if not ordered:
        rows = [own[:, np.lexsort(own)] for own in rows]
    assert np.array_equal(*rows)
    for name, keys in expected.keys.items():
        assert found.keys[name].texts() == keys.texts()
        assert found.keys[name].count_keys() == keys.count_keys()


def read(files: TableFiles) -> Table:
    return files.read() if files.right is None else attrs.evolve(files.read(), key=files.key)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TableFiles]:
    folder = tmp_path_factory.mktemp("people")
    keys = write_visits(folder / "keys", TOWNS, dpf.PrivacyUnit("person", 5))
    named = {
        name: attrs.evolve(files, key=None) if files.unit.id is None else files
        for name, files in tables_of_people(folder)
    }
    return {**named, "keys": keys, "views": write_views(folder / "views")}


NAMES = (
    "at most 1 rows of a person",
    "at most 3 rows of a person",
    "at most 2 rows of a person in a month",
    "rows of a month",
    "one row of a person",
    "one row of a person in a month",
    "keys",
    "views",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_table_does_not_depend_on_pieces_and_buckets(name: str, people: dict[str, TableFiles]) -> None:
    assert people.keys() == set(NAMES)
    files = people[name]
    expected = read(files)
    assert expected.rows > 3
    for number, buckets in NUMBERS:
        require_same(read_in_pieces(files, number, buckets), expected)
        require_same(read_in_pieces(attrs.evolve(files, ordered=False), number, buckets), expected, ordered=False)


@pytest.mark.parametrize("name", NAMES)
def test_values_that_are_not_read_are_not_kept(name: str, people: dict[str, TableFiles]) -> None:
    files = attrs.evolve(people[name], values=[])
    expected = read(files).with_values([])
    require_same(read_in_pieces(files, 3, 2), expected)


def test_rows_in_any_order_are_spread_evenly(people: dict[str, TableFiles]) -> None:
    """In the order of their first rows, most people would be in the first file."""
    rng = np.random.default_rng(0)
    files = people["one row of a person"]
    folder = Path(files.path[0]).parent / "many"
    folder.mkdir(exist_ok=True)
    for k in range(4):
        rows = pl.DataFrame({"person": rng.integers(0, 400, 1000), "ill": True, "ward": "x", "cost": 1.0})
        rows.write_parquet(folder / f"{k}.parquet")
    shared = {}
    for ordered in (True, False):
        given = TableFiles(folder, OF_PEOPLE, unit=files.unit, key=KEY, ordered=ordered)
        how = shuffle_of(given, given.pieces(1))
        assert isinstance(how, RowsOfUnits)
        spread = [how.spread(piece, 2) for piece in given.pieces(1)]
        answers = [how.gather([one.messages[k] for one in spread])[0] for k in range(2)]
        shared[ordered] = [sum(frames_of(own[k])[0].height for own in answers) for k in range(4)]
    assert sum(shared[True]) == sum(shared[False])
    assert shared[True][0] > 0.9 * sum(shared[True])
    assert max(shared[False]) < 0.35 * sum(shared[False])


def test_tables_without_rows_or_ids_are_read(tmp_path: Path) -> None:
    empty = pl.DataFrame(
        {"person": [], "ill": [], "ward": [], "cost": [], "town": []},
        dict.fromkeys(("person", "ill", "ward", "cost", "town"), pl.String),
    )
    empty.write_parquet(tmp_path / "0.parquet")
    nobody = pl.DataFrame({"person": [None], "ill": ["yes"], "ward": ["x"], "cost": ["3"], "town": ["Ulm"]})
    nobody.write_parquet(tmp_path / "1.parquet")
    for schema, rows in ((VISITS, 2), (OF_PEOPLE, 1), (TOWNS, 3)):
        files = TableFiles(tmp_path, schema, unit=dpf.PrivacyUnit("person", rows), key=KEY)
        for number, buckets in NUMBERS:
            found = read_in_pieces(files, number, buckets)
            require_same(found, files.read())
            assert found.rows == 0


def test_a_table_without_a_key_has_rows_by_a_new_one(people: dict[str, TableFiles]) -> None:
    files = attrs.evolve(people["at most 1 rows of a person"], key=None)
    keys = {read_in_pieces(files, 3, 2).key for _ in range(2)}
    assert None not in keys
    assert len(keys) == 2


# What a strict policy refuses


def refusals(files: TableFiles) -> list[str]:
    """Return what is said where one process reads, and where several do."""
    found = []
    for read_it in (files.read, lambda: read_in_pieces(files, 3, 2), lambda: read_in_pieces(files, 1, 1)):
        with pytest.raises(dpf.InputError) as caught:
            read_it()
        found.append(f"{type(caught.value).__name__} {caught.value}")
    return found


COLUMNS = {"person": ["1", "2", "3", "4"], "ill": ["yes", "no", "no", "yes"], "cost": ["1", "2", "3", "4"]}
DERIVED = dpf.Schema(
    STRICT.attributes,
    derive=[
        dpf.derive("ever", "any(ill)", per="unit"),
        dpf.derive("total", "sum(cost)", per="unit", lower=0, upper=9, bins=2),
    ],
)
REFUSED: dict[str, tuple[dict[str, list[Any]], str]] = {
    "no id": ({"person": ["1", "2", "3", None]}, "has missing values; each row needs an id"),
    "a blank id": ({"person": ["1", "2", " ", "4"]}, "has missing values; each row needs an id"),
    "a label": ({"ill": ["yes", "no", "maybe", "yes"]}, "attribute 'ill'"),
    "a number": ({"cost": ["1", "2", "3", "400"]}, "attribute 'cost'"),
    "both": ({"cost": ["1", "2", "x", "400"], "ill": ["yes", "no", "no", ""]}, "attribute 'ill'"),
    "ids first": ({"cost": ["1", "2", "x", "400"], "person": ["1", None, "3", "4"]}, "each row needs an id"),
    "a column": ({"cost": []}, "has no column 'cost'"),
}


@pytest.mark.parametrize("schema", [STRICT, DERIVED], ids=["rows", "columns"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_in_the_same_words(name: str, schema: dpf.Schema, tmp_path: Path) -> None:
    changed, says = REFUSED[name]
    columns = {column: cells for column, cells in {**COLUMNS, **changed}.items() if cells}
    for k in range(2):
        pl.DataFrame(columns, strict=False)[2 * k : 2 * k + 2].write_parquet(tmp_path / f"{k}.parquet")
    files = TableFiles(tmp_path, schema, unit=dpf.PrivacyUnit("person"), key=KEY, out_of_domain="error")
    (in_memory, *in_pieces) = refusals(files)
    assert says in in_memory
    if name != "a column":  # then each file is opened before any is read
        assert in_pieces == [in_memory] * 2
    if name not in ("no id", "a blank id", "ids first", "a column"):
        read_in_pieces(attrs.evolve(files, out_of_domain="clamp"), 3, 2)


@pytest.mark.parametrize(
    ("unit", "says"),
    [
        (dpf.PrivacyUnit("ill", 2), "unit 'ill' is an attribute of the schema"),
        (dpf.PrivacyUnit("person", 2, period="month", date="cost"), "date 'cost' is an attribute of the schema"),
        (dpf.PrivacyUnit("person", 2, period="month", date="day"), "reads one month at a time; say which"),
        (dpf.PrivacyUnit(period="month", date="day"), "reads one month at a time; say which"),
    ],
    ids=["id", "date", "period", "period of rows"],
)
def test_units_that_cannot_be_read_are_refused_in_the_same_words(
    unit: dpf.PrivacyUnit, says: str, tmp_path: Path
) -> None:
    pl.DataFrame({**COLUMNS, "day": ["2026-03-01"] * 4}).write_parquet(tmp_path / "visits.parquet")
    files = TableFiles(tmp_path, STRICT, unit=unit, key=KEY)
    (in_memory, *in_pieces) = refusals(files)
    assert says in in_memory
    assert in_pieces == [in_memory] * 2
    with pytest.raises(dpf.InputError, match=says):  # before any worker is asked, whose errors are not told
        shuffle_of(files, files.pieces(3))


def test_rows_that_are_not_kept_may_hold_anything(tmp_path: Path) -> None:
    """Only what a table keeps is looked at, as in memory."""
    for k in range(2):
        pl.DataFrame({"person": ["1", "1"], "ill": ["yes", "no"], "cost": ["1", "x"]}).write_parquet(
            tmp_path / f"{k}.parquet"
        )
    said = set()
    for key in range(12):
        files = TableFiles(tmp_path, STRICT, unit=dpf.PrivacyUnit("person"), key=bytes([key]), out_of_domain="error")
        try:
            require_same(read_in_pieces(files, 3, 2), files.read())
            said.add("read")
        except dpf.InputError:
            assert len(set(refusals(files))) == 1
            said.add("refused")
    assert said == {"read", "refused"}


IDS: dict[str, tuple[list[str | None], list[str | None], str]] = {
    "twice": (["1", "2", "3", "1.0"], ["1", "2", "3", "4"], "left: the id column 'person' holds an id twice"),
    "twice on the right": (
        ["1", "2", "3", "4"],
        ["1", "2", " 1", "4"],
        "right: the id column 'person' holds an id twice",
    ),
    "missing": (["1", "2", "3", "4"], ["1", "2", "3", None], "right: the id column 'person' has missing values"),
    "twice before missing": (["1", "2", "3", "3"], ["1", "2", "3", None], "left: the id column 'person' holds an id"),
    "none in common": (["1", "2", "3", "4"], ["5", "6", "7", "8"], "left and right: have no id in common"),
}


@pytest.mark.parametrize("name", IDS)
def test_views_that_do_not_fit_are_refused_in_the_same_words(name: str, tmp_path: Path) -> None:
    left, right, says = IDS[name]
    cells = {"left": {"ill": ["yes"] * 4, "age": ["3"] * 4}, "right": {"ward": ["x"] * 4, "cost": ["3"] * 4}}
    for side, ids in (("left", left), ("right", right)):
        (tmp_path / side).mkdir()
        for k in range(2):
            rows = pl.DataFrame({"person": ids, **cells[side]}, schema_overrides={"person": pl.String})
            rows[2 * k : 2 * k + 2].write_parquet(tmp_path / side / f"{k}.parquet")
    files = TableFiles(tmp_path / "left", VIEWS, right=tmp_path / "right", id="person", key=KEY, out_of_domain="error")
    said = refusals(files)
    assert says in said[0]
    assert set(said) == {said[0]}
    assert read_in_pieces(attrs.evolve(files, out_of_domain="clamp"), 3, 2).rows < 4


def test_files_of_views_are_described_before_they_are_opened(tmp_path: Path) -> None:
    both = {"right": "right", "id": "person"}
    assert TableFiles("left", VIEWS, **both).views == (("left",), ("right",))
    with pytest.raises(dpf.InputError, match="the left view has one path; give a folder or a pattern"):
        TableFiles(["a", "b"], VIEWS, **both)
    with pytest.raises(dpf.InputError, match="id 'person' joins two views, and only one is given; give the right view"):
        TableFiles("left", VIEWS, id="person")
    with pytest.raises(dpf.InputError, match="may belong to two units of 'who'"):
        TableFiles("left", VIEWS, unit=dpf.PrivacyUnit("who"), **both)
    with pytest.raises(dpf.InputError, match="no view"):
        TableFiles("left", VISITS, **both)


def test_an_engine_that_joins_no_files_refuses_those_of_views() -> None:
    study = dpf.Study(VIEWS, epsilon=1, unit="person")
    study.add("ill", dpf.miner("histogram", attribute="ill", epsilon=1))
    files = TableFiles("left", VIEWS, right="right", id="person", unit=study.unit)
    told = "engine 'duckdb' cannot join the files of two views; join them into one file"
    with pytest.raises(dpf.InputError, match=told):
        study.run(files, engine=dpf.DuckDB())


def test_options_of_a_url_stay_where_files_are_described_anew() -> None:
    files = TableFiles("s3://bucket/a.parquet", VISITS, options={"aws_region": "eu-west-1"})
    assert attrs.evolve(files, values=[]).options == (("aws_region", "eu-west-1"),)
    assert files.pieces(1)[0].how.options == (("aws_region", "eu-west-1"),)


def test_a_file_that_loses_a_row_between_is_refused(tmp_path: Path) -> None:
    tables = [
        write_visits(tmp_path / f"{len(schema)}", schema, dpf.PrivacyUnit("person", 2)) for schema in (VISITS, TOWNS)
    ]
    for files in (*tables, write_views(tmp_path / "views")):
        pieces = files.pieces(1)
        how = shuffle_of(files, pieces)
        assert how is not None
        spread = [how.spread(piece, 1) for piece in pieces]
        answers, _ = how.gather([one.messages[0] for one in spread])
        pl.read_parquet(pieces[0].file)[1:].write_parquet(pieces[0].file)
        with pytest.raises(dpf.InputError, match="changed while it was read; read it again"):
            how.settle(pieces[0], spread[0].state, [answers[0]])


SIDES = dpf.Schema([dpf.Boolean("ill", view="left"), dpf.Numeric("cost", 0, 100, bins=5, view="right")])
KEYED = dpf.Schema([dpf.Boolean("ill"), dpf.Open("town")])
PERSON, TWICE = dpf.PrivacyUnit("person"), dpf.PrivacyUnit("person", 2)
READ_TWICE: dict[str, Callable[[Path, Path], Table]] = {
    "a row of each person": lambda path, _: dpf.read_table(path, DERIVED, unit=PERSON),
    "a row of each person in pieces": lambda path, _: read_in_pieces(TableFiles(path, DERIVED, unit=PERSON), 1, 1),
    "keys in pieces": lambda path, _: read_in_pieces(TableFiles(path, KEYED, unit=TWICE), 1, 1),
    "views": lambda path, other: dpf.read_two_views(path, other, SIDES, id="person"),
    "views in pieces": lambda path, other: read_in_pieces(
        TableFiles(path, SIDES, right=str(other), id="person", unit=PERSON, key=KEY), 1, 1
    ),
}


@pytest.mark.parametrize("more", ["5,yes,5,A\n", ""])
@pytest.mark.parametrize("name", READ_TWICE)
def test_a_file_that_grows_or_shrinks_while_it_is_read_is_refused(
    name: str, more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids and columns are read one after the other: a row's cells must not be taken for those of another's unit."""
    paths = tmp_path / "visits.csv", tmp_path / "other.csv"
    for path in paths:
        pl.DataFrame({**COLUMNS, "town": ["A", "B", "A", "B"]}).write_csv(path)

    def change() -> None:
        for path in paths:
            text = path.read_text()
            path.write_text(text + more if more else text[: text[:-1].rindex("\n") + 1])

    def before_and_after(*given: Any) -> Ids:
        change()
        found = ids_in(*given)
        change()
        return found

    READ_TWICE[name](*paths)
    for module in (reading, two_view_reader, view_join_shuffle):
        monkeypatch.setattr(module, "ids_in", before_and_after)
    with pytest.raises(dpf.InputError, match="changed while it was read; read it again"):
        READ_TWICE[name](*paths)


# The parts of a shuffle


def test_nothing_of_a_shuffle_shows_a_row_or_a_key(people: dict[str, TableFiles]) -> None:
    for name in NAMES:
        files = attrs.evolve(people[name], key=b"a key that nobody sees")
        how = shuffle_of(files, pieces := files.pieces(1))
        if how is None:
            assert name == "rows of a month"
            continue
        made = how.spread(pieces[0], 2)
        shown = f"{how!r} {made!r} {made.state!r}"
        assert "nobody sees" not in shown
        assert str(60) not in shown  # the rows of the first file


def test_numbers_by_hash_are_those_of_the_exact_id_even_and_of_their_use() -> None:
    ids = pl.Series([str(k) for k in range(4000)])
    found = numbers_by_hash(ids, KEY, 7, b"bucket")
    assert np.bincount(found, minlength=7).min() > 450
    assert np.array_equal(numbers_by_hash(ids[::-1], KEY, 7, b"bucket"), found[::-1])
    for other in (numbers_by_hash(ids, KEY, 7, b"piece"), numbers_by_hash(ids, b"another", 7, b"bucket")):
        assert 0.05 < (other == found).mean() < 0.25
    assert numbers_by_hash(ids[:0], KEY, 7, b"bucket").tolist() == []
    assert set(numbers_by_hash(pl.Series(["\0b61", "\U0010ffff", ""]), KEY, 1, b"bucket").tolist()) == {0}


def test_ranges_of_no_numbers_are_none() -> None:
    assert ranges(np.array([5, 7, 1]), np.array([2, 0, 3])).tolist() == [5, 6, 1, 2, 3]
    assert ranges(np.array([], dtype=np.int64), np.array([], dtype=np.int64)).tolist() == []


def test_a_message_holds_frames_as_they_are() -> None:
    one = pl.DataFrame({"id": ["\0b61", None, "\u00e9"], "x": [-0.0, float("nan"), 5e-324]})
    other = pl.DataFrame({"k": pl.Series([], dtype=pl.UInt8)})
    found = frames_of(pack_frames(one, other))
    assert [frame.schema for frame in found] == [one.schema, other.schema]
    assert found[0].equals(one)
    assert np.array_equal(found[0]["x"].to_numpy().view(np.int64), one["x"].to_numpy().view(np.int64))


def test_findings_add_up() -> None:
    one = ShuffleFindings(frozenset({(IdFinding.TWICE, 0)}), frozenset({("a", Unfit.OUTSIDE)}))
    both = one | ShuffleFindings(frozenset({(IdFinding.UNFIT, 1)}))
    assert both == ShuffleFindings(frozenset({(IdFinding.TWICE, 0), (IdFinding.UNFIT, 1)}), one.unfit)


def test_units_are_chosen_among_together_while_they_have_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_bound_shuffle, "MOST_CHOSEN", 10)
    units, sizes = np.arange(6), np.array([4, 4, 4, 30, 1, 1])
    groups = [one.tolist() for one in row_bound_shuffle._together(units, sizes)]
    assert [unit for group in groups for unit in group] == units.tolist()
    assert [sum(sizes[group[1:]]) < 10 for group in groups] == [True] * 3
    assert list(row_bound_shuffle._together(units[:0], sizes[:0])) == []


def test_rows_are_the_same_where_few_are_chosen_among_at_once(
    people: dict[str, TableFiles], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = people["at most 3 rows of a person"]
    monkeypatch.setattr(row_bound_shuffle, "MOST_CHOSEN", 2)
    require_same(read_in_pieces(files, 3, 2), files.read())


# Mistakes that are planted


class BoundsEachPiece(BoundedRows):
    """The rows of a unit are bounded in each piece by itself."""

    def gather(self, messages: Sequence[bytes]) -> tuple[list[bytes], ShuffleFindings]:
        return [super(BoundsEachPiece, self).gather([message])[0][0] for message in messages], ShuffleFindings()


class BucketsByText(BoundedRows):
    """Buckets are chosen by an id as it is written, so that one person may be in two."""

    def spread(self, piece: Piece, buckets: int) -> Any:
        texts = pl.concat([block["person"].cast(pl.String) for block in piece.source().blocks(["person"])])
        exact, whole = ids_of(texts, "t").series, numbers_by_hash
        written = dict(zip(exact[::-1].to_list(), texts[::-1].to_list(), strict=True))  # as it is written first

        def by_text(ids: pl.Series, *given: Any) -> Any:
            return whole(pl.Series([written[one] for one in ids], dtype=pl.String), *given)

        with mock.patch.object(row_bound_shuffle, "numbers_by_hash", by_text):
            return super().spread(piece, buckets)


class BucketsByMachine(BoundedRows):
    """The hash that chooses buckets is another one for each piece, as if machines had different ones."""

    def spread(self, piece: Piece, buckets: int) -> Any:
        other = attrs.evolve(self, key=bytes([piece.part[0]]) + Path(piece.file).name.encode())
        return super(BucketsByMachine, other).spread(piece, buckets)


class InOrderOfArrival(BoundedRows):
    """Messages are taken in the order in which they arrive, so that a row has another place among its unit's."""

    def gather(self, messages: Sequence[bytes]) -> tuple[list[bytes], ShuffleFindings]:
        return super().gather(messages[::-1])[0][::-1], ShuffleFindings()


class ChoosesAnew(BoundedRows):
    """Each bucket has a key of its own."""

    def gather(self, messages: Sequence[bytes]) -> tuple[list[bytes], ShuffleFindings]:
        return super(ChoosesAnew, attrs.evolve(self, key=b"another")).gather(messages)


class OneRowMore(BoundedRows):
    """A unit keeps a row too many."""

    def gather(self, messages: Sequence[bytes]) -> tuple[list[bytes], ShuffleFindings]:
        unit = attrs.evolve(self.how.unit, rows=self.how.unit.rows + 1)
        return super(OneRowMore, attrs.evolve(self, how=attrs.evolve(self.how, unit=unit))).gather(messages)


class AnswersTheNext(BoundedRows):
    """A piece is given the answers to another one."""

    def settle(self, piece: Piece, state: IdRows, answers: Sequence[bytes]) -> Any:
        return super().settle(piece, state, [*answers[1:], answers[0]])


class KeysOfEachPiece(BoundedRows):
    """A unit counts for a key once in each piece."""

    def gather(self, messages: Sequence[bytes]) -> tuple[list[bytes], ShuffleFindings]:
        whole = row_bound_shuffle.firsts_of_units

        def of_each(parts: Any, kept: Any, totals: Any) -> Any:
            own = [np.isin(np.arange(len(kept)), places) for places, _ in parts]
            return np.any([whole([part], kept & here, totals) for part, here in zip(parts, own, strict=True)], axis=0)

        with mock.patch.object(row_bound_shuffle, "firsts_of_units", of_each):
            return super().gather(messages)


class ColumnsOfEachPiece(RowsOfUnits):
    """A unit has a row for each piece that it is in."""

    def gather(self, messages: Sequence[bytes]) -> tuple[list[bytes], ShuffleFindings]:
        answers = [super(ColumnsOfEachPiece, self).gather([message])[0] for message in messages]
        return [pack_frames(*(frames_of(own[k])[0] for own in answers)) for k in range(self.pieces)], (
            ShuffleFindings()
        )


class LastFirst(RowsOfUnits):
    """The rows of a unit are taken from the last piece to the first."""

    def gather(self, messages: Sequence[bytes]) -> tuple[list[bytes], ShuffleFindings]:
        return super().gather(messages[::-1])


class JoinsTwice(JoinedRows):
    """An id that occurs twice in one piece is taken for one that occurs once."""

    def gather(self, messages: Sequence[bytes]) -> tuple[list[bytes], ShuffleFindings]:
        once = [pack_frames(frames_of(one)[0].with_columns(pl.lit(1, pl.Int64).alias("rows"))) for one in messages]
        return super().gather(once)


class JoinsAnyRight(JoinedRows):
    """Only the left view's ids must occur once, so that a row is joined with several."""

    def gather(self, messages: Sequence[bytes]) -> tuple[list[bytes], ShuffleFindings]:
        left, right = messages[: self.left], [frames_of(one)[0] for one in messages[self.left :]]
        rows = pl.concat([frame.with_columns(pl.lit(k).alias("of")) for k, frame in enumerate(right)]).unique(
            "id", keep="first", maintain_order=True
        )
        once = [
            rows.filter(pl.col("of") == k).drop("of").with_columns(pl.lit(1, pl.Int64).alias("rows"))
            for k in range(len(right))
        ]
        return super().gather([*left, *map(pack_frames, once)])


def planted(kind: type[Any]) -> Any:
    """Return what makes a shuffle of that kind in place of the right one of the same class."""

    def made(files: TableFiles, pieces: Sequence[Piece]) -> Shuffle[Any] | None:
        right = shuffle_of(files, pieces)
        if right is None or not issubclass(kind, type(right)):
            return right
        return kind(**{one.name: getattr(right, one.name) for one in attrs.fields(type(right))})

    return made


class ReadsApart(dpf.InMemory):
    """Reads files in pieces, by a shuffle in which a mistake is planted."""

    def __init__(self, kind: type[Any] | None = None) -> None:
        super().__init__()
        self._shuffle = shuffle_of if kind is None else planted(kind)

    def open(self, files: TableFiles) -> Any:
        return self.load(read_in_pieces(files, 3, 2, self._shuffle))


PEOPLE, ONCE, VIEW = (
    "test_what_follows_from_the_rows_of_people_is_as_in_memory",
    "test_a_person_counts_once_for_each_key",
    "test_two_views_are_joined_as_in_memory",
)
FOUND: dict[type[Any], tuple[str, str]] = {
    BoundsEachPiece: (PEOPLE, "at most 1 rows of a person, .* rows are counted twice"),
    BucketsByText: (PEOPLE, "at most 1 rows of a person, .* rows are counted twice"),
    BucketsByMachine: (PEOPLE, "at most 1 rows of a person, .* rows are counted twice"),
    InOrderOfArrival: (PEOPLE, "at most 1 rows of a person, .* but in other cells"),
    ChoosesAnew: (PEOPLE, "at most 1 rows of a person, .* but in other cells"),
    OneRowMore: (PEOPLE, "at most 1 rows of a person, .* rows are counted twice"),
    AnswersTheNext: (PEOPLE, "at most . rows of a person, "),
    KeysOfEachPiece: (ONCE, "keys of people, town: .* rows are counted twice"),
    ColumnsOfEachPiece: (PEOPLE, "one row of a person, .* rows are counted twice"),
    LastFirst: (PEOPLE, "one row of a person, began: .* but in other cells"),
    JoinsTwice: (VIEW, "two views, .* rows are counted twice"),
    JoinsAnyRight: (VIEW, "two views, .* rows are counted twice"),
}


def require_passed(kind: type[Any] | None, name: str, folder: Path) -> None:
    suite: Any = type("TestOne", (EngineConformance,), {"build_engine": classmethod(lambda cls: ReadsApart(kind))})
    suite.setup_class()
    getattr(suite(), name)(folder)


@pytest.mark.parametrize("kind", FOUND, ids=lambda kind: kind.__name__)
def test_the_suite_of_engines_names_what_is_planted(kind: type[Any], tmp_path: Path) -> None:
    name, says = FOUND[kind]
    with pytest.raises(AssertionError, match=says):
        require_passed(kind, name, tmp_path)


@pytest.mark.parametrize("name", [PEOPLE, ONCE, VIEW])
def test_the_suite_of_engines_passes_what_is_right(name: str, tmp_path: Path) -> None:
    require_passed(None, name, tmp_path)


SEARCHED = dpf.Schema([dpf.Categorical("town", ["A", "B", "C"]), dpf.Boolean("ill")])
BOUNDED = {
    BoundsEachPiece: r"adds \d rows, and may add 2",
    BucketsByText: r"adds \d rows, and may add 2",
    BucketsByMachine: r"adds \d rows, and may add 2",
    OneRowMore: "adds 3 rows, and may add 2",
}


@pytest.mark.parametrize("kind", BOUNDED, ids=lambda kind: kind.__name__)
def test_the_search_for_bounds_that_are_broken_finds_what_is_planted(kind: type[Any]) -> None:
    (reader,) = (one for one in unit_readers() if one.name == "in pieces")

    def read_planted(held: Any, schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> Table:
        return read_in_pieces(TableFiles(held, schema, unit=unit, key=key), 3, 2, planted(kind))

    wrong = attrs.evolve(reader, name="planted", read=read_planted)
    report = check_bounding(SEARCHED, dpf.PrivacyUnit("person", 2), readers=[wrong], tables=18)
    assert any(re.search(BOUNDED[kind], says) for says in report.violations), report.violations


def test_the_search_for_bounds_that_are_broken_passes_a_reader_in_pieces() -> None:
    (reader,) = (one for one in unit_readers() if one.name == "in pieces")
    assert check_bounding(SEARCHED, dpf.PrivacyUnit("person", 2), readers=[reader], tables=9).passed


def test_a_reader_in_pieces_holds_people_s_rows_in_three_files(tmp_path: Path) -> None:
    (reader,) = (one for one in unit_readers() if one.name == "in pieces")
    for ids, ends in ((["7", 7, 7.0, "ann", None], ".csv"), ([b"a", b"b", b"c", None, b"a"], ".parquet")):
        files = [Path(file) for file in reader.hold({"person": ids, "ill": [True] * 5}, tmp_path / ends)]
        assert [file.suffix for file in files] == [ends] * 3
        table = reader.read(files, dpf.Schema([dpf.Boolean("ill")]), dpf.PrivacyUnit("person", 1), KEY)
        assert table.rows == (2 if ends == ".csv" else 3)
