"""Releases that are made together: they are those that would be made one by one, whatever is asked and refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Gaussian, Laplace, PermuteAndFlip
from dpframework.mechanisms.laplace import _LatticeLaplace
from dpframework.mechanisms.randomness import SeededRandomness, SystemRandomness
from dpframework.tables.in_process_engines import BlockEngine
from dpframework.verify.miners.value_comparison import same

SCHEMA = dpf.Schema([dpf.Categorical("town", ["A", "B", "C"]), dpf.Boolean("ill"), dpf.Numeric("age", 0, 9, bins=3)])
RNG = np.random.default_rng(5)
TABLE = dpf.Table.from_codes(SCHEMA, np.array([RNG.integers(0, k, 200) for k in (3, 2, 3)]))
SURE = 10**6  # an epsilon without noise


class Messages(BlockEngine):
    """Two blocks, whose counts are asked for as on a cluster; remembers how many calls there were."""

    name = "messages"
    sends_messages = True

    def __init__(self) -> None:
        super().__init__(blocks=2)
        self.calls: list[int] = []

    def map(self, rows: Sequence[dpf.Block], function: Callable[[dpf.Block], Any]) -> list[Any]:
        return [function(block) for block in rows]

    def counts_of(self, asked: Any) -> list[list[Any]]:
        self.calls.append(len(asked))
        return super().counts_of(asked)


class Heard(dpf.Observer):
    """Remembers what it is told, and stops the run at some release."""

    def __init__(self, stops_at: int = 99) -> None:
        self.charges: list[str] = []
        self.outputs: list[Any] = []
        self.stops_at = stops_at

    def charged(self, charge: dpf.run.Charge) -> None:
        self.charges.append(charge.path)

    def released(self, release: dpf.run.Release) -> None:
        self.outputs.append((release.charge.path, np.asarray(release.output).tolist()))
        if len(self.outputs) == self.stops_at:
            raise KeyboardInterrupt


@attrs.frozen
class Failing(dpf.Query):
    """Fails on every row."""

    name = "failing"
    answer_length = 1
    sensitivities = dpf.queries.Count().sensitivities

    def count(self, block: dpf.Block, **inputs: Any) -> Any:
        raise ValueError(str(block.codes("town")))


def plan(epsilon: Any = "0.5") -> dpf.Node:
    """Steps of several kinds, in all rows and in each town: a count, numbers, a selection, a branch, a repetition."""
    kinds = [
        dpf.step("count", dpf.queries.Count(), DiscreteLaplace(epsilon)),
        dpf.step("ages", dpf.queries.Histogram(SCHEMA["age"]), Laplace(epsilon)),
        dpf.step("mode", dpf.queries.Histogram(SCHEMA["age"]), PermuteAndFlip(epsilon)),
        dpf.step("fails", Failing(), DiscreteLaplace(epsilon)),
        dpf.either(
            dpf.step("ill", dpf.queries.Histogram(SCHEMA["ill"]), DiscreteLaplace(epsilon)),
            dpf.step("both", dpf.queries.JointHistogram([SCHEMA["ill"], SCHEMA["age"]]), DiscreteLaplace(epsilon)),
        ),
        dpf.repeat(2, dpf.step("twice", dpf.queries.Count(dpf.Equals("ill", "true")), DiscreteLaplace(epsilon))),
    ]
    return dpf.sequential(*kinds, dpf.parallel(dpf.sequential(*kinds), by=SCHEMA["town"]))


ASKED = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["count", "ages", "mode", "ill", "both", "twice", "fails", "none"])),
    max_size=12,
)


def one_by_one(asked: list[Any]) -> list[Any]:
    return [table.release(step, **inputs) for table, step, inputs in asked]


@pytest.fixture
def ran(opened: Callable[..., Any]) -> Callable[..., list[Any]]:
    """Return a function that asks for steps of the whole table (0) or of its towns, and returns all that shows."""

    def asks(asked: list[tuple[int, str]], engine: dpf.Engine, make: Callable[[list[Any]], list[Any]]) -> list[Any]:
        seen = Heard()
        table, run = opened(plan(), TABLE, seed=7, engine=engine, observers=(seen,))
        tables = [table, *table.partition("town")]
        values, error = None, None
        try:
            values = make([(tables[k], step, {}) for k, step in asked])
        except dpf.DPFrameworkError as refused:
            error = type(refused).__name__, str(refused) if isinstance(refused, dpf.ReleaseRefused) else ""
        left = table._gate.randomness.integers(2**60, 2).tolist()  # the next draws: as many were made before
        return [values, error, seen.charges, seen.outputs, [charge.path for charge in run.charges], run.spent, left]

    return asks


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=ASKED)
def test_together_they_are_what_they_are_one_by_one(
    ran: Callable[..., list[Any]], asked: list[tuple[int, str]]
) -> None:
    """Values, charges, refusals, what observers hear, and what is left of the seed; a failing query ends the run."""
    alone = ran(asked, dpf.InMemory(), one_by_one)
    for engine in (dpf.InMemory(), Messages()):
        together = ran(asked, engine, dpf.PrivateTable.release_many)
        if alone[1] is not None and alone[1][0] != "ReleaseRefused":  # what comes before the query that fails, too
            assert together[:2] == [None, alone[1]]
            assert together[3] == []
        else:
            assert same(together, alone)


def leaves(parts: int) -> tuple[dpf.Node, dpf.Table]:
    """Plan a count, class counts and a mode of each of many parts of a table of twice as many rows."""
    part = dpf.Categorical("part", [str(k) for k in range(parts)])
    schema = dpf.Schema([part, dpf.Boolean("ill")])
    table = dpf.Table.from_codes(schema, [[*range(parts)] * 2, [0, 1] * parts])
    histogram = dpf.queries.Histogram(schema["ill"])
    node = dpf.sequential(
        dpf.step("n", dpf.queries.Count(), DiscreteLaplace(SURE)),
        dpf.step("classes", histogram, DiscreteLaplace(SURE)),
        dpf.step("mode", histogram, PermuteAndFlip(SURE)),
    )
    return dpf.parallel(node, by=part), table


def test_a_private_run_draws_the_noise_of_a_level_in_one_call(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for each calibration; and every release gets its own."""
    drawn: list[int] = []
    laplace = SystemRandomness.discrete_laplace
    monkeypatch.setattr(
        SystemRandomness,
        "discrete_laplace",
        lambda self, size, scale: (drawn.append(size), laplace(self, size, scale))[1],
    )
    node, rows = leaves(9)
    table, run = opened(node, rows, seed=None)
    parts = table.partition("part")
    asked = [(part, step, {}) for part in parts for step in ("n", "classes", "mode")]
    found = dpf.PrivateTable.release_many(asked)
    assert drawn == [9, 18]
    assert found[::3] == [2] * 9
    assert [counts.tolist() for counts in found[1::3]] == [[1, 1]] * 9
    assert [mode in ("false", "true") for mode in found[2::3]] == [True] * 9
    assert len(run.charges) == 27


def test_a_private_run_answers_each_release_from_its_own_rows(opened: Callable[..., Any]) -> None:
    part = dpf.Categorical("part", [str(k) for k in range(6)])
    schema = dpf.Schema([part, dpf.Boolean("ill")])
    rows = [(k, int(row < k // 2)) for k in range(6) for row in range(k)]  # k in part k, half of them ill
    histogram = dpf.queries.Histogram(schema["ill"])
    node = dpf.sequential(
        dpf.step("n", dpf.queries.Count(), DiscreteLaplace(SURE)),
        dpf.step("classes", histogram, DiscreteLaplace(SURE)),
    )
    for engine in (dpf.InMemory(), Messages()):
        table, _ = opened(
            dpf.parallel(node, by=part),
            dpf.Table.from_codes(schema, list(zip(*rows, strict=True))),
            seed=None,
            engine=engine,
        )
        asked = [(own, step, {}) for own in table.partition("part") for step in ("n", "classes")]
        found = dpf.PrivateTable.release_many(asked)
        assert found[::2] == list(range(6))
        assert [counts.tolist() for counts in found[1::2]] == [[k - k // 2, k // 2] for k in range(6)]


def test_noise_of_releases_made_together_is_drawn_for_each(opened: Callable[..., Any]) -> None:
    """Equal counts with much noise: that two of 40 draws of scale 10**6 are equal has a probability below 1e-3 only.

    So four or more equal pairs are waited for: below 1e-9.
    """
    part = dpf.Categorical("part", [str(k) for k in range(40)])
    schema = dpf.Schema([part])
    node = dpf.parallel(dpf.step("n", dpf.queries.Count(), DiscreteLaplace("1e-6")), by=part)
    for seed in (None, 3):
        table, _ = opened(node, dpf.Table.from_codes(schema, [[0]]), seed=seed)
        found = dpf.PrivateTable.release_many((own, "n", {}) for own in table.partition("part"))
        assert len(set(found)) >= 37


def test_a_mechanism_that_draws_several_outputs_is_not_handed_the_generator_either(opened: Callable[..., Any]) -> None:
    @attrs.frozen
    class Own(Laplace):
        name = "own"

        def release_many(self, answers: Any, calibration: Any, randomness: Any) -> list[Any]:
            return [answer + randomness.generator.laplace() for answer in answers]

    @attrs.frozen
    class Says(Own):
        name = "says"
        assumptions = ("real-arithmetic",)

    for mechanism, refused in ((Own(1), True), (Says(1), False)):
        table, _ = opened(dpf.step("n", dpf.queries.Count(), mechanism), TABLE, seed=None)
        if refused:
            with pytest.raises(dpf.InputError, match="GeneratorNotHandedError"):
                dpf.PrivateTable.release_many([(table, "n", {})])
        else:
            assert len(dpf.PrivateTable.release_many([(table, "n", {})])) == 1


def test_an_engine_that_sends_messages_is_asked_once(opened: Callable[..., Any]) -> None:
    """For all releases of a level, whatever their queries; one by one it is asked for each."""
    node, rows = leaves(5)
    engine = Messages()
    table, _ = opened(node, rows, engine=engine)
    parts = table.partition("part")
    dpf.PrivateTable.release_many((part, step, {}) for part in parts for step in ("n", "mode"))
    assert engine.calls == [10]
    assert [part.release("classes").sum() for part in parts] == [2] * 5
    assert engine.calls == [10, 1, 1, 1, 1, 1]  # a release is several of one


def test_all_charges_are_told_before_anything_is_drawn(opened: Callable[..., Any]) -> None:
    """An observer that stops the run at a charge stops all that would have been drawn with it."""

    class Full(Heard):
        def charged(self, charge: dpf.run.Charge) -> None:
            super().charged(charge)
            if len(self.charges) == 3:
                raise dpf.PlanRefused("full")

    node, rows = leaves(4)
    seen = Full()
    table, _ = opened(node, rows, observers=(seen,))
    with pytest.raises(dpf.RunStopped, match=r"observer 'Full' .* failed with PlanRefused: full"):
        dpf.PrivateTable.release_many((part, "n", {}) for part in table.partition("part"))
    assert len(seen.charges) == 3
    assert seen.outputs == []


def test_a_refused_release_leaves_those_before_it_made_and_those_after_it_to_be_made(
    opened: Callable[..., Any],
) -> None:
    node, rows = leaves(3)
    seen = Heard()
    table, run = opened(node, rows, observers=(seen,))
    one, two, three = table.partition("part")
    with pytest.raises(dpf.ReleaseRefused, match="was made before"):
        dpf.PrivateTable.release_many([(one, "n", {}), (two, "n", {}), (one, "n", {}), (three, "n", {})])
    assert [path for path, _ in seen.outputs] == [charge.path for charge in run.charges] == ["parts 1/n", "parts 2/n"]
    assert three.release("n") == 2
    with pytest.raises(dpf.ReleaseRefused, match="was made before"):
        two.release("n")


def test_steps_may_be_given_themselves_and_are_those_of_the_plan(opened: Callable[..., Any]) -> None:
    step = dpf.step("n", dpf.queries.Count(), DiscreteLaplace(SURE))
    table, _ = opened(step, TABLE)
    dearer = dpf.step("n", dpf.queries.Count(), DiscreteLaplace(2 * SURE))
    with pytest.raises(dpf.ReleaseRefused, match="differs from the planned step"):
        table.release_many([(table, dearer, {})])
    assert table.release_many([(table, step, {})]) == [200]


def test_no_releases_are_made_of_nothing_and_none_of_two_runs(opened: Callable[..., Any]) -> None:
    assert dpf.PrivateTable.release_many([]) == []
    node = dpf.step("n", dpf.queries.Count(), DiscreteLaplace(SURE))
    (one, _), (other, run) = opened(node, TABLE), opened(node, TABLE)
    with pytest.raises(dpf.InputError, match="the tables belong to different runs"):
        dpf.PrivateTable.release_many([(one, "n", {}), (other, "n", {})])
    assert run.charges == []


def test_a_private_error_of_one_of_several_queries_shows_no_row(opened: Callable[..., Any]) -> None:
    """It names steps and the kind of failure."""
    for engine, told in ((dpf.InMemory(), "step 'fails'"), (Messages(), "step 'count' and 1 released with it")):
        table, _ = opened(plan(), TABLE, seed=None, engine=engine)
        with pytest.raises(dpf.InputError, match=f"{told}.* failed with ValueError") as caught:
            dpf.PrivateTable.release_many([(table, "count", {}), (table, "fails", {})])
        assert "[" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_a_private_error_of_several_draws_shows_no_row(opened: Callable[..., Any]) -> None:
    """Nor what a mechanism writes, or warns of: it sees the exact answers."""

    @attrs.frozen
    class Tells(Laplace):
        name = "tells"

        def release_many(self, answers: Any, calibration: Any, randomness: Any) -> list[Any]:
            warnings.warn(f"the answers are {answers}", stacklevel=1)
            raise dpf.InputError(f"the answers are {answers}")

    table, _ = opened(dpf.step("n", dpf.queries.Count(), Tells(1)), TABLE, seed=None)
    with warnings.catch_warnings(record=True) as warned, pytest.raises(dpf.InputError) as caught:
        dpf.PrivateTable.release_many([(table, "n", {})])
    assert str(caught.value).startswith("step 'n': the mechanism 'tells' failed with InputError")
    assert "200" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert not warned
    parts = dpf.parallel(dpf.step("n", dpf.queries.Count(), Tells(1)), by=SCHEMA["age"])
    table, _ = opened(parts, TABLE, seed=None)
    with pytest.raises(dpf.InputError, match=r"^step 'parts 2/n': the mechanism 'tells' failed with InputError"):
        dpf.PrivateTable.release_many((part, "n", {}) for part in table.partition("age")[1:])


@pytest.mark.parametrize("mechanism", [DiscreteLaplace("0.3"), Laplace("0.3"), Gaussian("0.1"), PermuteAndFlip("0.3")])
def test_a_mechanism_gives_each_answer_its_own_output(mechanism: dpf.Mechanism) -> None:
    """Of its shape and about its value: farther than 60 scales away with a probability below 1e-20."""
    calibration = mechanism.calibrate(dpf.queries.Histogram(SCHEMA["age"]).facts(), dpf.Relation.ADD_OR_REMOVE_ONE)
    assert calibration is not None
    answers = [np.array([1000 * k, 0, 0]) for k in range(4)]
    for randomness in (SeededRandomness(1), SystemRandomness()):
        found = mechanism.release_many(answers, calibration, randomness)
        if mechanism.selects:
            assert found[1:] == [0, 0, 0]
        else:
            assert [round(float(one[0]) / 1000) for one in found] == [0, 1, 2, 3]
            assert {one.shape for one in found} == {(3,)}


def test_a_mechanism_with_a_draw_of_its_own_draws_several_outputs_so_too() -> None:
    """It does not inherit how another one draws several at once, which would be other noise than it states."""

    @attrs.frozen
    class Alone(Laplace):
        name = "alone"

        def release(self, answer: Any, calibration: Any, randomness: Any) -> Any:
            return "its own"

    mechanism = Alone("0.3")
    calibration = mechanism.calibrate(dpf.queries.Histogram(SCHEMA["age"]).facts(), dpf.Relation.ADD_OR_REMOVE_ONE)
    assert calibration is not None
    assert mechanism.release_many([1, 2], calibration, SystemRandomness()) == ["its own", "its own"]


def test_who_draws_several_outputs_how() -> None:
    """A class that says how to draw one, and not how to draw several, draws one after another."""
    one_by_one, at_once = dpf.Mechanism.release_many, Laplace.release_many
    assert at_once is DiscreteLaplace.release_many is not one_by_one
    assert Gaussian.release_many is not one_by_one
    assert dpf.mechanisms.KNorm.release_many is PermuteAndFlip.release_many is one_by_one

    class Both(_LatticeLaplace):
        name = "both"

        def release(self, answer: Any, calibration: Any, randomness: Any) -> Any:
            return "one"

        def release_many(self, answers: Any, calibration: Any, randomness: Any) -> list[Any]:
            return ["many"]

    class Neither(_LatticeLaplace):
        name = "neither"

    class One(_LatticeLaplace):
        name = "one"

        def release(self, answer: Any, calibration: Any, randomness: Any) -> Any:
            return "one"

    assert Both(1).release_many([1, 2], None, None) == ["many"]  # type: ignore[arg-type]
    assert Neither.release_many is at_once
    assert One(1).release_many([1, 2], None, None) == ["one", "one"]  # type: ignore[arg-type]


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(1), Laplace(1), Gaussian(1)])
def test_noisy_whole_numbers_are_whole_numbers(mechanism: dpf.Mechanism) -> None:
    calibration = mechanism.calibrate(dpf.queries.Histogram(SCHEMA["age"]).facts(), dpf.Relation.ADD_OR_REMOVE_ONE)
    assert calibration is not None
    for randomness in (SeededRandomness(1), SystemRandomness()):
        vector = mechanism.release(np.array([5, 6, 7]), calibration, randomness)
        assert (vector.dtype, vector.shape) == (np.int64, (3,))
        assert type(mechanism.release(np.int64(5), calibration, randomness)) is int
        many = mechanism.release_many([np.array([5, 6, 7]), np.int64(5)], calibration, randomness)
        assert many[0].dtype == np.int64
        assert type(many[1]) is int
        assert mechanism.release_many([], calibration, randomness) == []
