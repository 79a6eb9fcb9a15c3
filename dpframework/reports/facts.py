"""What a report says, before it is laid out: a row a step, totals, and what a run did."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, final

import attrs

from dpframework.accountant import AccountedPlan, PureAccountant, ZCDPAccountant
from dpframework.checks import Severity
from dpframework.facts.errors import InputError
from dpframework.facts.privacy import PrivacyLoss, Relation, decimal_text, exact, readable
from dpframework.plan.graph import label_of, plan_graph
from dpframework.plan.nodes import Node, Parallel, Post, Repeat, Sequential, Step, walk
from dpframework.plan.plan import Plan
from dpframework.queries.base import Norm
from dpframework.reports.difference import loss_of
from dpframework.study.results import Results
from dpframework.study.study_plan import StudyPlan


@final
@attrs.frozen
class StepRow:
    """One planned step, each fact as text.

    Attributes
    ----------
    path
        Its place in the plan.
    query
        What is asked.
    sensitivity
        The largest change under the plan's relation, with its norm.
    monotonic
        "yes", "no", or a dash where nothing is declared.
    source
        Where the sensitivity comes from.
    mechanism
        What releases it.
    assumptions
        What its claim needs beyond its theorem; a dash for nothing.
    loss
        Epsilon, or rho where there is no finite epsilon.
    expected
        The error that it is expected to have.
    """

    path: str
    query: str
    sensitivity: str
    monotonic: str
    source: str
    mechanism: str
    assumptions: str
    loss: str
    expected: str

    def to_dict(self) -> dict[str, str]:
        """Return a JSON-safe form."""
        return attrs.asdict(self)


NONE = "—"


def step_rows(plan: StudyPlan) -> list[StepRow]:
    """Return a row for each place of a step in the plan."""
    return list(_rows(plan).values())


def _rows(plan: StudyPlan) -> dict[int, StepRow]:
    """Return the rows by the identity of their steps, which are places of the plan."""
    previews = plan.previews()
    return {
        id(step): _row(path, step, plan, previews[path].text if path in previews else NONE)
        for path, step in plan.placed_steps()
    }


def _row(path: str, step: Step, plan: StudyPlan, expected: str) -> StepRow:
    facts = step.query.facts()
    declared = facts.sensitivity(step.mechanism.norm)
    return StepRow(
        path=path,
        query=facts.text,
        sensitivity=NONE if declared is None else _change(declared.change.under(plan.relation), declared.norm),
        monotonic=NONE if declared is None else "yes" if declared.monotonic else "no",
        source=NONE if declared is None else declared.source,
        mechanism=step.mechanism.name,
        assumptions=", ".join(dict.fromkeys((*step.mechanism.assumptions, *step.assumptions))) or NONE,
        loss=_step_loss(step, plan),
        expected=expected,
    )


def _change(change: Fraction | None, norm: Norm) -> str:
    if change is None:
        return "no claim"
    return f"{decimal_text(change).removesuffix('.0')} ({norm})"


def _step_loss(step: Step, plan: StudyPlan) -> str:
    calibration = plan.calibration(step)
    if calibration is None:
        return "no claim"
    epsilon = calibration.losses.pure.under(plan.relation)
    if epsilon is not None:
        return f"epsilon {readable(epsilon)}"
    rho = calibration.losses.zcdp.under(plan.relation)
    return "no claim" if rho is None else f"rho {readable(rho)}"


@final
@attrs.frozen
class NodeRow:
    """One node of a plan, each fact as text.

    Attributes
    ----------
    number
        Its number in the plan's graph (see `plan_graph`).
    kind
        "step", "sequential", ...
    name
        Its name; empty if it has none.
    label
        What it is, in a few words.
    loss
        What all releases below it cost at most, composed.
    exact
        The same as exact rationals, each after its notion of loss; none for what is free or has no valid claim.
    share
        The part of the whole plan's loss that it makes up; None where one of them is not known.
    times
        How often it may be released for what is above it, if that is not once.
    uses
        The numbers of the nodes whose releases it is given.
    step
        Its facts if it is a step.
    children
        The nodes directly below.
    """

    number: int
    kind: str
    name: str
    label: str
    loss: str
    exact: tuple[tuple[str, Fraction], ...]
    share: float | None
    times: str
    uses: tuple[int, ...]
    step: StepRow | None
    children: tuple[NodeRow, ...]

    def walk(self) -> Iterator[NodeRow]:
        """Yield the node and all below it, in the order of their numbers."""
        yield self
        for child in self.children:
            yield from child.walk()


def node_tree(plan: StudyPlan) -> NodeRow:
    """Return the plan's nodes, from the top, with what they cost and what they use."""
    numbers = {id(node): number for number, node in enumerate(walk(plan.root))}
    rows = _rows(plan)
    used: dict[int, list[int]] = defaultdict(list)
    for source, target, edge in plan_graph(plan).edges(data=True):
        if edge["kind"] == "use":
            used[target].append(source)
    whole = dict(_exact(plan.root, plan))

    def row(node: Node, times: str) -> NodeRow:
        amounts = _exact(node, plan)
        shares = [float(amount / whole[notion]) for notion, amount in amounts if whole.get(notion)]
        return NodeRow(
            number=numbers[id(node)],
            kind=type(node).__name__.lower(),
            name=getattr(node, "name", None) or "",
            label=label_of(node),
            loss=_amounts(amounts) or _without_amount(node, plan),
            exact=amounts,
            share=next(iter(shares), None),
            times=times,
            uses=tuple(sorted(used[numbers[id(node)]])),
            step=rows.get(id(node)),
            children=tuple(row(child, _times(node, k)) for k, child in enumerate(node.children)),
        )

    return row(plan.root, "")


def _times(node: Node, position: int) -> str:
    match node:
        case Repeat():
            return f"{node.times} times"
        case Parallel() if len(node.parts) == 1:
            return "once a part" if node.number is None else f"once in each of {node.number} parts"
        case Parallel():
            return f"in part {position + 1} of {len(node.parts)}"
    return ""


def _exact(node: Node, plan: Plan) -> tuple[tuple[str, Fraction], ...]:
    """Return what a node costs as exact amounts: epsilon, and rho where that is accounted or alone finite."""
    if isinstance(node, Post):
        return ()
    found = {"epsilon": PureAccountant(plan.relation).amount_of(node, plan).under(plan.relation)}
    if delta := ZCDPAccountant.delta_for(plan.budget.delta):
        found["rho"] = ZCDPAccountant(plan.relation, delta=delta).amount_of(node, plan).under(plan.relation)
    alone = loss_of(node, plan) if found["epsilon"] is None else None
    if alone is not None and alone.epsilon is None:
        found["rho"] = alone.rho
    return tuple((notion, amount) for notion, amount in found.items() if amount is not None)


def _amounts(amounts: tuple[tuple[str, Fraction], ...]) -> str:
    return ", ".join(f"{notion} {readable(amount)}" for notion, amount in amounts)


def _without_amount(node: Node, plan: Plan) -> str:
    match node:
        case Post():
            return "free"
        case Step():
            return "no claim"
    return "no valid claim" if plan.budget.delta else "no pure epsilon"


def part_rows(plan: StudyPlan) -> list[tuple[str, dict[str, str]]]:
    """Return what each part of the study would cost alone under each accounting, and the whole plan, last."""
    root = plan.root
    parts = list(root.children) if isinstance(root, Sequential) else []
    named = [(getattr(part, "name", None) or label_of(part), part) for part in parts]
    return [
        (name, {notion: loss_text(loss) for notion, loss in plan.losses(node).items()})
        for name, node in [*named, ("the whole plan", root)]
    ]


def plan_verdict(plan: StudyPlan) -> str:
    """Return one sentence: may the plan be run or not."""
    codes = dict.fromkeys(finding.code for finding in plan.check() if finding.severity is Severity.ERROR)
    if codes:
        return f"REFUSED: the plan cannot be run; see {', '.join(codes)} among the findings"
    return "accepted: no check refuses this plan"


def headlines(plan: StudyPlan, ran: Ran | None) -> list[str]:
    """Return what a reader must know first: of a run if there was one, else of the plan."""
    return [plan_verdict(plan)] if ran is None else ran.headlines(plan)


def is_alarming(headline: str) -> bool:
    """Tell whether a headline says that something is not as it should be: it then begins in capitals."""
    return headline.startswith(("NOT", "REFUSED", "STOPPED"))


def loss_text(loss: PrivacyLoss | None) -> str:
    """Write a loss for a reader.

    Examples
    --------
    >>> loss_text(PrivacyLoss(epsilon="0.5", delta="1e-6"))
    'epsilon 0.5, delta 1e-06'
    """
    if loss is None or loss.epsilon is None:
        return "no finite epsilon"
    return f"epsilon {readable(loss.epsilon)}" + (f", delta {float(loss.delta):g}" if loss.delta else "")


def public_facts(plan: AccountedPlan) -> list[tuple[str, str]]:
    """Return what heads a report: the relation, the budget, and the total under each accounting."""
    neighbours = {
        Relation.ADD_OR_REMOVE_ONE: "tables that differ by one row's presence",
        Relation.REPLACE_ONE: "tables of one public size that differ in one row",
    }[plan.relation]
    known = plan.totals()
    rows = [
        ("relation", f"{plan.relation} ({neighbours})"),
        ("budget", loss_text(PrivacyLoss(plan.budget.epsilon, delta=plan.budget.delta))),
    ]
    rows += [(f"total, {name} accounting", loss_text(loss)) for name, loss in known.items()]
    if not known:
        rows.append(("total", f"none is valid under {plan.relation}"))
    return [*rows, ("schema", _schema_text(plan)), ("plan", plan.hash)]


def _schema_text(plan: Plan) -> str:
    """Return what the plan claims of its schema."""
    facts = plan.facts
    texts = [facts.fingerprint]
    if facts.rows is not None:
        texts.append(f"public row count {facts.rows}")
    elif facts.row_bound is not None:
        texts.append(f"at most {facts.row_bound} rows")
    if facts.inferred:
        texts.append(f"inferred from private data: {', '.join(facts.inferred)}")
    return "; ".join(texts)


def assumption_rows(plan: StudyPlan) -> list[tuple[str, str, str]]:
    """Return (name, who needs it, whether the study allows it) for each assumption."""
    return [
        (name, ", ".join(steps) or "the whole plan", "yes" if name in plan.budget.allow else "no")
        for name, steps in plan.assumptions.items()
    ]


@final
@attrs.frozen
class Ran:
    """What a run did, as it is kept in a results file.

    Attributes
    ----------
    private
        False for a seeded run or an inferred schema: the results must not be published.
    accounting
        The notion of loss that was charged.
    spent
        What the releases cost together.
    charges
        The path of each release, in order.
    texts
        Each miner's result as text.
    stopped
        Why the run stopped before its end; None if it did not.
    epsilon
        The epsilon of what was spent, exact; None if it is not finite.
    run
        The run's id in a ledger; None if it was not recorded in one.
    """

    private: bool
    accounting: str
    spent: str
    charges: tuple[str, ...]
    texts: Mapping[str, str]
    stopped: str | None = None
    epsilon: Fraction | None = None
    run: str | None = None

    @classmethod
    def of(cls, results: Results, *, stopped: str | None = None) -> Ran:
        """Return what a run did."""
        return cls(
            results.private,
            results.accounting,
            loss_text(results.spent),
            tuple(charge.path for charge in results.charges),
            {name: str(result) for name, result in results.items()},
            stopped,
            None if results.spent is None else results.spent.epsilon,
            results.run,
        )

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Ran:
        """Read what `to_dict` wrote, among other keys.

        Raises
        ------
        InputError
            If a key lacks or has another type.
        """
        kinds = {"private": bool, "accounting": str, "spent_text": str, "charges": list, "texts": dict}
        for key, kind in kinds.items():
            if not isinstance(form.get(key), kind):
                raise InputError(f"these are not results that dpframework wrote: '{key}' lacks or has another type")
        charges, stopped = tuple(map(str, form["charges"])), form.get("stopped")
        reason = None if stopped is None else str(stopped)
        texts = {str(name): str(text) for name, text in form["texts"].items()}
        run = None if form.get("run") is None else str(form["run"])
        spent = None if form.get("spent") is None else exact(form["spent"], "'spent'")
        return cls(form["private"], form["accounting"], form["spent_text"], charges, texts, reason, spent, run)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "private": self.private,
            "accounting": self.accounting,
            "spent": None if self.epsilon is None else str(self.epsilon),
            "spent_text": self.spent,
            "charges": list(self.charges),
            "texts": dict(self.texts),
            **({} if self.stopped is None else {"stopped": self.stopped}),
            **({} if self.run is None else {"run": self.run}),
        }

    def facts(self, plan: StudyPlan) -> list[tuple[str, str]]:
        """Return what was charged, beside what was planned."""
        recorded = [] if self.run is None else [("run in the ledger", self.run)]
        return [
            *recorded,
            ("releases", str(len(self.charges))),
            ("accounting", self.accounting),
            ("spent", self.spent),
            ("planned at most", loss_text(plan.totals().get(self.accounting))),
        ]

    def headlines(self, plan: StudyPlan) -> list[str]:
        """Return what a reader must know first: that the run stopped early, if it did, and the verdict."""
        stopped = [] if self.stopped is None else [f"STOPPED before its end: {self.stopped}"]
        return [*stopped, self.verdict(plan)]

    def verdict(self, plan: StudyPlan) -> str:
        """Return one sentence: may the results be published or not."""
        if plan.facts.inferred:
            return "NOT PRIVATE: the schema was inferred from private data, which no epsilon covers"
        if not self.private:
            return "NOT PRIVATE: this run was seeded, for experiments only; its results must not be published"
        return "private: drawn from the operating system's cryptographic generator"

    def made(self, plan: StudyPlan) -> dict[str, int]:
        """Return how often each planned step was released, by its path in the plan.

        A run numbers the parts that a template stands for ("parts 3/counts"); the plan writes it once
        ("parts/counts").
        """
        places = {row_path for row_path, _ in plan.placed_steps()}
        templates = {_unnumbered(path): path for path in reversed(list(places))}
        return Counter(path if path in places else templates.get(_unnumbered(path), path) for path in self.charges)


def _unnumbered(path: str) -> str:
    *scopes, step = path.split("/")
    return "/".join([*(re.sub(r" \d+$", "", scope) for scope in scopes), step])
