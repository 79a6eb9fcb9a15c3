"""Queries: declared sensitivities against every pair of small neighbouring tables."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from numpy.typing import NDArray

import dpframework as dpf
from dpframework.facts.privacy_losses import ByRelation, Relation
from dpframework.queries import CellCounts, Count, Histogram, JointHistogram, Marginals, PiecewiseScores, Supports
from dpframework.queries.base import Norm, QueryFacts
from dpframework.queries.counts import histogram_sensitivities, table_sensitivities
from dpframework.queries.exact_answers_hiding_undeclared_columns import answer_of, answers_of, engine_of, function_of
from dpframework.queries.plan_file_query import PlanFileQuery

SCHEMA = dpf.Schema(
    [dpf.Boolean("ill", missing=True), dpf.Categorical("c", ["x", "y"]), dpf.Categorical("k", ["only"])]
)
ILL, C, ONLY = SCHEMA.attributes
CELLS = list(itertools.product(range(3), range(2), range(1)))
ENGINE = dpf.InMemory()


class UnknownCells(CellCounts):
    """Cells whose number is not known before the run."""

    name = "unknown-cells"

    def count(self, block: dpf.Block, **inputs: Any) -> NDArray[np.int64]:
        return np.bincount(block.codes("ill"), minlength=3)


# Each query, with the relations and norms in which its docstring says why more is declared than can happen.
QUERIES: dict[str, tuple[dpf.Query, set[tuple[Norm, Relation]]]] = {
    "count": (Count(), {(norm, Relation.REPLACE_ONE) for norm in Norm}),
    "count where": (Count(dpf.And([dpf.Equals("ill", "true"), dpf.Equals("c", "x")])), set()),
    "histogram": (Histogram(C), set()),
    "histogram with missing": (Histogram(ILL), set()),
    "histogram of one cell": (Histogram(ONLY), {(norm, Relation.REPLACE_ONE) for norm in Norm}),
    "unknown cells": (UnknownCells(), set()),
    "joint histogram": (JointHistogram([ILL, C]), set()),
    "marginals": (Marginals([ILL, C, ONLY]), set()),
    "marginals of one value": (Marginals([ONLY]), set()),
    "overlapping supports": (
        Supports([dpf.Equals("ill", "true"), dpf.Equals("c", "x"), dpf.Not(dpf.Equals("ill", "false"))]),
        set(),
    ),
    "one support": (Supports([dpf.Equals("ill", "true")]), set()),
    "disjoint supports": (
        Supports([dpf.Equals("ill", "true"), dpf.Equals("ill", "false"), dpf.Equals("ill", "missing")]),
        {(norm, relation) for norm in (Norm.L1, Norm.SQUARED_L2) for relation in Relation},
    ),
}  # fmt: skip


def tables(rows: int) -> Iterator[tuple[int, ...]]:
    """Yield every table of up to so many rows, as the cells of its rows, in order: nothing depends on the order."""
    for size in range(rows + 1):
        yield from itertools.combinations_with_replacement(range(len(CELLS)), size)


def answers(query: dpf.Query, rows: int) -> dict[tuple[int, ...], Any]:
    found = {}
    for cells in tables(rows):
        codes = np.array([CELLS[c] for c in cells], dtype=int).reshape(-1, 3).T
        table = dpf.Table.from_codes(SCHEMA, codes)
        found[cells] = np.atleast_1d(query.evaluate(ENGINE, ENGINE.load(table))).ravel()
    return found


def neighbours(cells: tuple[int, ...], relation: Relation) -> Iterator[tuple[int, ...]]:
    for cell in range(len(CELLS)):
        if relation is Relation.ADD_OR_REMOVE_ONE:
            yield tuple(sorted((*cells, cell)))
        else:
            for k in range(len(cells)):
                yield tuple(sorted((*cells[:k], cell, *cells[k + 1 :])))


@pytest.mark.parametrize("name", QUERIES)
def test_declared_sensitivities_are_the_largest_changes(name: str) -> None:
    """Every change, rise and fall, in every norm that is declared, holds for all pairs and is attained by one."""
    query, more_than_needed = QUERIES[name]
    known = answers(query, 4)
    largest: Counter[tuple[Norm, Relation, str]] = Counter()
    for relation in Relation:
        for cells in tables(3):
            for other in neighbours(cells, relation):
                change = known[other] - known[cells]
                for direction, part in (("change", change), ("rise", change.clip(0)), ("fall", change.clip(None, 0))):
                    for norm, size in sizes(part, query.histograms):
                        largest[norm, relation, direction] = max(largest[norm, relation, direction], size)
    for declared in query.sensitivities:
        change = declared.change
        assert declared.replace_one in (None, change.replace_one), "more than a removal and an addition can move"
        for relation, direction, claimed in (
            (Relation.ADD_OR_REMOVE_ONE, "change", change.add_or_remove_one),
            (Relation.ADD_OR_REMOVE_ONE, "rise", declared.rise),
            (Relation.ADD_OR_REMOVE_ONE, "fall", declared.fall),
            (Relation.REPLACE_ONE, "change", change.replace_one),
        ):
            seen = largest[declared.norm, relation, direction]
            assert claimed is not None
            assert claimed >= seen
            if (declared.norm, relation) not in more_than_needed or direction == "fall":
                assert claimed == seen, f"{name}: the {direction} in {declared.norm} under {relation}"
        assert declared.monotonic == (0 in (declared.rise, declared.fall))
        assert declared.source


def sizes(change: NDArray[np.int64], histograms: tuple[int, ...]) -> list[tuple[Norm, int]]:
    """Return how large a change is in every norm."""
    lengths = np.abs(change)
    each = np.split(lengths, np.cumsum(histograms)[:-1]) if histograms else []
    return [
        *((Norm.HISTOGRAMS, int(part.sum())) for part in each),
        (Norm.L1, int(lengths.sum())),
        (Norm.SQUARED_L2, int((lengths**2).sum())),
        (Norm.LINF, int(lengths.max())),
    ]


@pytest.mark.parametrize(("cells", "moved"), [(1, 1), (2, 2), (50, 2), (None, 2)])
def test_counts_of_disjoint_cells_change_by_one_cell_or_by_two(cells: int | None, moved: int) -> None:
    """Adding a row raises one count; replacing it lowers one and raises another, if there is another."""
    declared = histogram_sensitivities(cells)
    assert {one.norm: one.change for one in declared} == {
        Norm.L1: ByRelation(Fraction(1), Fraction(moved)),
        Norm.SQUARED_L2: ByRelation(Fraction(1), Fraction(moved)),
        Norm.LINF: ByRelation(Fraction(1), Fraction(1)),
    }
    assert all((one.rise, one.fall, one.monotonic) == (1, 0, True) for one in declared)
    assert declared[2].spread == ByRelation(Fraction(1), Fraction(2))
    if cells is not None:
        more = table_sensitivities(cells)[len(declared) :]
        assert [(one.norm, one.change) for one in more] == [(Norm.HISTOGRAMS, ByRelation(Fraction(1), Fraction(2)))] * (
            cells > 1
        )
        assert table_sensitivities(cells)[: len(declared)] == declared


@pytest.mark.parametrize("name", sorted(QUERIES.keys() - {"unknown cells"}))
def test_answers_fit_their_declared_size_and_candidates(name: str) -> None:
    query, _ = QUERIES[name]
    for answer in answers(query, 1).values():
        assert len(answer) == query.answer_length
        assert answer.dtype.kind == "i"
    if query.answer_length is not None and name not in ("count", "count where"):
        assert len(query.candidates()) == query.answer_length
    facts = query.facts()
    assert facts.integer
    assert facts.text == query.text
    assert set(facts.attributes) <= set(SCHEMA.names)


def test_cells_of_unknown_number_offer_no_candidates() -> None:
    assert list(UnknownCells().candidates()) == []
    assert list(Count().candidates()) == [0]  # without candidates of its own a selection releases a position


@pytest.mark.parametrize(
    ("breaks", "scores", "refused"),
    [
        ([0.0, 1.0], [1.0, 2.0], "one more break"),
        ([0.0, 0.5, 1.0, 2.0], [1.0, 2.0], "one more break"),
        ([0.0, 1.0], [[1.0]], "one more break"),
        ([[0.0, 1.0]], [1.0], "one more break"),
        ([0.0, 1.0], [np.nan], "finite"),
        ([0.0, np.inf], [1.0], "finite"),
        ([-np.inf, 1.0], [1.0], "finite"),
    ],
)
def test_piecewise_scores_refuse_what_does_not_fit(breaks: Any, scores: Any, refused: str) -> None:
    with pytest.raises(dpf.InputError, match=refused):
        PiecewiseScores(np.array(breaks), np.array(scores))


def test_piecewise_scores_have_a_break_more_than_scores() -> None:
    assert PiecewiseScores(np.array([0, 1, 2]), np.array([3, 4])).scores.tolist() == [3, 4]


def test_texts_and_attributes() -> None:
    assert Count().text == "count of rows"
    assert Count(dpf.Equals("c", "x")).text == "count of rows with c = x"
    assert Count(dpf.And([dpf.Equals("c", "x"), dpf.Equals("c", "y")])).attributes == ("c",)
    assert JointHistogram([ILL, C]).text == "joint histogram of ill, c"
    assert JointHistogram([ILL, C]).histograms == (JointHistogram([ILL, C]).answer_length,)
    assert JointHistogram([ILL, C]).candidates()[:3] == [("false", "x"), ("false", "y"), ("true", "x")]
    assert Supports([dpf.Equals("c", "x")]).text == "supports of 1 descriptions"
    assert Histogram(ILL).candidates() == ("false", "true", "missing")


def test_the_words_for_several_attributes() -> None:
    letters = [dpf.Boolean(name) for name in "abcde"]
    assert Histogram(ILL).text == JointHistogram([ILL]).text == Marginals([ILL]).text == "histogram of ill"
    assert Marginals(letters[:4]).text == "histograms of a, b, c, d"
    assert Marginals(letters).text == "histograms of 5 attributes"
    assert Marginals(letters).attributes == JointHistogram(letters).attributes == tuple("abcde")
    assert (Histogram(ILL).attributes, Count().attributes) == (("ill",), ())
    assert Supports([dpf.Equals("c", "x"), dpf.Equals("ill", "true")]).attributes == ("c", "ill")


def test_what_a_query_declares_unless_it_says_otherwise() -> None:
    query = UnknownCells()
    formulas = query.scored_formulas
    facts = QueryFacts("unknown-cells", "unknown-cells", (), True, None, query.sensitivities, formulas=formulas)
    assert query.facts() == facts
    assert (facts.rounding, facts.histograms, facts.gathers) == (0, (), False)
    assert query.sensitivities == Histogram(C).sensitivities
    moved = [
        [declared.replace_one for declared in one.sensitivities] for one in (Histogram(C), Histogram(ONLY), Count())
    ]
    assert moved == [[2, 2, 1], [1, 1, 1], [1, 1, 1]]  # l1, squared l2, linf; of one count all are the same
    assert JointHistogram([ONLY]).sensitivities == Count().sensitivities
    assert query.for_rows(7) == ()
    assert query.coordinates([1, 2]).tolist() == [1, 2]
    assert dpf.queries.CandidateScores.integer is False
    assert [one.histograms for one in (JointHistogram([ONLY]), JointHistogram([C]))] == [(), (2,)]
    norms = [declared.norm for declared in JointHistogram([ONLY]).sensitivities]
    assert Norm.HISTOGRAMS not in norms
    read = PlanFileQuery(facts, (sensitivity("l1", 1),))
    assert (read.gathers, read.for_rows(3), read.facts()) == (False, (sensitivity("l1", 1),), facts)


@attrs.frozen
class Greedy(dpf.Query):
    """Asks for what it likes of the engine, of some attributes that it declares."""

    name = "greedy"
    attributes: tuple[str, ...] = ()  # type: ignore[assignment]

    def count(self, block: dpf.Block, **inputs: Any) -> NDArray[np.int64]:
        return np.bincount(block.codes(inputs.get("name", "c")), minlength=3)

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> Any:
        count = functools.partial(self.count, **inputs)
        sums = [engine.sum(rows, count), engine.counts(rows, [count])[0], sum(engine.map(rows, count))]
        assert sums[0].tolist() == sums[1].tolist() == sums[2].tolist()
        engine.cache_of(rows)["seen"] = sums[0]
        return engine.number(rows), sums[0].tolist(), engine.related_caches(rows) is not None


@attrs.frozen
class TwoRounds(dpf.Query):
    """Counts once, and once more what depends on that."""

    name = "two-rounds"
    rounds: int = 2

    def count(self, block: dpf.Block, **inputs: Any) -> NDArray[np.int64]:
        return np.array([block.rows], dtype=np.int64)

    def counting(self, engine: Any, rows: Any, **inputs: Any) -> Any:
        found = []
        for k in range(self.rounds):
            counts = yield lambda block, k=k: np.array([block.rows * 10**k])
            found.append(int(counts[0]))
        return found, inputs


class Messages(dpf.InMemory.__mro__[1]):  # type: ignore[misc]
    """An engine whose calls cost a message; it remembers what was asked for in each."""

    name = "messages"
    sends_messages = True

    def __init__(self) -> None:
        super().__init__(blocks=2)
        self.asked: list[int] = []

    def map(self, rows: Any, function: Any) -> list[Any]:
        return [function(block) for block in rows]

    def counts_of(self, asked: Any) -> Any:
        self.asked.append(len(asked))
        return super().counts_of(asked)


CODES = np.array([[0, 1, 2, 1, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 0]])


def test_a_query_sees_what_it_declares_however_it_asks() -> None:
    rows = ENGINE.load(dpf.Table.from_codes(SCHEMA, CODES))
    part = ENGINE.split(rows, C)[1]
    assert answer_of(Greedy(("c",)), ENGINE, rows, {}) == (5, [2, 3, 0], False)
    assert answer_of(Greedy(("c",)), ENGINE, part, {}) == (3, [0, 3, 0], True)
    assert ENGINE.cache_of(part)["seen"].tolist() == [0, 3, 0]
    assert answer_of(Greedy(), ENGINE, rows, {"name": "ill"}) == (5, [2, 2, 1], False)
    with pytest.raises(dpf.InputError, match="the query reads attribute 'ill', which it does not declare"):
        answer_of(Greedy(("c",)), ENGINE, rows, {"name": "ill"})
    count = Greedy().count
    (block,) = rows
    assert np.array_equal(function_of(Greedy(), count)(block), count(block))
    assert engine_of(Greedy(), ENGINE).map(rows, lambda shown: shown is block) == [True]
    with pytest.raises(dpf.InputError, match="the query reads attribute 'c'"):
        function_of(Greedy(("ill",)), count)(rows[0])


def test_answers_of_several_queries_take_a_message_a_round() -> None:
    engine, here = Messages(), dpf.InMemory()
    table = dpf.Table.from_codes(SCHEMA, CODES)
    asked = [(TwoRounds(), {"a": 1}), (Greedy(("c",)), {}), (Count(), {}), (TwoRounds(0), {}), (TwoRounds(3), {"b": 2})]
    expected = [([5, 50], {"a": 1}), (5, [2, 3, 0], False), 5, ([], {}), ([5, 50, 500], {"b": 2})]
    for one, messages in ((engine, [3, 2, 1]), (here, None)):
        rows = one.load(table)
        answers = answers_of(one, [(query, rows, inputs) for query, inputs in asked])
        assert answers == expected
        if messages is not None:
            assert engine.asked == messages
    assert answers_of(engine, []) == []
    assert engine.asked == [3, 2, 1]


@pytest.mark.parametrize("make", [lambda: JointHistogram([]), lambda: Supports([]), lambda: Marginals([])])
def test_nothing_to_count_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match="must be >= 1"):
        make()


def sensitivity(norm: str, added: Any, replaced: Any = None) -> dpf.Sensitivity:
    return dpf.Sensitivity(norm, added, replaced, fall=0, source="by construction of the test")


def facts(*sensitivities: dpf.Sensitivity) -> QueryFacts:
    return QueryFacts("q", "a query", (), True, 3, sensitivities)


def test_the_l1_norm_bounds_the_others() -> None:
    declared = facts(sensitivity("l1", 3, 4))
    l2, linf = declared.sensitivity(Norm.SQUARED_L2), declared.sensitivity(Norm.LINF)
    assert l2 is not None
    assert linf is not None
    assert l2.change == ByRelation(Fraction(9), Fraction(16))
    assert linf.change == ByRelation(Fraction(3), Fraction(3))  # up by 3 at most for the row that enters, and none down
    assert linf.monotonic
    apart = dpf.Sensitivity("l1", 3, 4, rise=2, fall=1, source="by construction of the test")
    linf, l2 = facts(apart).sensitivity(Norm.LINF), facts(apart).sensitivity(Norm.SQUARED_L2)
    assert linf is not None
    assert l2 is not None
    assert (linf.change, linf.spread) == (ByRelation(Fraction(2), Fraction(3)), ByRelation(Fraction(3), Fraction(6)))
    assert (l2.rise, l2.fall, l2.add_or_remove_one) == (4, 1, 9)
    both = facts(sensitivity("squared-l2", 1), sensitivity("l1", 3))
    assert both.sensitivity(Norm.LINF) is not None
    assert facts(sensitivity("squared-l2", 1)).sensitivity(Norm.LINF) is None
    assert facts(sensitivity("squared-l2", 1)).sensitivity(Norm.L1) is None
    assert facts(sensitivity("linf", 1)).sensitivity(Norm.L1) is None
    assert facts().sensitivity(Norm.L1) is None


def test_replace_one_is_at_most_a_removal_and_an_addition() -> None:
    assert sensitivity("l1", 1).change == ByRelation(Fraction(1), Fraction(2))
    assert sensitivity("l1", 1, 5).change == ByRelation(Fraction(1), Fraction(2))
    assert sensitivity("squared-l2", 1, 5).change == ByRelation(Fraction(1), Fraction(4))
    assert sensitivity("l1", None, 5).change == ByRelation(None, Fraction(5))
    assert sensitivity("l1", None).change == ByRelation(None, None)
    with pytest.raises(dpf.InputError, match="cannot be negative"):
        sensitivity("l1", -1)
    with pytest.raises(ValueError, match="l3"):
        sensitivity("l3", 1)


def test_a_query_from_a_plan_file_cannot_be_evaluated() -> None:
    query = PlanFileQuery(facts(sensitivity("l1", 1)))
    assert query.facts().text == "a query"
    (block,) = ENGINE.load(dpf.Table.from_codes(SCHEMA, np.zeros((3, 1), dtype=int)))
    with pytest.raises(dpf.InputError, match="read from a plan file"):
        query.count(block)


def test_rise_and_fall_make_the_change_the_spread_and_whether_it_is_monotonic() -> None:
    def declared(norm: str = "linf", added: Any = 1, replaced: Any = None, **directions: Any) -> dpf.Sensitivity:
        return dpf.Sensitivity(norm, added, replaced, **directions, source="by construction of the test")

    assert declared().spread == ByRelation(Fraction(2), Fraction(4))
    assert declared(fall="1/2").spread == ByRelation(Fraction(3, 2), Fraction(3))
    assert declared(rise="1/2", replaced=1).spread == ByRelation(Fraction(3, 2), Fraction(2))
    assert declared(fall="1/2").change == ByRelation(Fraction(1), Fraction(3, 2))
    assert declared(fall="1/2", replaced=9).change == ByRelation(Fraction(1), Fraction(3, 2))
    assert [declared(fall=0).monotonic, declared(rise=0).monotonic] == [True, True]
    assert [declared().monotonic, declared(fall="1/2").monotonic] == [False, False]
    assert declared(added=None, replaced=2).change == ByRelation(None, Fraction(2))
    assert declared(added=None, replaced=2, rise=0, fall=0).change == ByRelation(None, Fraction(2))
    assert declared(added=None, replaced=2).spread == ByRelation(None, Fraction(4))
    assert declared("l1", 2, rise=1, fall=1).change == ByRelation(Fraction(2), Fraction(4))
    for one in ({"rise": 0}, {"fall": 0}, {}):
        assert declared(added=None, replaced=2, **one).spread == ByRelation(None, Fraction(4))
        assert declared(added=None, **one).spread == ByRelation(None, None)
    assert declared("squared-l2", 1, 3, rise=1, fall=0).change == ByRelation(Fraction(1), Fraction(3))
    with pytest.raises(dpf.InputError, match="a spread is defined for sensitivities in the linf norm"):
        _ = declared("l1").spread


def test_a_rise_a_fall_and_a_source_are_named() -> None:
    with pytest.raises(TypeError, match="positional"):
        dpf.Sensitivity("linf", 1, 1, 0, source="by construction of the test")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("norm", "added", "directions"),
    [
        ("linf", 1, {"rise": 2}),
        ("linf", 1, {"fall": -1}),
        ("linf", 1, {"rise": "1/2", "fall": "1/2"}),  # the change would be 1/2
        ("l1", 1, {"fall": 2}),
        ("linf", 1, {"fall": None}),
        ("linf", None, {"rise": 1}),
    ],
)
def test_a_rise_or_a_fall_that_contradicts_the_change_is_refused(norm: str, added: Any, directions: Any) -> None:
    with pytest.raises(dpf.InputError, match="rise"):
        dpf.Sensitivity(norm, added, **directions, source="by construction of the test")


def test_a_spread_holds_for_every_replacement_that_a_removal_and_an_addition_make() -> None:
    """Exhaustive: two coordinates, each moved by a removal in [-rise, fall] and by an addition in [-fall, rise]."""
    declared = dpf.Sensitivity("linf", 3, rise=3, fall=1, source="by construction of the test")
    moves = [a - b for a, b in itertools.product(range(-1, 4), repeat=2)]
    assert max(map(abs, moves)) == declared.change.replace_one == 4
    assert max(a - b for a, b in itertools.product(moves, repeat=2)) == declared.spread.replace_one == 8
    assert max(a - b for a, b in itertools.product(range(-1, 4), repeat=2)) == declared.spread.add_or_remove_one == 4


@pytest.mark.parametrize("rounding", [-1, Fraction(-1, 2**20), float("nan")])
def test_an_error_below_0_is_refused(rounding: Any) -> None:
    """It would be taken off what a selection pays for."""

    class Exact(dpf.Query):
        name = "exact"

    Exact.rounding = rounding
    with pytest.raises(dpf.InputError, match="a query's rounding is"):
        Exact().facts()


@attrs.frozen
class Peeks(dpf.Query):
    """Says what it sees of units: their numbers and the places of rows in them."""

    name = "peeks"
    attributes: tuple[str, ...] = ()  # type: ignore[assignment]
    places: bool = False  # type: ignore[misc]

    def count(self, block: dpf.Block, **inputs: Any) -> NDArray[np.int64]:
        assert block.unit_codes is None
        return np.asarray(block.places_in_units(), dtype=np.int64)


@pytest.mark.parametrize("attributes", [(), ("c",)])
def test_a_query_sees_no_units_although_another_step_needs_them(attributes: tuple[str, ...]) -> None:
    person = dpf.PrivacyUnit("person", 3)
    table = attrs.evolve(dpf.Table.from_codes(SCHEMA, CODES), unit=person).with_units([0, 0, 1, 0, 1])
    rows = ENGINE.load(table)
    assert sorted(answer_of(Peeks(attributes, places=True), ENGINE, rows, {}).tolist()) == [0, 0, 1, 1, 2]
    with pytest.raises(dpf.InputError, match="a query that reads them sets `places = True`"):
        answer_of(Peeks(attributes), ENGINE, rows, {})
    with pytest.raises(dpf.InputError, match="a query that reads them sets `places = True`"):
        function_of(Peeks(attributes), Peeks(attributes).count)(rows[0])
