"""What a sensitivity search looks at, in which order, how long, and what it says: part by part."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import UnitChange
from dpframework.queries import Count, Keys, PiecewiseScores, Query
from dpframework.verify.queries import sensitivity_search
from dpframework.verify.queries.answer_changes import UNBOUNDED
from dpframework.verify.queries.sensitivity_report import MeasuredChange
from dpframework.verify.queries.sensitivity_search import _SensitivitySearch, search_sensitivity
from dpframework.verify.search_time_limit import Patience
from dpframework.verify.tables.neighbours import Pair, Sizes, Universe, changes

ADD, REPLACE = Relation
SCHEMA = dpf.Schema([dpf.Categorical("town", ["A", "B", "C"]), dpf.Boolean("ill")])
KEYED = dpf.Schema([dpf.Open("town"), dpf.Boolean("ill")])
OF_FOUR, OF_TEN = (attrs.evolve(SCHEMA, rows=rows) for rows in (4, 10))
OVER = Patience(-1)
L1 = (dpf.Sensitivity("l1", 1, 1, source="test"),)
RISES = (dpf.Sensitivity("l1", 2, 2, fall=0, source="test"),)
STILL = (dpf.Sensitivity("l1", 0, 0, source="test"),)


@attrs.frozen
class Answers(Query):
    """What a function says of the rows, with what a test declares."""

    name = "answers"
    of: Callable[[bytes], Any]
    given: tuple[dpf.Sensitivity, ...] = L1
    histograms: tuple[int, ...] = ()

    @property
    def sensitivities(self) -> tuple[dpf.Sensitivity, ...]:
        return self.given

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        raise NotImplementedError

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> Any:
        return self.of(rows.rows)


@attrs.frozen
class ByBlocks(Answers):
    """What a function says of the numbers of rows of the blocks."""

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> Any:
        return self.of(engine.map(rows, lambda block: block.rows))


def number(rows: bytes) -> Any:
    return np.array([len(rows)])


def weight(rows: bytes) -> Any:
    """A row of A weighs 1, of B 5, of C 3."""
    return np.array([sum((1, 1, 5, 5, 3, 3)[kind] for kind in rows)])


class Parts(_SensitivitySearch):
    """A search, each part of which can be asked by itself."""

    def hold(self, rows: bytes) -> Any:
        return self.engine.hold(rows, self.derived)

    def one_row(self) -> list[Pair]:
        return [*self._one_row()]

    def many(self) -> list[Pair]:
        return [*self._many()]

    def cut_into_blocks(self) -> None:
        self._cut_into_blocks()

    def ratio(self, one: bytes, other: bytes) -> float:
        return self._ratio(one, other)

    def answer_to(self, rows: bytes) -> Any:
        return self._answer(rows)

    def steer(self, number: int) -> Pair:
        return self._steer(number)


def searched(query: Query, relation: Relation = ADD, schema: dpf.Schema = SCHEMA, **given: Any) -> Any:
    """A search, each part of which can be asked or replaced."""
    rest = {"inputs": {}, "derived": (), "pairs": 60, "seed": 0, "patience": Patience(), **given}
    return Parts(query, schema, relation, **rest)


def test_defaults_of_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensitivity_search, "_SensitivitySearch", lambda *given: SimpleNamespace(report=lambda: given))
    *given, patience, rows = search_sensitivity(Count(), SCHEMA, "add-or-remove-one")  # type: ignore[misc]
    assert given == [Count(), SCHEMA, ADD, {}, (), 3_000, 0]
    assert (patience.left, rows) == (math.inf, 1)
    *given, patience, rows = search_sensitivity(  # type: ignore[misc]
        Count(), SCHEMA, REPLACE, inputs={"a": 1}, derived=[("d", "c")], pairs=9, seed=4, seconds=500, rows=3
    )
    assert given == [Count(), SCHEMA, REPLACE, {"a": 1}, (("d", "c"),), 9, 4]
    assert 400 < patience.left <= 500
    assert rows == 3


def test_tables_that_are_searched_are_those_of_the_relation_and_the_unit() -> None:
    bound = attrs.evolve(SCHEMA, max_rows=10)
    assert searched(Count()).sizes == searched(Count(), REPLACE).sizes == Sizes(0, 60)
    assert (searched(Count()).most, searched(Count(), schema=bound).most) == (70_000, 9)
    assert searched(Count(), schema=bound).sizes == Sizes(0, 9)
    assert searched(Count(), schema=bound, rows=3).sizes == Sizes(0, 7)
    assert searched(Count(), schema=bound, rows=3).most == 7
    assert searched(Count(), REPLACE, OF_FOUR).sizes == Sizes(3, 3)
    for relation, schema, rows, same in (
        (ADD, SCHEMA, 1, False),
        (ADD, OF_TEN, 1, False),
        (ADD, OF_TEN, 3, False),
        (REPLACE, SCHEMA, 1, True),
        (REPLACE, OF_TEN, 1, True),
        (REPLACE, SCHEMA, 3, False),
        (REPLACE, OF_TEN, 3, True),
    ):
        found = searched(Count(), relation, schema, rows=rows)
        resized = rows > 1 and schema.rows is None
        assert found.same_rows is same
        assert found.changes == changes(Universe(schema), relation, UnitChange(rows, resized))
        if relation is REPLACE:
            assert any(not one for one, _ in found.changes) is resized
    together = [
        searched(query, schema=KEYED, rows=k).engine.together for query in (Keys("town"), Count()) for k in (1, 3)
    ]
    assert together == [1, 3, 1, 1]
    held = searched(Keys("town"), schema=KEYED, rows=3).hold(bytes(4))
    assert (held.rows, held.derived, held.number, held.units.tolist()) == (bytes(4), (), 0, [0, 1, 1, 1])
    assert searched(Count(), rows=3).hold(bytes(4)).units is None


class Told:
    """A search that notes what it is asked for."""

    tried = 12_345

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def worst(self, loss: Any, pairs: Any) -> None:
        self.calls.append(("worst", *pairs))

    def exhaustive(self, loss: Any, number: int) -> None:
        self.calls.append(("exhaustive", number))

    def climb(self, loss: Any, start: Any, number: int) -> None:
        self.calls.append(("climb", start, number))


FIRST = [("worst", "one row"), ("exhaustive", 33), ("steered", 33)]
CLIMB, MANY, BLOCKS = ("climb", "found", 33), ("worst", "many"), ("blocks",)
UNMOVED = ("answers the same on all 12,345 pairs of tables tried",)


def told(query: Query, relation: Relation = ADD, **given: Any) -> tuple[list[Any], Any]:
    """The calls that a search of 100 pairs makes, and its report, with some fields of it set before."""
    one, search = searched(query, relation, pairs=100), Told()
    one.search, one._one_row, one._many = search, lambda: ["one row"], lambda: ["many"]
    one._steer = lambda number: search.calls.append(("steered", number)) or "found"
    one._cut_into_blocks = lambda: search.calls.append(("blocks",))
    for name, value in given.items():
        setattr(one, name, value)
    return search.calls, one.report()


def test_a_search_goes_on_until_something_is_wrong() -> None:
    moved = {"l1": (1.0, b"", b"\0")}
    assert told(Answers(number), largest=moved)[0] == [*FIRST, MANY, BLOCKS]  # what is declared is reached
    calls, report = told(Answers(number), largest={"l1": (0.5, b"\0", b"\0\0")})
    assert calls == [*FIRST, CLIMB, MANY, BLOCKS]
    row = "(town: A, ill: false)"
    assert report.measured == (MeasuredChange("l1", 1, 0.5, (f"1 x {row}",), (f"2 x {row}",), (b"\0", b"\0\0")),)
    assert (report.query, report.relation, report.pairs, report.wrong) == ("answers", ADD, 12_345, ())
    assert report.most_rows == 70_000
    calls, report = told(Answers(number), wrong={"fails": "is bad"}, largest={"l1": (0.5, b"", b"\0")})
    assert calls == [*FIRST, MANY]
    assert report.wrong == ("is bad",)
    assert told(Answers(number), changes=[])[0] == []
    calls, report = told(Answers(number, ()))
    assert (calls, report.wrong) == ([], ("declares no sensitivity under add-or-remove-one",))
    assert told(Answers(number, ()), REPLACE)[1].wrong == ("declares no sensitivity under replace-one",)


def test_an_answer_that_never_changes_is_said_of_others_queries_where_rows_come() -> None:
    assert told(Answers(number))[1].wrong == UNMOVED
    assert told(Answers(number, RISES))[1].wrong == UNMOVED  # one of its bounds is 0, and not all are
    assert told(Answers(number), REPLACE)[1].wrong == ()
    assert told(Answers(number), wrong={"a": "is bad"})[1].wrong == ("is bad",)
    assert told(Count())[1].wrong == ()
    assert told(Answers(number, STILL))[1].wrong == ()
    moved = {"l1": (0.5, b"", b"\0"), "l1 fall": (0.0, b"", b"")}
    assert told(Answers(number, RISES), largest=moved)[1].wrong == ()


def units(one: Any) -> list[tuple[bytes, bytes]]:
    found = one.one_row()
    assert {pair.shared for pair in found} == {bytes(one.sizes.least)}
    return [(pair.one, pair.other) for pair in found]


def kinds(*chosen: int) -> list[tuple[bytes, bytes]]:
    return [(b"", bytes((kind,))) for kind in chosen]


def test_units_that_change_the_answer_most_come_first_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert units(searched(Answers(weight), pairs=2)) == kinds(0, 1, 2, 3, 4, 5)
    assert len(units(searched(Answers(weight), REPLACE, OF_FOUR))) == 15
    monkeypatch.setattr(sensitivity_search, "MOST_KINDS", 2)
    assert units(searched(Answers(weight), pairs=6)) == kinds(0, 1, 2, 3, 4, 5)
    assert units(searched(Answers(weight), pairs=5)) == kinds(2, 3, 4, 5, 0)
    assert units(searched(Answers(weight), pairs=1)) == kinds(2, 3)
    assert units(searched(Answers(weight), pairs=3, patience=OVER)) == kinds(0, 1, 2)
    most = units(searched(Answers(weight), REPLACE, OF_FOUR, pairs=3))
    assert most == [(b"\2", b"\3"), (b"\2", b"\4"), (b"\2", b"\5")]  # by the sum of both
    monkeypatch.setattr(sensitivity_search, "MOST_KINDS", 6)
    assert units(searched(Answers(weight), pairs=1)) == kinds(0, 1, 2, 3, 4, 5)
    monkeypatch.setattr(sensitivity_search, "MOST_KINDS", 2)
    failing = Answers(lambda rows: 1 / (1 - rows.count(5)))
    assert units(searched(failing, pairs=4)) == kinds(0, 1, 2, 3)


def test_rows_are_cut_into_two_blocks() -> None:
    asked: list[list[int]] = []
    one = searched(ByBlocks(lambda sizes: asked.append(sizes) or np.array([sum(sizes)])))
    one.cut_into_blocks()
    assert (asked, one.wrong) == ([[7], [3, 4], [7], [60], [30, 30], [60]], {})  # whole, in two blocks, and in tiles
    tables: list[bytes] = []
    one = searched(Answers(lambda rows: tables.append(rows) or number(rows)))
    one.cut_into_blocks()
    of_seven, of_all = (bytes(k % 6 for k in range(size)) for size in (7, 60))
    assert tables == [of_seven] * 3 + [of_all] * 3
    failing = searched(ByBlocks(lambda sizes: asked.append(sizes) or 1 / (2 - len(sizes))))
    asked.clear()
    failing.cut_into_blocks()
    assert failing.wrong == {"fails": "fails on a table with ZeroDivisionError: division by zero"}
    assert asked == [[7], [3, 4]]


@pytest.mark.parametrize("piecewise", [False, True])
def test_blocks_may_change_an_answer_by_rounding(piecewise: bool) -> None:
    def answer(size: float, off: float) -> Callable[[Any], Any]:
        def of(blocks: Any) -> Any:
            score = size + off * (len(blocks) - 1)
            return PiecewiseScores(np.array([0.0, 1.0]), np.array([score])) if piecewise else np.array([score])

        return of

    for size, off, holds in (
        (0, 0.9e-9, True),
        (0, 1.5e-9, False),
        (0.5, 1.5e-9, False),
        (1000, 0.9e-6, not piecewise),
        (-1000, 0.9e-6, not piecewise),
        (1000, -1.5e-6, False),
    ):
        one = searched(ByBlocks(answer(size, off)))
        one.cut_into_blocks()
        wrong = {} if holds else {"blocks": "its answer depends on how the rows are cut into blocks"}
        assert one.wrong == wrong, (size, off)


def test_a_pair_is_measured_in_every_norm_that_is_declared() -> None:
    one = searched(Answers(weight, RISES))
    assert one.ratio(b"", b"\0") == 0.5
    assert one.largest == {"l1": (1, b"", b"\0"), "l1 fall": (0, b"", b"")}
    assert one.ratio(b"", b"\1") == 0.5
    assert one.largest["l1"] == (1, b"", b"\0")  # the first of those that change it as much
    assert one.ratio(b"\0", b"\2") == 2
    assert one.largest["l1"] == (4, b"\0", b"\2")
    assert one.ratio(b"\4", b"") == 3  # of a bound of 0, the change itself
    assert one.largest == {"l1": (4, b"\0", b"\2"), "l1 fall": (3, b"\4", b"")}
    assert one.wrong == {}
    of_two = (dpf.Sensitivity("histograms", 2, 2, source="test"),)
    for relation, ratio in ((ADD, 0.5), (REPLACE, UNBOUNDED / 2)):
        assert searched(Answers(number, of_two, (1,)), relation).ratio(b"", b"\0") == ratio


def test_what_cannot_be_measured_is_said_and_is_no_change() -> None:
    def nan(rows: bytes) -> Any:
        return np.array([math.nan if 1 in rows else 0.0])

    for answer, tables, wrong in (
        (lambda rows: 1 / (1 - len(rows)), (b"", b"\1"), "fails on a table with ZeroDivisionError: division by zero"),
        (
            nan,
            (b"\1", b""),
            "its answer holds nan, whose change no sensitivity can bound, on a table of 1 x (town: A, ill: true)",
        ),
        (
            nan,
            (b"", b"\0\0\1"),
            "its answer holds nan, whose change no sensitivity can bound, "
            "on a table of 2 x (town: A, ill: false), 1 x (town: A, ill: true)",
        ),
        (
            lambda rows: np.array([0.0 if rows else math.inf]),
            (b"", b"\0"),
            "its answer holds inf, whose change no sensitivity can bound, on a table of no rows",
        ),
        (lambda rows: np.zeros(len(rows)), (b"", b"\1"), "the length of its answer depends on the rows"),
    ):
        one = searched(Answers(answer))
        assert one.ratio(*tables) == 0
        assert [*one.wrong.values()] == [wrong]
        assert one.largest == {"l1": (0.0, b"", b"")}
        one.ratio(*tables)
        assert [*one.wrong.values()] == [wrong]


def test_answers_are_kept_and_forgotten_where_they_are_many() -> None:
    asked: list[bytes] = []
    one = searched(Answers(lambda rows: asked.append(rows) or number(rows)))
    assert [one.answer_to(rows).tolist() for rows in (b"\1", b"\1", b"\2\2", b"\1")] == [[1], [1], [2], [1]]
    assert asked == [b"\1", b"\2\2"]
    one.answers = dict.fromkeys(range(10_000))
    one.answer_to(b"\1")
    assert len(one.answers) == 10_001
    one.answer_to(b"\2")
    assert [*one.answers] == [b"\2"]


def test_all_that_is_declared_has_to_be_reached() -> None:
    declared = {"l1": 1000.0, "linf": 10.0}
    for l1, linf, tight in ((999, 9.99, True), (998.9, 9.99, False), (999, 9.9, False), (2000, 20, True)):
        largest = {"l1": (l1, b"", b""), "linf": (linf, b"", b"")}
        assert (CLIMB in told(Answers(number), declared=declared, largest=largest)[0]) is not tight


def test_very_many_rows_are_tried_up_to_where_a_query_fails() -> None:
    def failing(rows: bytes) -> Any:
        if len(rows) > 1000:
            raise ValueError
        return number(rows)

    one = searched(Answers(failing))
    sizes = {len(pair.shared) for pair in one.many()}
    of_every_kind = {995, 996, 1001, 1002, 69_995, 69_996}  # as often each, or one of them once less
    assert sizes == {127, 255, 32_767, 65_535, 70_000, 1000} | of_every_kind
    one.wrong["fails"] = "is bad"
    assert one.many() == []


class Ends:
    """A patience that ends after it was asked so often."""

    def __init__(self, asked: int) -> None:
        self.left = asked

    @property
    def over(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_larger_tables_are_steered_to_the_largest_change() -> None:
    for pairs, tried in ((5, 10), (10, 10), (40, 40)):
        one, seen = searched(Answers(number)), list[tuple[bytes, bytes]]()
        one._ratio = lambda *tables, seen=seen: seen.append(tables) or float(len(tables[1]))
        best = one.steer(pairs)
        assert one.search.tried == len(seen) == tried
        assert best.tables == max(seen, key=lambda tables: len(tables[1]))
        assert all(len(shared) <= 60 for shared, _ in seen)
        assert {kind for _, table in seen for kind in table} <= set(range(6))
    assert {kind for _, table in seen for kind in table} == set(range(6))
    one = searched(Answers(number), REPLACE, OF_FOUR)
    one._ratio = lambda *tables: 0.0
    assert len(one.steer(1).shared) == 3
    one.patience = Ends(4)
    one.search.tried = 0
    one.steer(50)
    assert one.search.tried == 3
    one.patience = OVER
    assert one.steer(50) == Pair(b"", *one.changes[0])
    assert one.search.tried == 3


def test_rows_are_cut_or_filled_up_to_a_size_that_the_schema_allows() -> None:
    one = searched(Answers(number))
    one.sizes = Sizes(3, 5)
    for rows, sized in ((b"", bytes(3)), (b"\1", b"\1\0\0"), (b"\1\1\1", b"\1\1\1"), (b"\1" * 7, b"\1" * 5)):
        assert one._resize(rows) == sized


def test_a_search_does_not_depend_on_what_else_is_imported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hypothesis draws whole numbers above 100 that stand in any module."""
    ages = dpf.Numeric("age", 0, 200, bins=200)
    query, schema = Answers(lambda rows: [max(rows, default=0) / 256]), dpf.Schema([ages])

    def tables() -> list[tuple[bytes, bytes]]:
        found: list[tuple[bytes, bytes]] = []
        monkeypatch.setattr(
            _SensitivitySearch, "_ratio", lambda _, one, other: found.append((one, other)) or float(len(found))
        )
        search_sensitivity(query, schema, ADD, pairs=300)
        return found

    before = tables()
    (tmp_path / "many_numbers.py").write_text(f"NUMBERS = {list(range(100, 200))}")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("many_numbers")
    assert tables() == before
