"""The parts of exact enumeration, one by one, beside probabilities that are written out by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest

from dpframework.facts.logical_descriptions_of_rows import Equals
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.mechanisms import DiscreteLaplace, PartitionSelection
from dpframework.plan.nodes import FromRelease, Node, Step, either, parallel, post, repeat, sample, sequential, step
from dpframework.plan.plan import Budget, Plan, PublicFacts
from dpframework.queries import Count, Histogram
from dpframework.verify.accountants import exact_loss_oracle
from dpframework.verify.accountants.accountant_plans import CASES, _IllAndRows
from dpframework.verify.accountants.exact_loss_oracle import (
    NodeOnRows,
    Oracle,
    delta_at,
    largest_ratio,
    pairs_of,
    renyi,
    worst,
)

ADD, REPLACE = Relation
SCHEMA, INFINITE = exact_loss_oracle.SCHEMA, math.inf
A, C = SCHEMA["a"], SCHEMA["c"]
ROW, OTHER, THIRD = (0, 0), (0, 2), (1, 1)


def count(name: str = "n", epsilon: Any = 1) -> Step:
    return step(name, Count(), DiscreteLaplace(epsilon))


def plan_of(node: Node, relation: Relation = ADD, delta: Any = 0) -> Plan:
    return Plan(sequential(node), relation, PublicFacts.of(SCHEMA), Budget(1, Fraction(delta)), SCHEMA)


def laplace(x: int, k: int, epsilon: float = 1.0) -> float:
    """The probability of k around x (Ghosh, Roughgarden and Sundararajan 2009)."""
    q = math.exp(-epsilon)
    return (1 - q) / (1 + q) * q ** abs(k - x)


@attrs.frozen
class Listed:
    """A mechanism, calibrated: the probability of each output on each answer, by its place in a list."""

    chances: tuple[tuple[float, ...], ...]
    selects: bool = False

    @property
    def mechanism(self) -> Any:
        return self

    def log_density(self, held: Any, output: Any, calibration: Any) -> float:
        assert calibration is self
        chance = self.chances[int(np.ravel(held)[0])][int(np.ravel(output)[0])]
        return math.log(chance) if chance else -INFINITE


def test_kinds_of_rows_are_all_and_some_that_differ_in_every_attribute() -> None:
    assert exact_loss_oracle.KINDS == ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2))
    assert exact_loss_oracle.SOME_KINDS == ((0, 0), (0, 1), (1, 0), (1, 2))


def test_log_ratios_are_infinite_where_one_table_lacks_an_output() -> None:
    assert exact_loss_oracle._log_ratio(0.5, 0.25) == math.log(2)
    assert exact_loss_oracle._log_ratio(0.25, 0.5) == -math.log(2)
    assert exact_loss_oracle._log_ratio(0.5, 0.0) == INFINITE
    assert exact_loss_oracle._log_ratio(0.0, 0.5) == -INFINITE


def test_outputs_of_one_ratio_to_nine_digits_are_added_up() -> None:
    merged = exact_loss_oracle._merge([(0.2, 0.1), (0.1, 0.3), (0.4, 0.2), (0.0, 0.4), (0.1, 0.0), (0.2, 0.0)])
    assert np.allclose(merged, [(0.6, 0.3), (0.1, 0.3), (0.0, 0.4), (0.3, 0.0)], rtol=1e-12)
    apart = [(math.exp(x), 1.0) for x in (0.0, 4e-10, 2e-9)]
    assert [b for _, b in exact_loss_oracle._merge(apart)] == [2.0, 1.0]
    assert exact_loss_oracle._together(((0.5, 0.25), (0.5, 0.75)), ((0.5, 0.25), (0.5, 0.75))) == (
        (0.25, 0.0625),
        (0.5, 0.375),
        (0.25, 0.5625),
    )


@pytest.mark.parametrize(("x", "y"), [(0, 1), (3, 1)])
def test_noisy_values_are_listed_to_sixty_beyond_either_answer(x: int, y: int) -> None:
    """At little privacy loss even the last one counts."""
    calibration = plan_of(count(epsilon="0.1")).calibration(count(epsilon="0.1"))
    assert calibration is not None
    expected: dict[float, list[float]] = {}
    for k in range(min(x, y) - 60, max(x, y) + 61):
        p, q = laplace(x, k, 0.1), laplace(y, k, 0.1)
        known = expected.setdefault(round(math.log(p / q), 9), [0.0, 0.0])
        known[0], known[1] = known[0] + p, known[1] + q
    found = exact_loss_oracle._noisy(calibration, x, y)
    assert np.allclose(sorted(found), sorted(map(tuple, expected.values())), rtol=1e-9)
    chances = exact_loss_oracle._chances(calibration, np.array([x]).tobytes(), np.dtype(np.int64))
    assert np.allclose(chances, [laplace(x, k, 0.1) for k in range(-60, 61)], rtol=1e-9)


def test_outputs_that_are_rare_on_both_tables_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    chances = ((0.5, 0.25, 0.125, 0.125, 0.0), (0.125, 0.25, 0.125, 0.0, 0.5))
    outputs = [(0, 1, k) for k in range(5)]
    every = list(exact_loss_oracle._densities(Listed(chances), outputs))  # type: ignore[arg-type]
    assert np.allclose(every, [(0.5, 0.125), (0.25, 0.25), (0.125, 0.125), (0.125, 0.0), (0.0, 0.5)])
    monkeypatch.setattr(exact_loss_oracle, "RAREST", max(every[2]))
    left = list(exact_loss_oracle._densities(Listed(chances), outputs))  # type: ignore[arg-type]
    assert left == [every[0], every[1], every[4]]
    monkeypatch.undo()
    rare = Listed(((1.0, 2e-14, 0.5e-14, 0.0), (1.0, 0.0, 0.5e-14, 0.9e-14)))
    found = list(exact_loss_oracle._densities(rare, [(0, 1, k) for k in range(4)]))  # type: ignore[arg-type]
    assert np.allclose(found, [(1.0, 1.0), (2e-14, 0.0)], rtol=1e-9, atol=0)


def test_a_choice_is_any_of_its_candidates() -> None:
    listed = Listed(((0.5, 0.25, 0.25), (0.125, 0.25, 0.625)), selects=True)
    chosen = exact_loss_oracle._choice_probabilities(listed, (0, 0, 0), (1, 1, 1))  # type: ignore[arg-type]
    assert np.allclose(chosen, [(0.5, 0.125), (0.25, 0.25), (0.25, 0.625)])
    answer = np.array([1, 1, 1])
    chances = exact_loss_oracle._chances(listed, answer.tobytes(), answer.dtype)  # type: ignore[arg-type]
    assert np.allclose(chances, [0.125, 0.25, 0.625])


def test_rows_become_tables_answers_and_parts() -> None:
    rows = ((*ROW, "mine"), THIRD, OTHER)
    table = exact_loss_oracle._table(rows)
    assert [column.tolist() for column in table.columns] == [[0, 1, 0], [0, 1, 2]]
    assert exact_loss_oracle._table(()).rows == 0
    assert exact_loss_oracle._answer(Histogram(C), (ROW, OTHER, OTHER)).tolist() == [1, 0, 2]
    assert exact_loss_oracle._parts(A, rows) == [(rows[0], OTHER), (THIRD,)]
    assert exact_loss_oracle._parts(C, rows) == [(rows[0],), (THIRD,), (OTHER,)]
    assert exact_loss_oracle._parts((Equals("a", "true"),), rows) == [(THIRD,)]
    assert exact_loss_oracle._outer(np.array([1.0, 2.0]), np.array([3.0, 4.0])).tolist() == [3.0, 4.0, 6.0, 8.0]


def test_a_partition_by_a_release_may_be_by_any_attribute() -> None:
    one, other = count("n"), count("m")
    assert list(exact_loss_oracle._splits(parallel(one, by=C), (OTHER,), ())) == [
        (NodeOnRows(one, (), ()), NodeOnRows(one, (), ()), NodeOnRows(one, (OTHER,), ()))
    ]
    assert list(exact_loss_oracle._splits(parallel(one, other, by=A), (ROW,), (THIRD,))) == [
        (NodeOnRows(one, (ROW,), ()), NodeOnRows(other, (), (THIRD,)))
    ]
    released = parallel(one, by=FromRelease("split"))
    assert [len(split) for split in exact_loss_oracle._splits(released, (ROW,), ())] == [2, 3]


def test_samples_are_mixtures_over_the_units_that_are_drawn() -> None:
    """Two rows are none, one or both of them in a sample; the rows of one unit are in it together."""
    node = sample("0.25", count())
    plan = plan_of(node)
    outputs = range(-60, 61)
    two = exact_loss_oracle._joint(node, plan, (ROW, ROW))
    expected = [9 / 16 * laplace(0, k) + 6 / 16 * laplace(1, k) + 1 / 16 * laplace(2, k) for k in outputs]
    assert np.allclose(two, expected, rtol=1e-9)
    unit = exact_loss_oracle._joint(node, plan, ((*ROW, "one's"), (*THIRD, "one's"), (*ROW, "another's")))
    expected = [
        9 / 16 * laplace(0, k) + 3 / 16 * laplace(1, k) + 3 / 16 * laplace(2, k) + 1 / 16 * laplace(3, k)
        for k in outputs
    ]
    assert np.allclose(unit, expected, rtol=1e-9)


def test_lists_of_outputs_are_of_all_releases_of_a_sample() -> None:
    n, m = count("n"), count("m", 2)
    one, other = (np.array([laplace(1, k, epsilon) for k in range(-60, 61)]) for epsilon in (1, 2))
    none = np.array([laplace(0, k) for k in range(-60, 61)])
    for node, expected in (
        (sequential(n, m), np.outer(one, other)),
        (repeat(2, n), np.outer(one, one)),
        (parallel(n, by=A), np.outer(one, none)),
    ):
        assert np.allclose(exact_loss_oracle._joint(node, plan_of(node), (ROW,)), expected.ravel(), rtol=1e-9)
    with pytest.raises(AssertionError):
        exact_loss_oracle._joint(either(n, m), plan_of(either(n, m)), (ROW,))


def test_outputs_of_a_sample_are_added_up_by_their_ratio() -> None:
    node = sample("0.25", count())
    plan, q = plan_of(node), math.exp(-1)
    below = 1 / (1 + q)
    p, other = 0.75 * below + 0.25 * (1 - below), below
    found = sorted(Oracle(plan, max)._sample(node, (ROW,), ()))
    assert np.allclose(found, sorted([(p, other), (1 - p, 1 - other)]), rtol=1e-9)
    assert Oracle(plan, max)._sample(node, (ROW,), ()) is Oracle(plan, max)._sample(node, (ROW,), ())
    assert largest_ratio(plan, [((ROW,), ())]) == pytest.approx(math.log((1 - p) / (1 - other)), abs=1e-8)


def test_outputs_of_a_sample_that_are_rare_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that one table cannot have are kept where they are likely on the other."""
    held = {(ROW,): [0.5, 0.25, 0.25, 0.0, 0.0, 0.0], (): [0.0, 0.3125, 0.125, 0.125, 0.25, 0.3125]}
    monkeypatch.setattr(exact_loss_oracle, "_joint", lambda node, plan, rows: np.array(held[rows]))
    monkeypatch.setattr(exact_loss_oracle, "RAREST", 0.25)
    node = sample("0.25", count())
    found = Oracle(plan_of(node), max)._sample(node, (ROW,), ())
    assert sorted(found) == [(0.0, 0.3125), (0.5, 0.0)]
    monkeypatch.setattr(exact_loss_oracle, "RAREST", 0.2)
    again = sample("0.25", count())
    found = Oracle(plan_of(again), max)._sample(again, (ROW,), ())
    assert sorted(found) == [(0.0, 0.5625), (0.25, 0.3125), (0.5, 0.0)]


def test_ratios_of_a_sample_are_compared_to_nine_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    held = {(ROW,): [0.2, 0.2, 0.2], (): [0.2, 0.2 * math.exp(4e-10), 0.2 * math.exp(2e-9)]}
    monkeypatch.setattr(exact_loss_oracle, "_joint", lambda node, plan, rows: np.array(held[rows]))
    node = sample("0.25", count())
    assert len(Oracle(plan_of(node), max)._sample(node, (ROW,), ())) == 2


def test_what_is_remembered_of_a_sample_is_not_of_a_later_one_in_its_place() -> None:
    """While an equal plan lives, a sample that it does not hold may be gone, and another one have its id."""
    plan = plan_of(sample("0.2502", count()))  # no other test's, whose end would end what is remembered of it
    oracle, ids = Oracle(plan, max), set()
    for k in range(2, 60):
        node = sample(f"1/{k}", count())
        assert id(node) not in ids
        ids.add(id(node))
        oracle._sample(node, (ROW,), ())


def test_outputs_that_neither_table_has_are_no_outputs() -> None:
    calls = []

    def functional(p: float, q: float) -> float:
        calls.append((p, q))
        return p + 2 * q

    oracle = Oracle(plan_of(count()), functional)
    assert oracle._over(((0.5, 0.0), (0.0, 0.25), (0.0, 0.0), (0.5, 0.75)), (), 0.5, 0.25) == 1.0
    assert calls == [(0.25, 0.0), (0.0, 0.0625), (0.25, 0.1875)]
    calls.clear()
    assert oracle._over(((0.5, 0.5), (0.0, 0.5)), (), 1.0, 0.0) == 0.5
    assert calls == [(0.5, 0.0)]


def chance(p: float, q: float) -> float:
    return p


def distance(p: float, q: float) -> float:
    return max(p - q, 0.0)


def test_the_probabilities_of_all_outputs_of_a_plan_add_up_to_one() -> None:
    half = count("half", "0.5")
    nodes = (
        count(),
        step("h", Histogram(C), DiscreteLaplace(1)),
        sequential(half, post("p", ["half"]), count()),
        repeat(3, half),
        either(half, count()),
        parallel(half, by=C),
        sample("0.5", half),
        sequential(sample("0.5", half), count()),
        step("s", Count(), PartitionSelection(1, "0.02")),
    )
    for node in nodes:
        part = NodeOnRows(node, (ROW,), (THIRD, OTHER))
        assert Oracle(plan_of(node), chance).value((part,)) == pytest.approx(1, abs=1e-9)
        assert Oracle(plan_of(node), chance).value((part,), 0.25, 0.5) == pytest.approx(0.25, abs=1e-9)
    nothing = Oracle(plan_of(count()), lambda p, q: 10 * p + q)
    assert nothing.value((), 0.25, 0.5) == 3.0
    assert nothing.value((NodeOnRows(count(), (ROW,), (ROW,)),), 0.25, 0.5) == 3.0


def test_the_worst_branch_and_the_worst_partition_are_taken() -> None:
    cheap, dear = count("cheap", "0.5"), count("dear", 2)
    row = (ROW,)

    def apart(node: Node) -> float:
        return Oracle(plan_of(node), distance).value((NodeOnRows(node, row, ()),))

    q, r = math.exp(-0.5), math.exp(-2)
    alone = {"cheap": (1 - q) / (1 + q), "dear": (1 - r) / (1 + r)}
    assert apart(cheap) == pytest.approx(alone["cheap"], abs=1e-9)
    assert apart(either(cheap, dear)) == apart(either(dear, cheap)) == pytest.approx(alone["dear"], abs=1e-9)
    assert apart(parallel(cheap, dear, by=A)) == pytest.approx(alone["cheap"], abs=1e-9)
    assert apart(sequential(post("p", ["cheap"]), cheap)) == pytest.approx(alone["cheap"], abs=1e-9)
    both = parallel(cheap, by=C)
    distance_of_both = Oracle(plan_of(both, REPLACE), distance).value((NodeOnRows(both, row, (OTHER,)),))
    assert distance_of_both > 0.05
    by_release = parallel(step("h", Histogram(C), DiscreteLaplace(1)), by=FromRelease("split"))
    moved = Oracle(plan_of(by_release, REPLACE), distance).value((NodeOnRows(by_release, row, (OTHER,)),))
    counts = parallel(cheap, by=FromRelease("split"))  # a row that moves to another town has the same truth value
    one = Oracle(plan_of(counts, REPLACE), distance).value((NodeOnRows(counts, row, (OTHER,)),))
    assert one == pytest.approx(distance_of_both, abs=1e-9)
    by_town = parallel(step("h", Histogram(C), DiscreteLaplace(1)), by=C)
    assert moved == pytest.approx(
        Oracle(plan_of(by_town, REPLACE), distance).value((NodeOnRows(by_town, row, (OTHER,)),))
    )


def test_an_exact_delta_is_an_output_that_one_table_cannot_have() -> None:
    plan = plan_of(step("n", Count(), PartitionSelection(1, "0.02")), delta="0.1")
    there, gone = [((ROW,), ())], [((), (ROW,))]
    assert largest_ratio(plan, there) == renyi(plan, 2.0, there) == INFINITE
    assert renyi(plan, 2.0, gone) == pytest.approx(-math.log1p(-0.02), rel=1e-9)
    assert renyi(plan, 3.0, gone) == pytest.approx(-math.log1p(-0.02), rel=1e-9)
    for epsilon in (0.0, 1.0, 5.0):
        assert delta_at(plan, epsilon, there) == pytest.approx(0.02, rel=1e-9)
        assert delta_at(plan, epsilon, gone) == pytest.approx(max(1 - math.exp(epsilon) * 0.98, 0), abs=1e-9)


def test_the_worst_pair_is_taken() -> None:
    plan = plan_of(step("h", Histogram(C), DiscreteLaplace("0.5")))
    near, far = [((ROW,), ())], [((ROW, ROW, ROW), ())]
    assert worst(Oracle(plan, distance), near) < worst(Oracle(plan, distance), far)
    assert worst(Oracle(plan, distance), near + far) == worst(Oracle(plan, distance), far + near)
    assert worst(Oracle(plan, distance), near + far) == worst(Oracle(plan, distance), far)
    assert worst(Oracle(plan, distance)) == pytest.approx(worst(Oracle(plan, distance), pairs_of(plan)))


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_neighbours_differ_by_one_unit_with_any_number_of_its_rows(rows: int) -> None:
    plan = attrs.evolve(plan_of(count()), unit=PrivacyUnit("who", rows))
    pairs = pairs_of(plan)
    assert {abs(len(one) - len(other)) for one, other in pairs} == set(range(1, rows + 1))
    few = pairs_of(plan, few=True)
    assert len(few) > 0
    assert all(min(len(one), len(other)) <= 1 for one, other in few)


def test_a_number_that_shows_whether_a_row_is_sampled() -> None:
    assert exact_loss_oracle._answer(_IllAndRows(), (ROW, OTHER, THIRD, (1, 0))).tolist() == [82]
    assert exact_loss_oracle._answer(_IllAndRows(), ()).tolist() == [0]
    assert _IllAndRows().answer_length == 1
    (case,) = [case for case in CASES if case.rule == "replaced sample"]
    assert case.node == sample("0.3", step("r", _IllAndRows(), DiscreteLaplace(1)))
    (only,) = _IllAndRows().sensitivities
    assert (only.add_or_remove_one, only.replace_one) == (None, 1)


def test_the_plans_of_cases_are_of_the_schema_and_the_study() -> None:
    for case in CASES:
        plan = case.plan(REPLACE, Fraction(1, 4))
        assert plan.budget == Budget(1, Fraction(1, 4))
        assert plan.root == sequential(case.node)
        assert plan.unit is case.unit
        assert plan.schema == SCHEMA
        assert plan.relation is REPLACE
