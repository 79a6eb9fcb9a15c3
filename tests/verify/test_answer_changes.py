"""How a change of an answer is measured, in each norm, and what a sensitivity search says of what it measured."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import attrs
import numpy as np

import dpframework as dpf
from dpframework.facts.privacy_losses import Relation
from dpframework.queries import Count, Histogram, PiecewiseScores, Query
from dpframework.verify.queries.answer_changes import UNBOUNDED, answer_problem, change_of, measure
from dpframework.verify.queries.sensitivity_report import MeasuredChange, SensitivityReport
from dpframework.verify.queries.sensitivity_search import declared_changes, search_sensitivity

ADD, REPLACE = Relation
SCHEMA = dpf.Schema([dpf.Categorical("town", ["A", "B", "C"]), dpf.Boolean("ill")])
NORMS = [f"{norm}{way}" for norm in ("l1", "squared-l2", "linf") for way in ("", " rise", " fall")]


def measured(change: list[float]) -> list[float]:
    """The change from answers that are not 0, by the order of `NORMS`, and the spread last."""
    before = np.arange(10.0, 10 + len(change))
    found = measure(before, before + change)
    assert set(found) == {*NORMS, "spread"}
    return [found[norm] for norm in (*NORMS, "spread")]


def test_changes_have_three_norms_each_with_its_rise_and_fall() -> None:
    assert measured([3, -4, 0]) == [7, 3, 4, 25, 9, 16, 4, 3, 4, 7]
    assert measured([-2, -3]) == [5, 0, 5, 13, 0, 13, 3, 0, 3, 1]
    assert measured([2, 5]) == [7, 7, 0, 29, 29, 0, 5, 5, 0, 3]
    assert measured([]) == [0] * 10
    assert measured([1.5]) == [1.5, 1.5, 0, 2.25, 2.25, 0, 1.5, 1.5, 0, 0]
    assert measure([[1, 2], [3, 4]], [[1, 3], [3, 2]])["l1"] == 3
    assert measure(np.uint8(3), np.uint8(5))["l1"] == 2
    assert measure(np.uint8(5), np.uint8(3))["l1 fall"] == 2


def histograms(change: list[float], sizes: tuple[int, ...], same_rows: bool = False) -> list[float]:
    found = measure(np.zeros(len(change)), np.array(change), sizes, same_rows=same_rows)
    return [found[f"histograms{way}"] for way in ("", " rise", " fall")]


def test_histograms_change_by_the_same_number_of_rows() -> None:
    assert histograms([1, 0, 0, 1, 0], (2, 3)) == [1, 1, 0]
    assert histograms([-1, 0, 0, -1, 0], (2, 3)) == [1, 0, 1]
    assert histograms([1, -1, 0, 2, -2], (2, 3)) == [4, 2, 2]
    assert histograms([1, -1, 0, 0, 0], (2, 3), same_rows=True) == [2, 1, 1]
    assert histograms([1, 0, 0, 0, 0], (2, 3)) == [UNBOUNDED, 1, 0]
    assert histograms([1, 0, 1, 0, 0], (2, 3), same_rows=True) == [UNBOUNDED, 1, 0]
    assert histograms([0, 1, 0, 0, 1], (2, 3)) == [1, 1, 0]
    assert histograms([1, 0, 0, 1], (2, 3)) == [UNBOUNDED] * 3
    assert histograms([2, 1], (2,)) == [3, 3, 0]
    assert "histograms" not in measure([1], [2])
    assert UNBOUNDED == 1e300


def test_scores_on_an_interval_change_between_all_breaks() -> None:
    before = PiecewiseScores(np.array([0.0, 2.0, 4.0]), np.array([1.0, 5.0]))
    after = PiecewiseScores(np.array([0.0, 1.0, 3.0, 4.0]), np.array([1.0, 2.0, 7.0]))
    assert change_of(before, after).tolist() == [0.0, 1.0, -3.0, 2.0]
    assert measure(before, after)["spread"] == 5
    assert change_of(after, before).tolist() == [0.0, -1.0, 3.0, -2.0]
    empty = PiecewiseScores(np.array([0.0, 0.0, 4.0]), np.array([9.0, 1.0]))  # a piece of no length
    assert change_of(empty, before).tolist() == [0.0, 4.0]
    assert change_of([[1, 2]], [[3, 5]]).tolist() == [2.0, 3.0]


def test_answers_that_no_norm_measures_are_named() -> None:
    facts = Histogram(SCHEMA["town"]).facts()
    assert (facts.integer, facts.answer_length) == (True, 3)
    real = attrs.evolve(facts, integer=False, answer_length=None)
    for answer in ([1, 2, 3], [1.0, 2.0], [True, False], np.array([1], dtype=np.uint8), []):
        assert answer_problem(answer, facts) is None
    assert answer_problem([1.5] * 9, real) is None
    for answer, problem in (
        (["x"], "its answer holds values of type <U1, where a mechanism takes numbers"),
        ([1j], "its answer holds values of type complex128, where a mechanism takes numbers"),
        ([1.0, math.nan], "its answer holds nan, whose change no sensitivity can bound"),
        ([-math.inf], "its answer holds -inf, whose change no sensitivity can bound"),
        ([1] * 4, "its answer holds 4 numbers, and it declares answer_length = 3"),
        ([1.0, 2.25], "its answer holds 2.25, and it declares whole numbers"),
    ):
        assert answer_problem(answer, facts) == problem
    piecewise = PiecewiseScores(np.arange(6.0), np.array([0.5] * 5))
    assert answer_problem(piecewise, facts) is None


def one(declared: float, largest: float, norm: str = "l1") -> MeasuredChange:
    return MeasuredChange(norm, declared, largest, ("no rows",), ("A",), (b"", b"\0"))


def test_a_declaration_holds_up_to_rounding() -> None:
    for declared, largest, holds in (
        (1, 1, True),
        (1, 1 + 1.9e-9, True),
        (1, 1 + 2.1e-9, False),
        (1000, 1000 + 1.0e-6, True),
        (1000, 1000 + 1.1e-6, False),
        (0, 0.9e-9, True),
        (0, 1.1e-9, False),
        (2, 1, True),
    ):
        assert one(declared, largest).holds is holds
    assert (one(4, 3).ratio, one(0, 0).ratio, one(0, 2).ratio, one(2, 0).ratio) == (0.75, 1, math.inf, 0)
    assert "tables" not in repr(one(4, 3))
    assert one(4, 3).to_dict() == {
        "norm": "l1",
        "declared": 4,
        "largest": 3,
        "one": ("no rows",),
        "other": ("A",),
        "holds": True,
    }


def test_a_report_holds_if_all_it_measured_does() -> None:
    def report(*measured: MeasuredChange, wrong: tuple[str, ...] = ()) -> SensitivityReport:
        return SensitivityReport("some", ADD, measured, 5, wrong, 7)

    both = report(one(4, 3), one(2, 1, "linf"), one(0, 0, "spread"))
    assert (both.passed, both.ratio, both.tightness) == (True, 0.75, 0.5)
    assert (report(one(4, 3), one(1, 2)).passed, report(one(4, 3), wrong=("bad",)).passed) == (False, False)
    assert math.isnan(report().ratio)
    assert math.isnan(report(one(0, 1)).tightness)
    assert report().to_dict()["tightness"] is None
    assert both.to_dict() == {
        "query": "some",
        "relation": "add-or-remove-one",
        "measured": [found.to_dict() for found in both.measured],
        "pairs": 5,
        "wrong": [],
        "most_rows": 7,
        "tightness": 0.5,
        "passed": True,
    }
    assert str(report(one(4, 3), one(1, 2), wrong=("is bad",))).splitlines() == [
        "some: is bad",
        "some: l1 declared 4, largest found 3: holds",
        "some: l1 declared 1, largest found 2: DOES NOT HOLD",
        "  one table: no rows",
        "  its neighbour: A",
    ]


@attrs.frozen
class Declares(Query):
    """How many rows there are, with what a test declares of it."""

    name = "declares"
    given: tuple[dpf.Sensitivity, ...]
    answer_length: int | None = None  # type: ignore[assignment]
    factor: int = 1

    @property
    def sensitivities(self) -> tuple[dpf.Sensitivity, ...]:
        return self.given

    def for_rows(self, rows: int) -> tuple[dpf.Sensitivity, ...]:
        return tuple(attrs.evolve(one, source=f"{rows} rows") for one in self.given[:1])

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        return np.array([self.factor * block.rows])


def test_what_is_declared_is_named_by_its_norm() -> None:
    l1 = dpf.Sensitivity("l1", 3, 5, fall=1, source="test")
    linf = dpf.Sensitivity("linf", 2, 4, rise=2, fall=1, source="test")
    assert declared_changes(Declares((l1,)), ADD) == {"l1": 3, "l1 fall": 1}
    assert declared_changes(Declares((l1,)), REPLACE) == {"l1": 5}
    of_scores = declared_changes(Declares((linf,)), ADD)
    assert of_scores == {"linf": 2, "spread": linf.spread.add_or_remove_one, "linf fall": 1}
    assert declared_changes(Declares((linf,)), REPLACE) == {"linf": 3, "spread": linf.spread.replace_one}
    assert declared_changes(Declares((linf,), 1), ADD) == {"linf": 2, "linf fall": 1}
    assert "spread" in declared_changes(Declares((linf,), 2), ADD)
    assert declared_changes(Declares((l1, linf)), ADD, 2) == {"l1": 3, "l1 fall": 1}
    unknown = dpf.Sensitivity("l1", None, 1, source="test")
    assert declared_changes(Declares((unknown,)), ADD) == {}
    assert declared_changes(Declares((unknown,)), REPLACE) == {"l1": Fraction(1)}


def test_a_search_reaches_what_is_declared_and_no_more() -> None:
    for query, relation, largest in (
        (Count(), ADD, {"l1": 1.0}),
        (Histogram(SCHEMA["town"]), ADD, {"l1": 1.0}),
        (Histogram(SCHEMA["town"]), REPLACE, {"l1": 2.0}),
    ):
        report = search_sensitivity(query, SCHEMA, relation, pairs=60)
        found = {one.norm: one.largest for one in report.measured}
        assert {norm: found[norm] for norm in largest} == largest
        assert report.passed
        assert report.pairs > 20
        assert report.relation is relation
    wrong = search_sensitivity(
        Declares((dpf.Sensitivity("l1", 3, 3, source="test"),), 1, factor=4), SCHEMA, ADD, pairs=60
    )
    assert not wrong.passed
    (only,) = wrong.measured
    assert (only.declared, only.largest) == (3, 4)
    assert {len(table) for table in only.tables} in ({0, 1}, {1, 2}) or abs(
        len(only.tables[0]) - len(only.tables[1])
    ) == 1
    nothing = search_sensitivity(Declares((dpf.Sensitivity("l1", None, 1, source="t"),)), SCHEMA, ADD, pairs=60)
    assert nothing.wrong == ("declares no sensitivity under add-or-remove-one",)
    assert (nothing.measured, nothing.passed) == ((), False)
    still = search_sensitivity(
        Declares((dpf.Sensitivity("l1", 3, 3, source="test"),), 1, factor=0), SCHEMA, ADD, pairs=60
    )
    assert [said.startswith("answers the same on all ") for said in still.wrong] == [True]
