"""The results that a study will publish, with the miner, attributes, cost and error of each result."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any, final

import attrs

from dpframework.plan.error_bounds_by_result import parts_of
from dpframework.plan.plan_node_index import Reads
from dpframework.reports.plan_and_node_losses import bound_of, loss_text, share_of
from dpframework.results.error_bounds import ErrorBound
from dpframework.run.miner_base_and_examples import parameter_form
from dpframework.study.plan_runner_without_miner import PLANNED
from dpframework.study.plugin_registry import registry
from dpframework.study.study_plan_totals_and_findings import StudyPlan

#: Parameters that are not listed, since other columns show them.
_SHOWN_ELSEWHERE = ("epsilon", "rho", "attributes", "attribute")
_MOST_LISTED = 4  # the most values of a list that are shown
MOST_KINDS, MOST_LINES = 6, 40  # the most kinds of release per result, and the most lines of a list below a plan
COSTS = "time and memory, apart from reading and holding the rows:"
UNKNOWN_SIZE = "The number of rows is not known, so errors are not given as a share of it."


@final
@attrs.frozen
class ResultRow:
    """The result that one part of a study will publish.

    Attributes
    ----------
    name
        The part's name, which is also the name of its result.
    miner
        The miner's name, or "add_plan" for a part that was planned without a miner. Empty if the plan does not say.
    parameters
        The names and values of the miner's parameters that differ from their defaults.
    reads
        The attributes that the part may read; None if it may read any.
    published
        The error bounds of the published numbers, one for each kind of release.
    loss
        The cost of this part alone, in words.
    share
        The part's share of the whole plan's loss, from 0 to 1. None if it is not known.
    alike
        The names of further parts that differ from this one only in their name. Each has the same cost.
    """

    name: str
    miner: str
    parameters: tuple[tuple[str, str], ...]
    reads: Reads
    published: tuple[ErrorBound, ...]
    loss: str
    share: float | None
    alike: tuple[str, ...] = ()

    @property
    def names(self) -> str:
        """The part's name with the names in `alike`, of which only the first few are listed."""
        return _value([self.name, *self.alike])

    @property
    def maker(self) -> str:
        """The miner in words."""
        return "planned without a miner" if self.miner == PLANNED else self.miner

    @property
    def made_by(self) -> str:
        """The miner in words, with its parameters."""
        return self.maker + "".join(f", {name} = {value}" for name, value in self.parameters)

    @property
    def cost(self) -> str:
        """The loss of the part and its share of the plan's loss. Each part in `alike` has the same loss and share."""
        each = " each" if self.alike else ""
        return self.loss + each + ("" if self.share is None else f", {100 * self.share:.3g} % of the total{each}")

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "name": self.name,
            "miner": self.miner,
            "parameters": dict(self.parameters),
            "reads": None if self.reads is None else list(self.reads),
            "published": [bound.to_dict() for bound in self.published],
            "loss": self.loss,
            "share": self.share,
        }


def bound_line(bound: ErrorBound) -> str:
    """Return one line with a kind of release, its error and a warning if there is one."""
    return f"{bound.what}: {bound.text}" + (f" [{bound.warning}]" if bound.warning else "")


def error_lines(plan: StudyPlan) -> list[str]:
    """Return a line on the number of rows for which errors are stated, then one line for each kind of release.

    Only the first `MOST_KINDS` kinds of a result and the first `MOST_LINES` lines are given.
    """
    lines = [
        f"  {name}: {bound_line(bound)}"
        for name, bounds in plan.error_bounds().items()
        for bound in bounds[:MOST_KINDS]
    ]
    return [f"accuracy, in 95 % of releases: {size_sentence(plan)}", *lines[:MOST_LINES]]


def cost_lines(plan: StudyPlan) -> list[str]:
    """Return a heading, then the time and memory of each result whose miner states them; no lines if none does."""
    lines = [f"  {name}: {cost.text}" for name, cost in plan.run_costs().items()]
    return [COSTS, *lines[:MOST_LINES]] if lines else []


def standing_lines(plan: StudyPlan) -> list[str]:
    """Return a heading, then one line for each step: whether its sensitivity is proved, tested or declared.

    Without records of `verify` there are no lines.
    """
    if plan.verified is None:
        return []
    from dpframework.plan.claim_standing import standings

    lines = [f"  {one.path}: {one.text}" for one in standings(plan, plan.verified)]
    return ["sensitivities:", *lines[:MOST_LINES]]


def size_sentence(plan: StudyPlan) -> str:
    """Say for how many rows the errors are stated, or how to give a number of rows if none is known."""
    if plan.size.about is not None:
        return f"Errors are stated for {plan.size.text}."
    return f"{UNKNOWN_SIZE} Say about how many there are with --rows N, or with about_rows in the schema."


def bias_rows(rows: Iterable[ResultRow]) -> list[tuple[str, str]]:
    """Return pairs of the first few names of the results that share a bias, and a sentence on this bias."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for bias in dict.fromkeys(bias for bound in row.published for bias in bound.biases):
            found.setdefault(bias, []).extend((row.name, *row.alike))
    return [(_value(names), bias) for bias, names in found.items()][:MOST_LINES]


def group_rows(rows: Iterable[ResultRow]) -> list[tuple[str, tuple[tuple[int, float], ...]]]:
    """Return, for each result with counts, its names and the errors of its counts by the size of the counted group.

    The errors are pairs of a group's number of rows and the relative error of its count.

    If a result has several kinds of counts, each kind has an entry of its own, with the kind after the names.
    """
    found = []
    for row in rows:
        counts = {bound.what: bound.by_group for bound in row.published if bound.by_group}
        found += [(row.names if len(counts) == 1 else f"{row.names}: {what}", own) for what, own in counts.items()]
    return found


def merge(rows: Iterable[ResultRow]) -> list[ResultRow]:
    """Return the results, with parts that differ only in their names merged into one."""
    found: dict[ResultRow, list[str]] = {}
    for row in rows:
        bounds = [attrs.evolve(bound, steps=[""] * len(bound.steps)) for bound in row.published]
        found.setdefault(attrs.evolve(row, name="", published=tuple(bounds)), []).append(row.name)
    return [attrs.evolve(row, name=names[0], alike=tuple(names[1:])) for row, names in found.items()]


def result_rows(plan: StudyPlan) -> list[ResultRow]:
    """Return one row for each part of the study."""
    bounds = plan.error_bounds()
    whole = bound_of(plan.root, plan)
    rows = []
    for name, part in parts_of(plan):
        loss = bound_of(part.node, plan)
        written = plan.miners.get(name, {})
        rows.append(
            ResultRow(
                name,
                written.get("miner", ""),
                tuple(_parameters(written)),
                plan.index.reads[part.number],
                bounds[name],
                loss_text(loss),
                share_of(loss, whole),
            )
        )
    return rows


def _parameters(written: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield the parameters to list: those that differ from their defaults, or all if the miner is not installed.

    A part that was planned without a miner has no parameters.
    """
    if written.get("miner") == PLANNED:
        return
    defaults = _defaults(written.get("miner", ""))
    for name, value in written.get("parameters", {}).items():
        if name not in _SHOWN_ELSEWHERE and value is not None and (name not in defaults or defaults[name] != value):
            yield name, _value(value)


@functools.cache
def _defaults(miner: str) -> Mapping[str, Any]:
    kind = registry().kind(miner)
    if kind is None:
        return {}
    found = {}
    for field in attrs.fields(kind):
        default = field.default
        if default is attrs.NOTHING:
            continue
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type] # its stub says that it is a function
            if default.takes_self:
                continue
            default = default.factory()
        if field.converter is not None:
            default = field.converter(default)
        found[field.name] = parameter_form(default)
    return found


def _value(value: Any) -> str:
    """Return a parameter's value in words. Only the first few values of a list are named."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        more = [] if len(value) <= _MOST_LISTED else [f"and {len(value) - _MOST_LISTED} more"]
        return ", ".join([*map(_value, value[:_MOST_LISTED]), *more])
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(inner)}" for name, inner in value.items())
    return str(value)
