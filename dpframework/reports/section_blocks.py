"""The blocks that a report's sections are made of. Each renderer lays them out in its own way.

Every renderer knows `Paragraph`, `Facts`, `TableBlock` and `Text`. The method `plain` of any other block returns the
block's content in these four kinds, without what only a page can show. So a renderer may lay out such a block in a
special way, but does not have to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, final

import attrs

from dpframework.checks import Finding, Severity
from dpframework.facts.value_checks import as_texts
from dpframework.reports.attribute_losses import AttributeLoss
from dpframework.reports.epsilon_as_odds import PRIORS, CertaintyGain, share_text
from dpframework.reports.plan_and_node_losses import loss_text
from dpframework.reports.plan_drawing_data import NodeDrawing
from dpframework.reports.planned_result_rows import ResultRow, bias_rows, bound_line, group_rows
from dpframework.results.error_bounds import percent_text
from dpframework.results.matrix import Matrix


def _rows(rows: Iterable[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, rows))


@attrs.frozen
class SectionBlock:
    """A block of a report's section."""

    #: The name of the template that lays the block out on a page, without the ending of its file. If the name is empty,
    #: a page uses the templates of the blocks that `plain` returns.
    template: ClassVar[str] = ""

    def plain(self) -> tuple[SectionBlock, ...]:
        """Return the content in blocks that every renderer knows, without what only a page can show."""
        return (self,)


@final
@attrs.frozen
class Paragraph(SectionBlock):
    """A paragraph of text. If it is an aside, it is set in small print."""

    template = "paragraph"
    text: str
    aside: bool = False


@final
@attrs.frozen
class Facts(SectionBlock):
    """Pairs of a name and a value. Each name is shown beside its value."""

    template = "facts"
    rows: tuple[tuple[str, str], ...] = attrs.field(converter=tuple[tuple[str, str], ...])


@final
@attrs.frozen
class TableBlock(SectionBlock):
    """A table, whose first column names its rows.

    Attributes
    ----------
    heads
        The heads of the columns.
    rows
        The cells of each row, one for each column.
    caption
        A sentence about the table; may be empty.
    sums
        Whether the last row gives the totals of the rows above.
    alike
        Whether all columns but the first hold numbers of one kind. A narrow page keeps such columns side by side.
    title
        A heading for the table alone, below the section's heading; may be empty.
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
    """A text whose lines are shown unchanged, with a title that may be empty."""

    template = "text"
    text: str
    title: str = ""


# --- blocks that some renderers lay out in a special way --------------------------------------------------------------


@final
@attrs.frozen
class PublishedResults(SectionBlock):
    """The planned results of a study, with their miners, attributes, errors and losses.

    Attributes
    ----------
    rows
        The results. Results that differ only in their names share a row.
    total
        A sentence on the loss of all results together.
    size
        A sentence on the number of rows for which the errors are stated.
    left_out
        A clause on the rows that no result counts, because of the unit that the plan protects. Empty if there are none.
    """

    template = "published"
    rows: tuple[ResultRow, ...]
    total: str
    size: str
    left_out: str = ""

    @property
    def groups(self) -> list[tuple[str, tuple[tuple[int, float], ...]]]:
        """For each result with counts, its name, and pairs of a number of counted rows and a count's relative error."""
        return group_rows(self.rows)

    @property
    def biases(self) -> list[tuple[str, str]]:
        """Pairs of two texts: the names of some results, and a sentence on what biases these results."""
        everywhere = [("all results", self.left_out)] if self.left_out else []
        return everywhere + bias_rows(self.rows)

    def plain(self) -> tuple[SectionBlock, ...]:
        """Return the table of results, then a table of errors by group and a table of biases if there are any."""
        rows = []
        for row in self.rows:
            reads = "any" if row.reads is None else ", ".join(row.reads) or "none"
            kinds = "; ".join(map(bound_line, row.published))
            rows.append((row.names, row.made_by, reads, kinds, row.cost))
        found: list[SectionBlock] = [Paragraph(self.size)]
        heads = ("result", "miner", "may read", "what is released, and its error (95 %)", "loss")
        found.append(TableBlock(heads, rows))
        if self.groups:
            (_, sizes), *_ = self.groups
            groups = [f"a count of {group:,}" for group, _ in sizes]
            shares = [(name, *(percent_text(share) for _, share in own)) for name, own in self.groups]
            about = "The error of a count as a share of the count, by the number of rows in a group:"
            found.append(TableBlock(("result", *groups), shares, about))
        if self.biases:
            found.append(TableBlock(("results", "what moves them"), self.biases, "Besides noise:"))
        return tuple(found)


@final
@attrs.frozen
class LearnedShares(SectionBlock):
    """How sure somebody can become of a fact about one person, depending on how sure they were before."""

    template = "learned"
    learned: tuple[CertaintyGain, ...]
    unit: str
    priors: ClassVar[tuple[str, ...]] = tuple(share_text(prior) for prior in PRIORS)

    def plain(self) -> tuple[SectionBlock, ...]:
        """Return a table, or a sentence if no claim is valid."""
        if not self.learned:
            return (Paragraph("No claim is valid, so nothing bounds what somebody can learn."),)
        heads = ["guess", "odds grow by", *(f"{prior} sure before" for prior in self.priors)]
        rows = [[one.claim, f"{one.odds_text} times", *one.share_texts] for one in self.learned]
        if self.learned[0].fails:
            heads.append("except with a probability of")
            rows = [[*row, f"{one.fails:.2g}"] for row, one in zip(rows, self.learned, strict=True)]
        return (TableBlock(heads, rows),)


@final
@attrs.frozen
class Gauge:
    """An amount drawn as a bar. `share` is the length of the bar, from 0 to 1, where 1 is the largest amount shown."""

    name: str
    text: str
    share: float


@final
@attrs.frozen
class SummaryBlock(SectionBlock):
    """The facts of a study. On a page, bars show its budget, its planned total and, after a run, what was spent."""

    template = "summary"
    facts: tuple[tuple[str, str], ...]
    gauges: tuple[Gauge, ...]

    def plain(self) -> tuple[SectionBlock, ...]:
        """Return the facts, without the bars."""
        return (Facts(self.facts),)


@final
@attrs.frozen
class ResultText(SectionBlock):
    """One result of a run as text, and its matrices as heat maps.

    Attributes
    ----------
    number
        The number of the result, from 1.
    name
        The name of the result.
    text
        The result as text.
    matrices
        The matrices of the result that are small enough for a heat map.
    mapped
        Whether the heat maps show all matrices of the result. If so, its text is not printed on paper.
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
    """A finding, with the title of its check.

    `page` holds the sections of the documentation page of the check, as pairs of a heading and a text. Only the first
    finding of each check has them.
    """

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
        """Return a table and, if a finding is an error, a sentence on what an error means. Without findings, say so."""
        found = [one.finding for one in self.findings]
        if not found:
            return (Paragraph("None: every check passes."),)
        table = TableBlock(("code", "severity", "message"), [(f.code, f.severity.value, f.message) for f in found])
        refused = any(f.severity is Severity.ERROR for f in found)
        return (table, Paragraph("A plan with an error is refused and cannot be run.")) if refused else (table,)


@final
@attrs.frozen
class PlanDrawing(SectionBlock):
    """A plan as a tree, both as text and as boxes that can be folded on a page.

    Attributes
    ----------
    tree
        The tree as text.
    root
        The tree as boxes.
    rules
        For each kind of node in the plan, the rule by which the losses of its parts compose.
    relation
        The neighbouring relation under which these rules hold.
    notions
        The number of notions of privacy, such as pure or zCDP, in which the plan has a valid total.
    """

    template = "plan"
    tree: str
    root: NodeDrawing
    rules: Mapping[str, str]
    relation: str
    notions: int

    def plain(self) -> tuple[SectionBlock, ...]:
        """Return the tree as text."""
        return (Text(self.tree),)


@final
@attrs.frozen
class AttributeLosses(SectionBlock):
    """For each attribute, the loss of the releases that may read it."""

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
        return (TableBlock(("attributes", "read by", "steps", "total loss"), rows),)

    @staticmethod
    def loss_text(row: AttributeLoss) -> str:
        """Return the loss of a row in words."""
        return loss_text(row.loss) if row.steps else "none"


@final
@attrs.frozen
class ChargeList(SectionBlock):
    """The path of every charge of a run, in order. Only a page has room for these paths. It shows them folded."""

    template = "charges"
    paths: tuple[str, ...]

    def plain(self) -> tuple[SectionBlock, ...]:
        """Return no blocks, since the table of steps says how often each step was released."""
        return ()
