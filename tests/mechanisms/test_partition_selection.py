"""Partition selection: what is shown, how often, what that loses, and the mistakes that one could make."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest

import dpframework as dpf
from dpframework.facts.privacy_unit import UnitChange
from dpframework.mechanisms import Calibration, PartitionSelection
from dpframework.mechanisms.optimal_partition_selection_noise import selection_noise
from dpframework.mechanisms.randomness import SeededRandomness, SystemRandomness
from dpframework.queries import QueryFacts
from dpframework.verify import MechanismConformance, audit, check_losses

ADD, REPLACE = dpf.Relation
TOWNS = dpf.Categorical("town", [f"town {k}" for k in range(1000)])
HISTOGRAM = dpf.queries.Histogram(TOWNS).facts()
CELL = dpf.queries.Count().facts()


def calibrated(
    epsilon: Any = 1, delta: Any = "0.02", facts: QueryFacts = HISTOGRAM, relation: dpf.Relation = ADD, **how: Any
) -> Calibration:
    found = PartitionSelection(epsilon, delta).calibrate(facts, relation, **how)
    assert found is not None
    return found


class TestPartitionSelection(MechanismConformance):
    mechanisms = (PartitionSelection("0.7", "0.01"), PartitionSelection(2, "0.001"))
    draws = 1_000
    min_tightness = 0.45  # a count of all rows is claimed under replace-one as if a row could change it


# --- what is shown --------------------------------------------------------------------------------------------------


def outputs_of(calibration: Calibration, most: int) -> list[int]:
    """All outputs that a count of at most so many rows can have."""
    return [0, *range(1, most + selection_noise_of(calibration).reach)]


def selection_noise_of(calibration: Calibration) -> Any:
    mechanism = calibration.mechanism
    assert isinstance(mechanism, PartitionSelection)
    return selection_noise(1 / calibration.scale, mechanism.delta / (calibration.scale * mechanism.epsilon))


@pytest.mark.parametrize("rows", [0, 1, 3, 6, 30])
def test_probabilities_add_up_and_a_cell_is_shown_as_the_rule_says(rows: int) -> None:
    calibration = calibrated(facts=CELL)
    chances = np.exp([calibration.mechanism.log_density(rows, k, calibration) for k in outputs_of(calibration, rows)])
    assert chances.sum() == pytest.approx(1, abs=1e-12)
    shown = float(selection_noise_of(calibration).shown(np.array([rows]))[0])
    assert chances[0] == pytest.approx(1 - shown, abs=1e-12)
    assert calibration.mechanism.log_density(rows, -1, calibration) == -math.inf
    assert calibration.mechanism.log_density(rows, 1.5, calibration) == -math.inf


@pytest.mark.parametrize("source", [SeededRandomness(4), SystemRandomness()], ids=["seeded", "private"])
def test_cells_without_rows_are_0_and_cells_with_many_are_nearly_right(source: Any) -> None:
    """Of 1,000 towns few have rows. Means are within six deviations, which fails falsely below 1e-8."""
    counts = np.zeros(1000, dtype=np.int64)
    counts[:3] = 10_000, 400, 1
    calibration = calibrated(1, "1e-6")
    outputs = np.array([calibration.mechanism.release(counts, calibration, source) for _ in range(200)])
    assert not outputs[:, 3:].any()
    errors = outputs[:, :2] - counts[:2]
    noise = selection_noise_of(calibration)
    assert np.abs(errors).max() <= noise.reach
    assert np.abs(errors.mean(axis=0)).max() <= 0.5 + 6 * errors.std() / math.sqrt(200)
    assert errors.std() < 2


def test_what_a_cell_needs_to_be_seen_is_in_the_plan() -> None:
    """At (1, 1e-6) 14 rows, at (0.1, 1e-6) 109, where a Laplace threshold needs 132."""
    for epsilon, half, always in ((1, 14, 28), ("0.1", 109, 218)):
        preview = calibrated(epsilon, "1e-6").preview
        assert f"cells of {half} rows are shown half of the time, cells of {always} or more always" in preview.text


@pytest.mark.parametrize("epsilon", [1, "0.1"])
def test_the_largest_cell_that_may_well_be_left_out_is_known(epsilon: Any) -> None:
    calibration = calibrated(epsilon, "1e-6")
    hidden = calibration.mechanism.cell_visibility(calibration).hidden
    below, above = selection_noise_of(calibration).shown(np.array([hidden, hidden + 1]))
    assert below < 0.975 <= above


@pytest.mark.parametrize("rows", [0, 1, 4, 7, 9, 12, 50])
def test_the_preview_holds_for_cells_of_any_size(rows: int) -> None:
    """19 times in 20, by adding up the probabilities of all outputs."""
    calibration = calibrated(facts=CELL)
    outputs = outputs_of(calibration, rows)
    near = [k for k in outputs if abs(k - rows) <= calibration.preview.within]
    assert sum(math.exp(calibration.mechanism.log_density(rows, k, calibration)) for k in near) >= 0.95


# --- what it loses --------------------------------------------------------------------------------------------------


def neighbours(relation: dpf.Relation, rows: int, cells: int = 2, most: int = 5) -> Iterator[tuple[Any, Any]]:
    """Counts of tables that differ by up to so many rows, or in as many."""
    moves = [
        np.bincount(move, minlength=cells)
        for n in range(1, rows + 1)
        for move in itertools.product(range(cells), repeat=n)
    ]
    for base in itertools.product(range(most), repeat=cells):
        for come in moves:
            if relation is ADD:
                yield np.array(base), np.array(base) + come
            else:
                for leave in (move for move in moves if move.sum() == come.sum()):
                    yield np.array(base) + leave, np.array(base) + come


def beyond(calibration: Calibration, one: Any, other: Any, epsilon: float) -> float:
    """The larger of both probabilities beyond epsilon, over all outputs."""
    most = int(max(one.max(), other.max()))
    listed = outputs_of(calibration, most)
    density = calibration.mechanism.log_density
    of_cell = {
        (count, k): density(np.array([count]), np.array([k]), calibration)
        for count in {*one.tolist(), *other.tolist()}
        for k in listed
    }
    pairs = [
        np.exp([[of_cell[int(side[j]), k] for k in listed] for side in (one, other)])
        for j in range(len(one))
        if one[j] != other[j]
    ]
    p, q = np.ones(1), np.ones(1)
    for a, b in pairs:
        p, q = np.outer(p, a).ravel(), np.outer(q, b).ravel()
    return max(float(np.maximum(x - math.exp(epsilon) * y, 0).sum()) for x, y in ((p, q), (q, p)))


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
@pytest.mark.parametrize("relation", list(dpf.Relation))
def test_no_unit_loses_more_than_epsilon_and_delta(relation: dpf.Relation, rows: int) -> None:
    """By enumeration, for units of up to four rows; and one row, added, attains it."""
    calibration = calibrated(1, "0.05", relation=relation, by=UnitChange(rows))
    assert calibration.losses.pure.under(relation) == 1
    assert calibration.losses.delta.under(relation) == Fraction("0.05")
    pairs = {(tuple(a), tuple(b)): None for a, b in neighbours(relation, rows, most=3 if rows > 2 else 5)}
    found = max(beyond(calibration, np.array(a), np.array(b), 1.0) for a, b in pairs if a != b)
    assert found <= 0.05 * (1 + 1e-9)
    assert found >= (0.0499 if relation is ADD else 0.015)


@pytest.mark.parametrize("relation", list(dpf.Relation))
def test_in_parts_a_row_that_moves_loses_no_more(relation: dpf.Relation) -> None:
    calibration = calibrated(1, "0.05", relation=relation, in_parts=True)
    added = calibration.losses.delta.add_or_remove_one
    assert added == Fraction("0.05") / (1 if relation is ADD else 2)
    assert calibration.losses.delta.under(relation) == Fraction("0.05")


@attrs.frozen
class Strict(PartitionSelection):  # type: ignore[misc] # final, for all but this
    """The planted bug of a threshold: `>` for `>=`."""

    name = "strict"

    def release(self, answer: Any, calibration: Calibration, randomness: Any) -> Any:
        exact, noise = calibration.on_lattice(answer), selection_noise_of(calibration)
        noisy = exact + noise.draw(exact.size, randomness).reshape(exact.shape)
        return np.where(noisy > noise.reach, noisy - noise.centre, 0)


@attrs.frozen
class Lower(PartitionSelection):  # type: ignore[misc]
    """A threshold that is one row too low: a single row is shown e times too often."""

    name = "lower"

    def log_density(self, answer: Any, output: Any, calibration: Calibration) -> float:
        return super().log_density(np.asarray(answer) + (np.asarray(answer) > 0), output, calibration)


@attrs.frozen
class Halved(PartitionSelection):  # type: ignore[misc]
    """Half of its delta is claimed."""

    name = "halved"

    def losses(self, change: Any, scale: Any) -> Any:
        found = super().losses(change, scale)
        return attrs.evolve(found, delta=found.delta.map(lambda delta: delta / 2))


def test_planted_bugs_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpframework.verify import check_sampler

    assert check_sampler(PartitionSelection(1, "0.02"), draws=1_000).passed
    assert not check_sampler(Strict(1, "0.02"), draws=1_000).passed
    assert check_losses(PartitionSelection(1, "0.02")).passed
    assert not check_losses(Halved(1, "0.02")).passed
    calibration = Lower(1, "0.02").calibrate(CELL, ADD)
    assert calibration is not None
    assert beyond(calibration, np.array([0]), np.array([1]), 1.0) > 0.05


@attrs.frozen
class BusyTowns(dpf.Miner):
    """The towns that have enough rows."""

    name = "busy-towns"
    epsilon: Any = 1
    delta: Any = "0.01"

    def plan(self, schema: dpf.Schema) -> dpf.Node:
        counts = dpf.queries.Histogram(schema["town"])
        return dpf.step("towns", counts, PartitionSelection(self.epsilon, self.delta))

    def mine(self, table: dpf.PrivateTable) -> Any:
        counts = table.release("towns")
        return {str(k): int(counts[k]) for k in np.flatnonzero(counts)}


@pytest.mark.parametrize("relation", list(dpf.Relation))
def test_a_miner_is_audited_and_run(relation: dpf.Relation, plan_of: Callable[..., dpf.StudyPlan]) -> None:
    schema = dpf.Schema([dpf.Categorical("town", ["A", "B", "C"])])
    report = audit(BusyTowns(), schema, relation, replays=1000)
    assert report.passed, str(report)
    assert report.worst >= 0.45 * report.claim
    study = dpf.Study(schema, epsilon=1, delta="0.01", relation=relation)
    study.add("towns", BusyTowns())
    results = study.run(dpf.Table.from_codes(schema, [[0] * 500 + [2]]), seed=1)
    assert "1" not in results["towns"]
    assert results["towns"]["0"] == pytest.approx(500, abs=30)
    assert results.spent == dpf.PrivacyLoss(1, delta="0.01")


def test_what_it_does_not_serve() -> None:
    scores = dpf.queries.QueryFacts("sum", "a sum", (), True, 1, [dpf.Sensitivity("l1", 3, source="up to 3")])
    assert "not known to change by at most 1" in str(PartitionSelection(1, "0.1").misfit(scores))
    for delta in (0, -1, "x"):
        with pytest.raises(dpf.InputError, match="delta is"):
            PartitionSelection(1, delta)
    with pytest.raises(dpf.InputError, match="1e-30 or more"):
        calibrated(1, "1e-31")
