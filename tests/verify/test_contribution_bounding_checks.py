"""The parts of the test of bounding: the people of its tables, what it finds, and the loss that it measures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow.parquet as pq
import pytest

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace
from dpframework.tables.ids import ids_of
from dpframework.tables.reading import table_from_columns
from dpframework.verify import UnitReader, check_bounding, unit_readers
from dpframework.verify.tables import contribution_bounding_checks
from dpframework.verify.tables.contribution_bounding_checks import _compare, _People, _Release, _rows, _spell, _units
from dpframework.verify.tables.neighbours import Universe
from dpframework.verify.tables.people_with_confusable_ids import BIG, ID_KINDS, LONG, PAIRS, SNOWFLAKE, people_of

SCHEMA = dpf.Schema([dpf.Categorical("town", ["A", "B", "C"]), dpf.Boolean("ill")])
ONE, TWO = dpf.PrivacyUnit("person"), dpf.PrivacyUnit("person", 2)


def name_of(person: Sequence[Any]) -> str:
    """The id of a person, by the rule that reads ids: the same for each way in which it is written."""
    (name,) = {str(ids_of([cell], "t").series[0]) for cell in person}
    return name


LARGE_FLOATS = (f"{int(1e300) // 10}e1", f"{int(math.nextafter(1e300, 0))}e0")  # the first ends in 0
NO_BYTES = "00000000-0000-0000-0000-000000000000"  # 16 of them are a UUID
TOGETHER: dict[str, list[tuple[str, str]]] = {
    "whole numbers": [
        ("9007199254740992", "9007199254740993"),
        ("1700000000000000000", "1700000000000000001"),
        ("4611686018427387904", "4611686018427387905"),
        ("-1", "-2"),
        ("0", "2305843009213693951"),
    ],
    "large numbers": [
        ("1" + "0" * 30, "1" + "0" * 29 + "1"),
        ("18446744073709551616", "18446744073709551617"),
        ("1e400", "1" + "0" * 399 + "1e0"),
        ("-1" + "0" * 31, "1" + "0" * 31),
    ],
    "decimals": [
        ("9007199254740992", "9007199254740993"),
        ("1700000000000000000", "1700000000000000001"),
        ("0.1", "0.10000000000000000001"),
        ("7", "7.5"),
    ],
    "floats": [
        ("0.1", "0.10000000000000002"),
        LARGE_FLOATS,
        ("9007199254740992", "9007199254740994"),
        ("7", "7.5"),
    ],
    "texts": [
        ("ann", "Ann"),
        ("7", "007"),
        ("a name that is longer than forty characters, a", "a name that is longer than forty characters, b"),
        ("\u00e9", "e\u0301"),
        ("a b", "a  b"),
        ("nan", "NaN"),
    ],
    "bytes": [
        ("\0b61", "\0b41"),
        ("\0bff", "\0bff00"),
        ("\0bfe", "\0bfd"),
        (NO_BYTES, "\0b" + "0" * 30),
    ],
    "UUIDs": [
        (f"{NO_BYTES[:-1]}1", f"{NO_BYTES[:-1]}2"),
        (f"8{NO_BYTES[1:]}", f"8{NO_BYTES[1:-1]}1"),
        ("00000000-0000-0000-0020-000000000000", "00000000-0000-0000-0020-000000000001"),
    ],
    "spelled in several ways": [
        ("7", "07"),
        ("9007199254740992", "9007199254740993"),
        ("1152921504606846976", "1152921504606847000"),
        ("0", "0.5"),
    ],
    "of any kind": [
        ("9007199254740992", "9007199254740993"),
        ("0.1", "0.10000000000000000001"),
        LARGE_FLOATS,
        ("ann", "Ann"),
        ("\0b37", "7"),
        ("true", "1"),
        (f"{NO_BYTES[:-1]}1", f"{NO_BYTES[:-1]}2"),
    ],
}


def test_ids_are_those_that_some_rule_takes_for_one() -> None:
    """All ids by their names, and how often each is written in another way."""
    assert {kind: [(name_of(one), name_of(other)) for one, other in pairs] for kind, pairs in PAIRS.items()} == TOGETHER
    assert {kind: [len(person) for pair in pairs for person in pair] for kind, pairs in PAIRS.items()} == {
        "whole numbers": [1] * 10,
        "large numbers": [1] * 8,
        "decimals": [1] * 8,
        "floats": [1] * 8,
        "texts": [1, 1, 3, *[1] * 9],
        "bytes": [1] * 8,
        "UUIDs": [1] * 6,
        "spelled in several ways": [6, 2, 4, 3, 3, 2, 3, 4],
        "of any kind": [1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 1],
    }
    assert tuple(PAIRS) == ID_KINDS
    assert (BIG, SNOWFLAKE, len(LONG)) == (9_007_199_254_740_992, 1_700_000_000_000_000_000, 45)


def test_a_float_takes_some_ids_for_one_and_a_hash_others() -> None:
    whole, large, decimals, floats = (PAIRS[kind] for kind in ("whole numbers", "large numbers", "decimals", "floats"))
    for (one,), (other,) in [*whole[:3], *large[:2], *decimals[:3]]:
        assert one != other
        assert float(one) == float(other)
    for (one,), (other,) in whole[3:]:
        assert hash(one) == hash(other)
    for (one,), (other,) in floats[:2]:
        assert other in (math.nextafter(one, 0), math.nextafter(one, math.inf))
    assert floats[2][1][0] == math.nextafter(floats[2][0][0], math.inf)


def test_people_of_a_table_are_two_pairs_and_others_at_each_turn() -> None:
    pairs = PAIRS["decimals"]
    assert people_of("decimals", 0) == [*pairs[0], *pairs[1]]
    assert people_of("decimals", 1) == [*pairs[2], *pairs[3]]
    assert people_of("decimals", 2) == people_of("decimals", 0)
    assert people_of("UUIDs", 1) == [*PAIRS["UUIDs"][2], *PAIRS["UUIDs"][0]]
    for kind in ID_KINDS:
        seen = [person for turn in range(4) for person in people_of(kind, turn)]
        assert all(person in seen for pair in PAIRS[kind] for person in pair)


def drawn(seed: int, schema: dpf.Schema = SCHEMA, kind: str = "whole numbers") -> tuple[list[Any], _People]:
    people = people_of(kind, 0)
    return people, _People.draw(Universe(schema), TWO, people, np.random.default_rng(seed))


def test_each_of_the_people_has_one_to_nine_rows_and_some_rows_have_nobody() -> None:
    rows, nobody, sizes = 0, 0, set()
    for seed in range(60):
        people, table = drawn(seed)
        numbers = Counter(table.whose.tolist())
        assert set(numbers) <= {-1, 0, 1, 2, 3}
        sizes |= {number for whose, number in numbers.items() if whose >= 0}
        assert list(table.columns) == ["person", "town", "ill"]
        assert {len(column) for column in table.columns.values()} == {len(table.whose)}
        for whose, cell in zip(table.whose.tolist(), table.columns["person"], strict=True):
            assert cell == (None if whose < 0 else people[whose][0])
        rows, nobody = rows + len(table.whose), nobody + numbers[-1]
        assert set(table.columns["town"]) <= {"A", "B", "C"}
        assert 4 <= len(table.whose) <= 36
    assert sizes == set(range(1, 10))
    assert nobody / rows == pytest.approx(0.1, abs=0.02)
    assert rows / 60 == pytest.approx(20, abs=2)
    whose = drawn(1)[1].whose.tolist()
    assert whose != sorted(whose)
    towns = Counter(town for seed in range(30) for town in drawn(seed)[1].columns["town"])
    assert all(number / sum(towns.values()) == pytest.approx(1 / 3, abs=0.07) for number in towns.values())
    _, table = drawn(3)
    left = table.without(1)
    kept = [k for k, one in enumerate(table.whose.tolist()) if one != 1]
    assert left == {name: [column[k] for k in kept] for name, column in table.columns.items()}
    assert 0 < len(kept) < len(table.whose)


def test_an_id_is_written_in_all_its_ways() -> None:
    people = people_of("spelled in several ways", 0)
    rng = np.random.default_rng(0)
    written = [repr(_spell(people, 0, rng)) for _ in range(200)]
    assert set(written) == {repr(cell) for cell in people[0]}
    assert _spell(people, -1, rng) is None
    assert {repr(_spell(people, 3, rng)) for _ in range(100)} == {repr(cell) for cell in people[3]}


def test_cells_are_written_as_values_numbers_and_nothing() -> None:
    schema = dpf.Schema([dpf.Numeric("age", 0, 8, cuts=[4], missing=True), dpf.Boolean("ill", missing=True)])
    ages, ill = set(), set()
    for seed in range(30):
        columns = drawn(seed, schema)[1].columns
        ages |= set(columns["age"])
        ill |= set(columns["ill"])
    assert None in ages
    assert ages > {None, 8.0}
    assert all(age is None or (type(age) is float and 0 <= age <= 8) for age in ages)
    assert ill == {None, *schema["ill"].cells[:2]}


def read(columns: Any, schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> dpf.Table:
    return table_from_columns(columns, schema, unit=unit, key=key)


def reader(name: str, change: Callable[[dict[str, list[Any]]], dict[str, list[Any]]] | None = None) -> UnitReader:
    """dpframework's own reading, of columns that something has changed before."""

    def changed(columns: Any, schema: dpf.Schema, unit: dpf.PrivacyUnit, key: bytes) -> dpf.Table:
        columns = {name: list(cells) for name, cells in columns.items()}
        return read(columns if change is None else change(columns), schema, unit, key)

    return UnitReader(name, lambda cells, _: cells, changed)


def compared(one: UnitReader, people: _People, unit: dpf.PrivacyUnit = TWO) -> Any:
    return _compare(one, people, SCHEMA, unit, Path(), np.random.default_rng(5))


def people_with(*rows: tuple[int, str]) -> _People:
    """Rows of the same four people, each with a town."""
    ids = [person[0] for person in people_of("texts", 0)]
    columns: dict[str, list[Any]] = {
        "person": [None if whose < 0 else ids[whose] for whose, _ in rows],
        "town": [town for _, town in rows],
        "ill": ["true"] * len(rows),
    }
    return _People(columns, np.array([whose for whose, _ in rows]))


FEW = people_with((0, "A"), (0, "B"), (0, "C"), (1, "A"), (-1, "B"), (2, "C"))


def test_bounded_rows_are_found_right() -> None:
    wrong, loss = compared(reader("honest"), FEW)
    assert wrong == {}
    assert loss == pytest.approx(1, abs=1e-9)
    assert compared(reader("honest"), people_with((0, "A"), (1, "A")))[0] == {}
    assert compared(attrs.evolve(reader("none"), hold=lambda cells, path: 1 / 0), FEW) is None


def test_what_is_found_wrong_is_said_with_the_number_of_rows() -> None:
    def doubled(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Each of a person's rows is a person of its own."""
        return {**columns, "person": [None if one is None else f"{one} {k}" for k, one in enumerate(columns["person"])]}

    def somebody(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
        return {**columns, "person": ["nobody" if one is None else one for one in columns["person"]]}

    added, _ = compared(reader("doubled", doubled), FEW)
    assert added["added"] == "adding a person with 3 rows adds 3 rows, and may add 2"
    assert added["units"] == "samples would draw several people as one, or one person as several"
    assert added["lost"].startswith("adding a person with 3 rows loses 1.5 in a release that claims 1, over 4 keys")
    assert compared(reader("somebody", somebody), FEW)[0]["added"] == (
        "adding rows without an id adds 1 rows, and may add 0"
    )
    wrong, loss = compared(reader("doubled", doubled), people_with((0, "A"), (0, "A"), (1, "B")), ONE)
    assert wrong["added"] == "adding a person with 2 rows adds 2 rows, and may add 1"
    assert loss == pytest.approx(2)

    def together(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
        return {**columns, "person": [None if one is None else "all" for one in columns["person"]]}

    gone, _ = compared(reader("together", together), people_with((0, "A"), (1, "B"), (1, "C")), ONE)
    assert gone["gone"] in (
        "adding a person with 1 rows changes which rows others keep",
        "adding a person with 2 rows changes which rows others keep",
    )
    assert set(gone) <= {"units", "gone", "lost"}


def test_rows_and_units_of_a_table_are_counted() -> None:
    columns = {"person": ["p", "q", "p", None], "town": ["A", "B", "A", "C"], "ill": ["true", "false", "true", "true"]}
    table = read(columns, SCHEMA, TWO, bytes(32))
    assert _units(table) == 2
    assert sorted(_rows(table).values()) == [1, 2]
    assert _units(dpf.Table.from_codes(SCHEMA, [np.zeros(2, dtype=int)] * 2)) is None
    assert _rows(dpf.Table.from_codes(SCHEMA, [np.array([0, 2]), np.array([1, 0])])) == _rows(
        dpf.Table.from_codes(SCHEMA, [np.array([2, 0]), np.array([0, 1])])
    )


def tables(*codes: Sequence[int]) -> list[dpf.Table]:
    return [dpf.Table.from_codes(SCHEMA, [np.array(one, dtype=int), np.zeros(len(one), dtype=int)]) for one in codes]


@pytest.mark.parametrize("rows", [1, 2])
def test_the_loss_is_that_of_a_release_over_the_keys(rows: int) -> None:
    release = _Release.of(SCHEMA, dpf.PrivacyUnit("person", rows))
    assert release.query.attribute is SCHEMA["town"]
    assert release.mechanism == DiscreteLaplace(1)
    assert release.calibration.by.rows == rows
    assert release.calibration.losses.pure.add_or_remove_one == 1
    loss = 1 / rows  # of one row
    for whole, left, expected in (
        (tables([0]), tables([]), loss),
        (tables([0, 0]), tables([]), 2 * loss),
        (tables([0, 1]), tables([]), 2 * loss),
        (tables([0, 1]), tables([0, 1]), 0),
        (tables([0]), tables([1]), 2 * loss),
        (tables([0, 0], [0, 1]), tables([0], [0]), loss),
        (tables([0], [0], [0], []), tables([], [], [], []), math.log(3 / 4 * math.exp(loss) + 1 / 4)),
        (tables([0], []), tables([], []), math.log((math.exp(loss) + 1) / 2)),
    ):
        for largest in (release.loss(whole, left), release.loss(left, whole)):  # outputs on either side are tried
            assert largest >= expected - 1e-9
            assert largest == pytest.approx(expected, abs=0.16)
    assert release.loss(tables([0], [0]), tables([], [])) == pytest.approx(loss)
    assert release._density(Counter({(0, 0, 0): 3, (1, 0, 0): 1}), np.array([0, 0, 0])) == pytest.approx(
        math.log(3 / 4 + math.exp(-loss) / 4)
        + release.mechanism.log_density(np.array([0, 0, 0]), np.array([0, 0, 0]), release.calibration)
    )


def test_readers_are_left_at_their_first_mistake_and_tables_are_counted() -> None:
    wrong = reader(
        "wrong", lambda columns: {**columns, "person": [None if p is None else 1 for p in columns["person"]]}
    )
    report = check_bounding(SCHEMA, ONE, readers=[reader("right"), wrong], tables=3, seed=1)
    assert report.tables == 4 + 1  # and one of many people
    assert report.readers == ("right", "wrong")
    assert {sentence.split(": ")[0] for sentence in report.violations} == {"wrong, ids that are whole numbers"}
    assert report.loss > 1.01
    right = check_bounding(SCHEMA, TWO, readers=[reader("right")], tables=2)
    assert right.to_dict() == {
        "unit": TWO.to_dict(),
        "readers": ["right"],
        "tables": 3,
        "loss": right.loss,
        "violations": [],
        "passed": True,
    }
    assert str(right) == f"{TWO}: each keeps its own rows, on 3 tables (right); a claim of 1 lost {right.loss:.3g}"
    assert str(report) == "\n".join(report.violations)
    assert (
        contribution_bounding_checks.ROUNDING,
        contribution_bounding_checks.KEYS,
        contribution_bounding_checks.FAR,
    ) == (1e-9, 4, 9)


def test_what_reads_nothing_loses_nothing() -> None:
    nothing = UnitReader("nothing", lambda cells, _: cells, lambda *_: tables([])[0])
    report = check_bounding(SCHEMA, ONE, readers=[nothing], tables=1)
    assert (report.loss, report.violations) == (0, ())


def test_kinds_of_ids_go_round_and_what_cannot_be_held_is_left_out() -> None:
    seen: list[str] = []

    def hold(cells: Any, path: Path) -> Any:
        seen.append(path.name)
        if any(isinstance(cell, bytes) for cell in cells["person"]):
            raise TypeError
        return cells

    counting = UnitReader("counting", hold, lambda *given: read(*given))
    report = check_bounding(SCHEMA, ONE, readers=[counting], tables=len(ID_KINDS))
    assert report.tables == len(ID_KINDS) - 1 + 1  # without bytes, and with many people
    assert seen.count("whole") == len(ID_KINDS) + 1
    assert set(seen) == {"whole", *(f"without {k}" for k in range(-1, 4))}
    assert seen[-4:] == [f"without {k}" for k in range(-1, 3)]
    again = check_bounding(SCHEMA, ONE, readers=[counting], tables=2, seed=1)
    assert again.tables == 3
    default = check_bounding(SCHEMA, ONE, readers=[reader("right")])
    assert default.tables == 10


def test_the_rows_of_a_schema_are_no_fact_about_made_up_tables() -> None:
    fixed = attrs.evolve(SCHEMA, rows=3, max_rows=None)
    assert check_bounding(fixed, ONE, readers=[reader("right")], tables=1).passed
    assert check_bounding(attrs.evolve(SCHEMA, max_rows=2), ONE, readers=[reader("right")], tables=1).passed


@pytest.mark.parametrize("rows", range(1, 8))
def test_pieces_hold_all_rows_in_their_order_and_are_as_long_as_one_another(rows: int, tmp_path: Path) -> None:
    ids = [f"p{k}".encode() for k in range(rows)]
    pieces = [
        pq.read_table(file)["person"].to_pylist()
        for file in contribution_bounding_checks._write_pieces({"town": ["A"] * rows, "person": ids}, tmp_path / "t")
    ]
    assert [one for piece in pieces for one in piece] == ids
    assert len(pieces) == contribution_bounding_checks.PIECES > 1 < contribution_bounding_checks.BUCKETS
    assert max(map(len, pieces)) - min(map(len, pieces)) <= 1


def test_a_person_has_rows_in_both_of_several_files(tmp_path: Path) -> None:
    cells = {"person": ["p", "q", "p", "q", "p"], "town": list("ABCAB"), "ill": ["true"] * 5}
    first, second = contribution_bounding_checks._write_several(cells, tmp_path / "t")
    assert pq.read_table(first).to_pydict() == {name: column[:2] for name, column in cells.items()}
    assert second.read_text().splitlines() == ["person,town,ill", "p,C,true", "q,A,true", "p,B,true"]
    with pytest.raises(TypeError, match="a CSV file holds no bytes"):
        contribution_bounding_checks._write_several({**cells, "person": [b"p", *"qpqp"]}, tmp_path / "t")
    frame = contribution_bounding_checks._pandas({"person": [2**53 + 1, None]}, tmp_path)
    assert frame["person"].tolist() == [2**53 + 1, None]
    assert [one.name for one in unit_readers()][2] == "several files"
