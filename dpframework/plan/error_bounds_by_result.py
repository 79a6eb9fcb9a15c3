"""The parts of a plan, one for each result, with bounds on the errors of their releases."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, final

import attrs
import numpy as np

from dpframework.facts.privacy_losses import Relation
from dpframework.facts.schema import Schema
from dpframework.mechanisms.base import Calibration, Mechanism, Preview
from dpframework.plan.nodes import Sequential, Step
from dpframework.queries.base import Norm
from dpframework.results.error_bounds import BoundKind, ErrorBound, TableSize
from dpframework.results.noisy_count_with_interval import CONFIDENCE

if TYPE_CHECKING:
    from dpframework.plan.plan import Plan
    from dpframework.plan.plan_node_index import PlacedNode


@final
@attrs.frozen(eq=False)
class PlannedStep:
    """A step of a `PlannedPart`.

    Attributes
    ----------
    path
        The path of the step within the part.
    step
        The step.
    calibration
        The noise and losses of the step; None without a valid claim. If the miner chooses the privacy parameter during
        the run, the noise and losses are those of its largest value.
    chosen
        Whether the miner chooses the step's privacy parameter during the run (see `plan.spend_block_node`).
    """

    path: str
    step: Step
    calibration: Calibration | None
    chosen: bool = False


def _steps(steps: Iterable[PlannedStep]) -> tuple[PlannedStep, ...]:
    return tuple(steps)


@final
@attrs.frozen(eq=False)
class PlannedPart:
    """The planned steps of one result. Error bounds follow from them.

    Attributes
    ----------
    name
        The name of the part, which is also the name of its result.
    steps
        The steps of the part.
    relation
        The study's neighbouring relation.
    size
        The public facts about the number of rows.
    schema
        The schema of the table; None for a plan that was read from a file.
    """

    name: str
    steps: tuple[PlannedStep, ...] = attrs.field(converter=_steps)
    relation: Relation
    size: TableSize
    schema: Schema | None = None

    @property
    def rows(self) -> int | None:
        """The approximate number of rows; None if it is not public."""
        return self.size.about

    def calibration(self, path: str) -> Calibration | None:
        """Return the noise of a step by its path within the part, or None without a valid claim."""
        return next((one.calibration for one in self.steps if one.path == path), None)

    def bounds_of_steps(self) -> tuple[ErrorBound, ...]:
        """Return an error bound for each query. If several steps have the same query, the largest error is given.

        Errors of counts are in rows. For the error of any other number, a note states how many rows could change the
        answer by that much.
        """
        kinds: dict[tuple[str, bool], list[PlannedStep]] = {}
        for one in self.steps:
            kinds.setdefault((one.step.facts.text, one.step.mechanism.selects), []).append(one)
        found = {}
        for (text, selects), alike in kinds.items():
            length = max((one.step.facts.answer_length or 0 for one in alike), default=0)
            best = f"the best of {_number_text(length)} by " if length else "the best by "
            found[f"{best if selects else ''}{text}"] = alike
        return tuple(self._bound(text, alike) for text, alike in found.items())

    def _bound(self, text: str, alike: list[PlannedStep]) -> ErrorBound:
        if any(one.chosen for one in alike):
            steps = tuple(one.path for one in alike)
            return ErrorBound(
                text, None, note="depends on what the miner asks for during the run", size=self.size, steps=steps
            )
        known = [one for one in alike if one.calibration is not None]
        if not known:
            steps = tuple(one.path for one in alike)
            return ErrorBound(text, None, note="no valid claim", size=self.size, steps=steps)
        worst = max(known, key=_within)
        others = (one.path for one in alike if one is not worst)
        assert worst.calibration is not None
        return attrs.evolve(self.bound_of(text, worst.calibration), steps=(worst.path, *others))

    def bound_of(self, what: str, calibration: Calibration) -> ErrorBound:
        """Return the error bound of one release. A miner that knows more about the release may refine the bound."""
        within, mechanism = calibration.preview.within, calibration.mechanism
        on_numbers = type(mechanism).variance is not Mechanism.variance
        cells = calibration.facts.answer_length or 1
        if on_numbers and calibration.facts.integer:
            bound = self.counts_bound(what, within, cells)
            several = len(calibration.facts.histograms)
            if bound.likely is None or several < 2 or calibration.facts.sensitivity(Norm.HISTOGRAMS) is None:
                return bound
            return attrs.evolve(bound, likely=several * bound.likely)  # each histogram counts all rows
        rows = _rows_worth(calibration, within, self.relation)
        if on_numbers:
            worth = "" if rows is None else f"as much as {_number_text(math.ceil(rows - 1e-9))} rows can add"
            largest = None if rows is None or self.rows is None or not rows else self.rows * within / rows
            return ErrorBound(
                what, within, "", BoundKind.NUMBER if cells == 1 else BoundKind.COUNTS, self.size, largest,
                f"the most that {self.size.text} can add" if largest else "", note=worth,
            )  # fmt: skip
        if rows is None or not math.isfinite(rows) or not mechanism.chooses:
            return ErrorBound(what, None, note=calibration.preview.text, size=self.size)
        return self.rows_bound(what, rows, BoundKind.CHOICE)

    def counts_bound(self, what: str, within: float, cells: int) -> ErrorBound:
        """Return the error bound of counts over disjoint cells."""
        bound = self.rows_bound(what, within, BoundKind.COUNTS)
        rows = self.size.largest
        if rows is None:
            return bound
        counts = "the whole table" if cells == 1 else f"the average of the {_number_text(cells)} counts"
        return attrs.evolve(bound, likely=rows / cells, likely_text=counts)

    def sum_bound(self, what: str, paths: Iterable[str], cells: int) -> ErrorBound:
        """Return the error bound of sums of up to `cells` counts, for the least accurate of the steps at `paths`.

        The noise of a sum is a sum of independent noises. For discrete Laplace noise the bound is that of continuous
        Laplace noise, rounded up to a whole number. This is valid because continuous Laplace noise is discrete Laplace
        noise plus independent noise. A sum of discrete noises is symmetric around 0 with one peak, and independent
        noise makes such a sum no more likely to be near 0.

        Parameters
        ----------
        what
            See `ErrorBound`.
        paths
            The paths of the steps. Each step has independent noise on every count.
        cells
            The most counts that are added up.
        """
        asked = set(paths)
        alike = [one for one in self.steps if one.path in asked]
        worst = max(alike, key=_within, default=None)
        if worst is None or worst.calibration is None:
            steps = tuple(one.path for one in alike)
            return ErrorBound(what, None, note="no valid claim", size=self.size, steps=steps)
        within = worst.calibration.preview.within
        if cells > 1:
            law = worst.calibration.noise_law.sum_of(cells)
            within = float(math.ceil(law.quantile(np.array((1 + CONFIDENCE) / 2))))
        others = (one.path for one in alike if one is not worst)
        return attrs.evolve(self.rows_bound(what, within, BoundKind.COUNTS), steps=(worst.path, *others))

    def branch_bound(self, names: Collection[str], branch: str, cells: int) -> ErrorBound:
        """Return `sum_bound` for the steps of one branch of an `either`, with a note that names the branch.

        Parameters
        ----------
        names
            The names of the steps, each the last part of a path.
        branch
            The name of the branch that public facts make likely, or "" for the branch with the largest error.
        cells
            The largest number of counts that are added up.
        """
        found = [one.path for one in self.steps if one.path.rpartition("/")[2] in names]
        bound = self.sum_bound("", [path for path in found if not branch or branch in path.split("/")], cells)
        others = (path for path in found if path not in bound.steps)
        return attrs.evolve(
            bound,
            steps=(*bound.steps, *others),
            note=f"if the number of rows leads to {branch}" if branch else bound.note,
        )

    def bounds_of_others(self, bounds: Iterable[ErrorBound]) -> tuple[ErrorBound, ...]:
        """Return the error bounds of the steps that are in none of the given bounds."""
        told = {path for bound in bounds for path in bound.steps}
        return attrs.evolve(self, steps=[one for one in self.steps if one.path not in told]).bounds_of_steps()

    def rows_bound(self, what: str, rows: float, kind: BoundKind) -> ErrorBound:
        """Return an error bound in rows. It is shown with its share of the table."""
        return ErrorBound(what, rows, "rows", kind, self.size, self.rows, self.size.text)


def _within(one: PlannedStep) -> float:
    within = math.nan if one.calibration is None else one.calibration.preview.within
    return -1.0 if math.isnan(within) else within


def _rows_worth(calibration: Calibration, within: float, relation: Relation) -> float | None:
    """Return the number of rows that together can change the answer by `within`."""
    declared = calibration.facts.sensitivity(calibration.mechanism.norm)
    if declared is None:
        return None
    change = declared.change.add_or_remove_one or declared.change.under(relation)
    if not change:
        return None
    size = math.sqrt(change) if declared.norm is Norm.SQUARED_L2 else float(change)
    return within / size


def _number_text(number: int) -> str:
    return f"{number:,}" if number < 10**6 else f"{float(number):.3g}"


def previews(plan: Plan) -> dict[str, Preview]:
    """Return the predicted error of each step with a valid claim, by its path."""
    return {path: calibration.preview for path, _, calibration in plan.calibrated_steps()}


def parts_of(plan: Plan) -> list[tuple[str, PlacedNode]]:
    """Return the parts of a study with their names, one for each result."""
    top = plan.index.nodes[0]
    whole = isinstance(top.node, Sequential) and not top.name
    return [(part.name or part.label, part) for part in (plan.index.children(top) if whole else (top,))]


def planned_parts(plan: Plan) -> Iterator[PlannedPart]:
    """Yield a `PlannedPart`, the planned steps of one result, for each part of the plan."""
    for name, part in parts_of(plan):
        steps = [
            PlannedStep(
                placed.path.removeprefix(f"{name}/"), placed.node, placed.calibration, chosen=placed.block is not None
            )
            for placed in plan.index.steps_of(part)
            if isinstance(placed.node, Step)
        ]
        yield PlannedPart(name, steps, plan.relation, plan.size, plan.schema)
