"""The tables that claims are tested on: their sizes, their kinds of rows, how neighbours differ, and their handles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import UnitChange
from dpframework.queries import PiecewiseScores
from dpframework.verify.mechanisms.probe_query_answers import probes
from dpframework.verify.queries.large_tables import ENDS, MANY, largest_number, pairs_of_many, telling_kinds
from dpframework.verify.tables.block_tile_and_crosstab_engines import Halves
from dpframework.verify.tables.neighbours import Pair, Sizes, Universe, changes
from dpframework.verify.tables.small_table_engine import RowsHandle, SmallTables, units_of, with_units

ADD, REPLACE = Relation
ILL = dpf.Schema([dpf.Boolean("ill")])
TOWNS = dpf.Schema([dpf.Categorical("town", ["A", "B", "C"]), dpf.Boolean("ill")])
NO, YES = b"\0", b"\1"


@pytest.mark.parametrize(
    ("facts", "unit", "number", "sizes"),
    [
        ({}, 1, {ADD: MANY, REPLACE: MANY}, {ADD: (0, 6), REPLACE: (0, 6)}),
        ({"max_rows": 5}, 1, {ADD: 4, REPLACE: 4}, {ADD: (0, 4), REPLACE: (0, 4)}),
        ({"max_rows": 5}, 3, {ADD: 2, REPLACE: 2}, {ADD: (0, 2), REPLACE: (0, 2)}),
        ({"max_rows": 2}, 3, {ADD: 0, REPLACE: 0}, {ADD: (0, 0), REPLACE: (0, 0)}),
        ({"max_rows": 10**6}, 1, {ADD: MANY, REPLACE: MANY}, {ADD: (0, 6), REPLACE: (0, 6)}),
        ({"rows": 5}, 1, {ADD: 5, REPLACE: 4}, {ADD: (5, 5), REPLACE: (4, 4)}),
        ({"rows": 5}, 3, {ADD: 5, REPLACE: 2}, {ADD: (5, 5), REPLACE: (2, 2)}),
        ({"rows": 2}, 3, {ADD: 2, REPLACE: 0}, {ADD: (2, 2), REPLACE: (0, 0)}),
    ],
)
def test_neighbours_share_as_many_rows_as_the_schema_allows_besides_a_units(
    facts: dict[str, int], unit: int, number: dict[Relation, int], sizes: dict[Relation, tuple[int, int]]
) -> None:
    schema = attrs.evolve(ILL, **facts)
    for relation in Relation:
        assert largest_number(schema, relation, unit) == number[relation]
        found = Sizes.of(schema, relation, 6, unit)
        assert (found.least, found.most) == sizes[relation]


def test_a_public_number_of_rows_that_is_too_large_is_refused() -> None:
    schema = attrs.evolve(ILL, rows=7)
    assert Sizes.of(schema, REPLACE, 6).most == 6
    with pytest.raises(
        dpf.InputError, match="the schema has rows = 7; to verify on small tables, give a schema of 6 rows or fewer"
    ):
        Sizes.of(schema, ADD, 6)


def test_telling_kinds_have_all_values_and_no_more_are_taken() -> None:
    universe = Universe(TOWNS)
    kinds = telling_kinds(universe)
    assert len(kinds) == 3  # of six: each has another town, and two have another illness
    assert [set(row) for row in universe.codes[:, kinds].tolist()] == [{0, 1, 2}, {0, 1}]


@pytest.mark.parametrize(
    ("most", "sizes"), [(0, [0]), (126, [126]), (127, [127]), (300, [127, 255, 300]), (MANY, [*ENDS, MANY])]
)
def test_many_equal_rows_are_as_many_as_narrow_numbers_hold_and_as_there_may_be(most: int, sizes: list[int]) -> None:
    found = list(pairs_of_many(Universe(ILL), [(b"", NO), (b"", YES), (NO, YES)], most))
    assert found == [
        *(Pair(NO * size, *change) for size in sizes for change in ((b"", NO), (NO, YES))),
        *(Pair(YES * size, *change) for size in sizes for change in ((b"", YES), (NO, YES))),
    ]


def test_at_large_ends_only_the_first_kinds_are_repeated_and_changes_are_among_telling_kinds() -> None:
    universe = Universe(TOWNS)
    kinds = telling_kinds(universe)
    rest = next(kind for kind in range(universe.kinds) if kind not in kinds)
    own = [(bytes((kind,)), bytes((kinds[0],))) for kind in kinds[1:]]
    found = list(pairs_of_many(universe, [(bytes((rest,)), bytes((kinds[0],))), *own, *own], 40_000))
    assert {pair.one + pair.other for pair in found if bytes((rest,)) in (pair.one, pair.other)} == set()
    sizes = [sorted({len(pair.shared) for pair in found if pair.shared[:1] == bytes((kind,))}) for kind in kinds]
    assert sizes == [[127, 255, 32_767, 40_000]] * 2 + [[127, 255, 40_000]]


@pytest.mark.parametrize("stop", [61, 90, 5_000])
def test_many_equal_rows_are_as_many_as_an_answer_grows_with(stop: int) -> None:
    def answer(rows: bytes) -> Any:
        return min(3.0 * len(rows), 3.0 * stop)

    sizes = {len(pair.shared) for pair in pairs_of_many(Universe(ILL), [(b"", NO)], 10_000, answer)}
    assert sizes == {127, 255, 10_000, stop}
    others: list[tuple[Callable[[bytes], Any], set[int]]] = [
        (lambda rows: 3.0 * len(rows), set()),  # never stops
        (lambda rows: float(len(rows) ** 2), {29}),  # does not keep to a line
        (lambda rows: len(rows) + 2.0 * (len(rows) >= 17), {16}),  # jumps
        (lambda rows: min(len(rows), 17.0), set()),  # stops early
        (lambda rows: np.zeros(1 + bool(rows)), set()),  # has another length
        (lambda rows: np.zeros(1 + (len(rows) == 5)) + len(rows) ** 2, set()),  # has another length once
        (lambda rows: PiecewiseScores(np.array([0.0, 1.0]), np.array([1.0])), set()),
    ]
    for other, jumps in others:
        sizes = {len(pair.shared) for pair in pairs_of_many(Universe(ILL), [(b"", NO)], 10_000, other)}
        assert sizes == {127, 255, 10_000} | jumps


def test_a_unit_in_place_of_another_is_of_equal_rows_or_of_rows_that_differ() -> None:
    universe = Universe(ILL)
    two, three = UnitChange(2), UnitChange(3)
    assert changes(universe, ADD) == [(b"", NO), (b"", YES)]
    assert changes(universe, REPLACE) == [(NO, YES)]
    assert changes(universe, ADD, two) == [(b"", NO * 2), (b"", YES * 2), (b"", NO + YES)]
    assert changes(universe, REPLACE, two) == [(NO * 2, YES * 2), (NO * 2, NO + YES)]
    mixed = [NO * 2 + YES, NO + YES * 2]
    assert changes(universe, REPLACE, three) == [
        (NO * 3, YES * 3),
        *zip(mixed, reversed(mixed), strict=True),
        (NO * 3, mixed[0]),
        (YES * 3, mixed[1]),
    ]


# Handles


def test_rows_of_a_unit_are_counted_from_the_end() -> None:
    assert units_of("abcde", 2) == ["a", "bc", "de"]
    assert units_of("abcd", 2) == ["ab", "cd"]
    assert units_of("ab", 3) == ["ab"]
    assert units_of("", 3) == []


def numbers(*values: int) -> bytes:
    """The numbers of units, or places, as they stand in a handle's key."""
    return np.array(values, dtype=np.int64).tobytes()


def test_a_handle_is_known_by_its_rows_their_units_and_what_was_derived() -> None:
    plain = RowsHandle(NO + YES, (), 3)
    assert plain.key == NO + YES
    cases = dpf.Cases([dpf.Equals("ill", "true")])
    engine = SmallTables(Universe(ILL))
    derived = engine.derive(plain, dpf.Boolean("other"), cases)
    assert derived.key == (NO + YES, 1)
    assert engine.derive(derived, dpf.Boolean("third"), cases).key == (NO + YES, 2)
    units = with_units(NO + YES + YES, ["a", "bc"], ())
    assert units.key == (NO + YES + YES, numbers(0, 1, 1), numbers(0, 0, 1))
    assert engine.derive(units, dpf.Boolean("other"), cases).key == (
        (NO + YES + YES, 1),
        numbers(0, 1, 1),
        numbers(0, 0, 1),
    )
    assert units.only(np.array([True, False, True])).key == (NO + YES, numbers(0, 1), numbers(0, 1))
    with pytest.raises(dpf.InputError, match="holds tables of its universe only"):
        engine.load(dpf.Table.from_codes(ILL, [[0]]))


def test_units_are_sampled_with_all_their_rows() -> None:
    engine = SmallTables(Universe(ILL), together=2)
    held = engine.hold(NO + YES + YES + NO + NO)
    assert held.units.tolist() == [0, 1, 1, 2, 2]
    asked: list[int] = []

    def drawn(number: int) -> Any:
        asked.append(number)
        return np.arange(number) != 1

    assert engine.sample_units(held, drawn).key == (NO * 3, numbers(0, 2, 2), numbers(0, 0, 1))
    assert engine.sample_units(RowsHandle(b"", (), 0), drawn).rows == b""
    assert asked == [3, 0]
    assert engine.sample(held, drawn).units.tolist() == [0, 1, 2, 2]


@pytest.mark.parametrize(("rows", "sizes"), [(0, [0, 0]), (1, [0, 1]), (4, [2, 2]), (5, [2, 3])])
def test_halves_are_two_blocks_with_all_rows(rows: int, sizes: list[int]) -> None:
    engine = Halves(Universe(ILL))
    codes = engine.map(
        engine.hold(YES * (rows // 2) + NO * (rows - rows // 2)), lambda block: block.codes("ill").tolist()
    )
    assert [len(half) for half in codes] == sizes
    assert codes[0] + codes[1] == [1] * (rows // 2) + [0] * (rows - rows // 2)


def test_probes_have_one_high_score_two_of_half_of_it_and_many_of_nothing() -> None:
    answers = {probe.facts.name: probe.answer for probe in probes()}
    assert answers["integer scores"](1.2).tolist() == [5, 2, 2, *[0] * 57]
    assert answers["real scores"](1.2).tolist() == [4.8, 2.4, 2.4, *[0.0] * 57]
    interval = answers["scores on an interval"](2.0)
    assert (interval.breaks.tolist(), interval.scores.tolist()) == ([0, 0.5, 2, 2.25, 4], [0, 6, 2, 4])
    for name, answer in (
        ("two histograms", [5, -3, 2, 0, 0]),
        ("two blocks", [5, -3, 2, 0, 0]),
        ("two counts", [5, -3]),
        ("two real numbers", [0.25, -1.5]),
    ):
        assert answers[name](9.0).tolist() == answer
