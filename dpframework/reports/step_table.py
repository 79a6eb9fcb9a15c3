"""The block of a report that shows the table of steps."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import final

import attrs

from dpframework.facts.privacy_losses import Relation
from dpframework.plan.claim_standing import Standing
from dpframework.reports.section_blocks import Paragraph, SectionBlock, TableBlock
from dpframework.reports.step_row import StepRow


@final
@attrs.frozen
class PlacedStep:
    """A step in the table of steps.

    Attributes
    ----------
    number
        The number of the step in the table, from 1.
    node
        The number of the step's node in the plan.
    row
        The facts of the step.
    exact
        The step's loss as a ratio, if the row rounds the loss and the ratio is short enough to be read. Otherwise None.
    source
        The number of the source that gives the reason for the step's sensitivity, such as "S1"; empty without a source.
    released
        How often the step was released; 0 before a run.
    """

    number: int
    node: int
    row: StepRow
    exact: Fraction | None
    source: str
    released: int


@final
@attrs.frozen
class StepTable(SectionBlock):
    """The steps of a plan, grouped by the part of the study that they belong to.

    Attributes
    ----------
    groups
        The name of each part of the study, with the steps of that part.
    sources
        The reasons for sensitivities, each as its number, its text and the numbers of the steps that rest on it.
    in_order
        The facts of each step with the number of times that it was released, in the order of `StudyPlan.placed_steps`.
    ran
        Whether there was a run.
    relation, unit
        The neighbouring relation of the sensitivities, and the unit that the noise protects. `unit` is empty if the
        unit is a row.
    formulas
        The formulas of scores, each as text, as MathML, and with the numbers of the steps that use it.
    has_records
        Whether records of `verify` were given. They say which sensitivities are proved or tested.
    """

    template = "steps"
    groups: tuple[tuple[str, tuple[PlacedStep, ...]], ...]
    sources: tuple[tuple[str, str, tuple[int, ...]], ...]
    in_order: tuple[tuple[StepRow, int], ...]
    ran: bool
    relation: str
    unit: str
    formulas: tuple[tuple[str, str, tuple[int, ...]], ...] = ()
    has_records: bool = False

    @property
    def standing_sentence(self) -> str:
        """How many sensitivities are proved, tested and declared, in words."""
        if not self.has_records:
            return "No record of proofs or tests was given: sensitivities are as declared."
        kinds = Counter(row.standing.partition(" ")[0].rstrip(";:") for row, _ in self.in_order)
        parts = [f"{kinds[kind]} {kind}" for kind in Standing if kinds[kind]]
        return f"Sensitivities: {', '.join(parts)}." if parts else ""

    @property
    def partition_sentence(self) -> str:
        """Which of the parts of a partition are charged, in words."""
        if self.relation == Relation.REPLACE_ONE:
            return "Parts are disjoint, but a row may leave one and enter another, so two of them may be charged."
        return "Parts are disjoint, so only the most expensive one is charged."

    @property
    def has_assumptions(self) -> bool:
        """Whether the claim of any step needs an assumption beyond the mechanism's theorem."""
        return any(row.assumes for row, _ in self.in_order)

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads of the columns on a page."""
        assumed, released = ("assumes",) * self.has_assumptions, ("released",) * self.ran
        return ("step", "query", "mechanism", "sensitivity", *assumed, "loss", "expected error", *released)

    def plain(self) -> tuple[SectionBlock, ...]:
        """Return a table with all facts of each step."""
        heads = [
            "step",
            "query",
            "sensitivity",
            "monotonic",
            "source",
            "mechanism",
            "assumes",
            "loss",
            "expected error",
            "standing",
        ]
        rows = [list(row.to_dict().values()) for row, _ in self.in_order]
        if not self.ran:
            return (TableBlock(heads, rows),)
        rows = [[*row, str(released)] for row, (_, released) in zip(rows, self.in_order, strict=True)]
        return TableBlock([*heads, "released"], rows), Paragraph(
            "The last column says how often a step was released. Under a partition, a step is released once per part. "
            + self.partition_sentence
        )
