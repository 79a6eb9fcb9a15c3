"""The blocks of a report's sections, values that each renderer lays out in its own way.

Every renderer knows `Paragraph`, `Facts`, `TableBlock` and `Text`. Any other block says in `plain` how it is made of
these, so a renderer may lay it out in a special way, and need not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, final

import attrs

from dpframework.checks import Finding, Severity
from dpframework.facts.value_checks import as_texts
from dpframework.reports.attribute_reads import AttributeLoss
from dpframework.reports.loss_text import loss_text
from dpframework.reports.node_drawings import NodeDrawing
from dpframework.reports.odds import PRIORS, Learned, share_text
from dpframework.reports.publications import ResultRow, bias_rows, bound_line, group_rows
from dpframework.results.error_bounds import percent_text
from dpframework.results.matrix import Matrix


def _rows(rows: Iterable[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, rows))


def _pairs(rows: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(rows)


@attrs.frozen
class SectionBlock:
    """A part of a section."""

    #: The template that lays it out on a page, without its ending; empty for the templates of its plain blocks.
    template: ClassVar[str] = ""

    def plain(self) -> tuple[SectionBlock, ...]:
        """Return the same in blocks that every renderer knows."""
        return (self,)


@final
@attrs.frozen
class Paragraph(SectionBlock):
    """A paragraph. An aside is set in small print."""

    template = "paragraph"
    text: str
    aside: bool = False


@final
@attrs.frozen
class Facts(SectionBlock):
    """Names beside values."""

    template = "facts"
    rows: tuple[tuple[str, str], ...] = attrs.field(converter=_pairs)


@final
@attrs.frozen
class TableBlock(SectionBlock):
    """A table, whose first column names its rows.

    Attributes
    ----------
    heads
        The heads of the columns.
    rows
        The cells.
    caption
        A sentence about it; may be empty.
    sums
        Whether the last row is the whole of those above.
    alike
        Whether the columns hold numbers of one kind, which a narrow page shows beside each other.
    title
        A heading of its own, below the section's; may be empty.
    """

    template = "table"
    heads: tuple[str, ...] = attrs.field(converter=as_texts)
    rows: tuple[tuple[str, ...], ...] = attrs.field(converter=_rows)
    caption: str = ""
    sums: bool = False
    alike: bool = False
    title: str = ""


@final
@attrs.frozen
class Text(SectionBlock):
    """A text whose lines stay as they are, with a title or none."""

    template = "text"
    text: str
    title: str = ""


# --- blocks that some renderers lay out in a special way --------------------------------------------------------------


@final
@attrs.frozen
class PublishedResults(SectionBlock):
    """The results of a study, with their miners, attributes, errors and losses."""

    template = "published"
    rows: tuple[ResultRow, ...]
    total: str
    size: str

    @property
    def groups(self) -> list[tuple[str, tuple[tuple[int, float], ...]]]:
        """The relative error of counts, by the size of a group."""
        return group_rows(self.rows)

    @property
    def biases(self) -> list[tuple[str, str]]:
        """The biases of results besides noise, with the results' names."""
        return bias_rows(self.rows)

    def plain(self) -> tuple[SectionBlock, ...]:
        """Return a table, and one each for groups and biases."""
        rows = []
        for row in self.rows:
            reads = "any" if row.reads is None else ", ".join(row.reads) or "none"
            kinds = "; ".join(map(bound_line, row.published))
            rows.append((row.names, row.made_by, reads, kinds, row.cost))
        found: list[SectionBlock] = [Paragraph(self.size)]
        found.append(TableBlock(("result", "miner", "may read", "what comes out, and how exact (95 %)", "loss"), rows))
        if self.groups:
            (_, sizes), *_ = self.groups
            heads = [f"a count of {group:,}" for group, _ in sizes]
            shares = [(name, *(percent_text(share) for _, share in own)) for name, own in self.groups]
            about = "A count's error as a share of it, by how many rows a group has:"
            found.append(TableBlock(("result", *heads), shares, about))
        if self.biases:
            found.append(TableBlock(("results", "what moves them"), self.biases, "Besides noise:"))
        return tuple(found)


@final
@attrs.frozen
class LearnedShares(SectionBlock):
    """How sure somebody can become of one person, from several degrees of being sure before."""

    template = "learned"
    learned: tuple[Learned, ...]
    unit: str
    priors: ClassVar[tuple[str, ...]] = tuple(share_text(prior) for prior in PRIORS)

    def plain(self) -> tuple[SectionBlock, ...]:
        """Return a table."""
        if not self.learned:
            return (Paragraph("No claim is valid, so nothing bounds what somebody can learn."),)
        heads = ["of what", "odds grow by", *(f"{prior} sure before" for prior in self.priors)]
        rows = [[one.claim, f"{one.odds_text} times", *one.share_texts] for one in self.learned]
        if self.learned[0].fails:
            heads.append("but for a probability of")
            rows = [[*row, f"{one.fails:.2g}"] for row, one in zip(rows, self.learned, strict=True)]
        return (TableBlock(heads, rows),)


@final
@attrs.frozen
class Gauge:
    """One of several amounts that are drawn to one scale."""

    name: str
    text: str
    share: float


@final
@attrs.frozen
class SummaryBlock(SectionBlock):
    """The facts of a study, with its budget and its total as bars."""

    template = "summary"
    facts: tuple[tuple[str, str], ...]
    gauges: tuple[Gauge, ...]

    def plain(self) -> tuple[SectionBlock, ...]:
        """Return the facts."""
        return (Facts(self.facts),)


@final
@attrs.frozen
class ResultText(SectionBlock):
    """One result of a run as text, and its matrices as heat maps.

    Attributes
    ----------
    number
        Its number among the results, from 1.
    name
        Its name.
    text
        The text.
    matrices
        The matrices that are small enough for a heat map.
    mapped
        Whether the text is too wide for paper, and the heat maps show all of it.
    """

    template = "result"
    number: int
    name: str
    text: str
    matrices: tuple[Matrix, ...] = ()
    mapped: bool = False

    def plain(self) -> tuple[SectionBlock, ...]:
        """Return the text."""
        return (Text(self.text, f"Result: {self.name}"),)


@final
@attrs.frozen
class ExplainedFinding:
    """A finding, with the title of its check and, where it is the first of its kind, the check's page."""

    finding: Finding
    title: str
    page: tuple[tuple[str, str], ...]


@final
@attrs.frozen
class FindingList(SectionBlock):
    """The findings of the checks."""

    template = "findings"
    findings: tuple[ExplainedFinding, ...]

    def plain(self) -> tuple[SectionBlock, ...]:
        """Return a table."""
        found = [one.finding for one in self.findings]
        if not found:
            return (Paragraph("None: every check passes."),)
        table = TableBlock(("code", "severity", "message"), [(f.code, f.severity.value, f.message) for f in found])
        refused = any(f.severity is Severity.ERROR for f in found)
        return (table, Paragraph("An error refuses the plan: it cannot be run.")) if refused else (table,)


@final
@attrs.frozen
class PlanDrawing(SectionBlock):
    """A plan as a tree, in text and in boxes that a page folds.

    Attributes
    ----------
    tree
        The tree as text.
    root
        The tree as boxes.
    rules
        How the losses of each kind of node in it compose.
    relation
        The relation that they compose under.
    notions
        How many notions of loss have a total.
    """

    template = "plan"
    tree: str
    root: NodeDrawing
    rules: Mapping[str, str]
    relation: str
    notions: int

    def plain(self) -> tuple[SectionBlock, ...]:
        """Return the text."""
        return (Text(self.tree),)


@final
@attrs.frozen
class AttributeLosses(SectionBlock):
    """The loss spent on each attribute."""

    template = "attributes"
    rows: tuple[AttributeLoss, ...]

    def plain(self) -> tuple[SectionBlock, ...]:
        """Return a table."""
        rows = [
            (
                ", ".join(row.attributes) or "any other",
                ", ".join(row.parts) or "nothing",
                str(row.steps),
                self.loss_text(row),
            )
            for row in self.rows
        ]
        return (TableBlock(("attributes", "read for", "steps", "loss together"), rows),)

    @staticmethod
    def loss_text(row: AttributeLoss) -> str:
        """Write the loss of a row."""
        return loss_text(row.loss) if row.steps else "none"


@final
@attrs.frozen
class ChargeList(SectionBlock):
    """The path of every charge of a run in order, folded, for which only a page has room."""

    template = "charges"
    paths: tuple[str, ...]

    def plain(self) -> tuple[SectionBlock, ...]:
        """Return nothing, since the table of steps says how often each was released."""
        return ()
