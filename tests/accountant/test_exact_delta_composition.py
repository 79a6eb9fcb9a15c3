"""Exact deltas: their totals beside exact enumeration, in plans of all kinds of nodes, and what accountants charge."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.accountant import (
    AdditiveAccountant,
    PLDAccountant,
    PureAccountant,
    RDPAccountant,
    ZCDPAccountant,
    composition,
)
from dpframework.accountant.exact_delta_composition import exact_delta_of
from dpframework.facts.privacy_losses import NOTHING, ByRelation
from dpframework.mechanisms import DiscreteLaplace, Gaussian, PartitionSelection
from dpframework.plan import Node, Step
from dpframework.reports import markdown_report, text_plan_drawings
from dpframework.reports.difference import difference
from dpframework.reports.html import html_report
from dpframework.reports.text_plan_drawings import difference_tree
from dpframework.verify import audit, check_accountant, check_losses
from dpframework.verify.accountants.exact_loss_oracle import RAREST, SCHEMA, delta_at, pairs_of

ADD, REPLACE = dpf.Relation
ROUNDING = 1e-9
A, C = SCHEMA["a"], SCHEMA["c"]
ROOM = Fraction(1, 2)  # the studies' delta: for all of the plans' own, and some to convert with


def count(name: str, epsilon: Any = 1, delta: Any = "0.02") -> Step:
    return dpf.step(name, dpf.queries.Count(), PartitionSelection(epsilon, delta))


def histogram(name: str, epsilon: Any = 1, delta: Any = "0.02") -> Step:
    return dpf.step(name, dpf.queries.Histogram(C), PartitionSelection(epsilon, delta))


def pure(name: str, epsilon: Any = 1) -> Step:
    return dpf.step(name, dpf.queries.Histogram(C), DiscreteLaplace(epsilon))


def rho(name: str) -> Step:
    return dpf.step(name, dpf.queries.Count(), Gaussian("0.125"))


PLANS: dict[str, Node] = {
    "count": count("n"),
    "histogram": histogram("h"),
    "two": dpf.sequential(count("n", "0.5"), histogram("h")),
    "beside pure": dpf.sequential(count("n"), pure("h", "0.5"), dpf.post("p", ["n"])),
    "beside rho": dpf.sequential(count("n"), rho("g")),
    "repeat": dpf.repeat(3, count("n", "0.5", "0.01")),
    "either": dpf.either(count("n", "0.5", "0.1"), count("m", 1, "0.02")),
    "either rho": dpf.either(count("n", "0.5", "0.1"), rho("g")),
    "parallel": dpf.parallel(count("n"), by=C),
    "parallel histograms": dpf.parallel(histogram("h"), by=A),
    "unequal parts": dpf.parallel(count("n", "0.5", "0.1"), dpf.sequential(count("m"), count("k", "0.5")), by=A),
    "parts of parts": dpf.parallel(dpf.sequential(count("n", "0.5"), dpf.parallel(count("m"), by=C)), by=A),
    "chosen parts": dpf.sequential(pure("s", "0.5"), dpf.parallel(histogram("h"), by=dpf.FromRelease("s"))),
}
SAMPLED: dict[str, Node] = {
    "sample": dpf.sample("0.3", count("n")),
    "sample of two": dpf.sample("0.3", dpf.sequential(count("n", "0.5"), pure("h", "0.5"))),
    "sample of rho": dpf.sample("0.5", dpf.sequential(count("n", "0.5"), rho("g"))),
    "parts of a sample": dpf.sample("0.3", dpf.parallel(count("n"), by=A)),
    "samples of parts": dpf.parallel(dpf.sample("0.3", count("n")), count("m", "0.25", "0.01"), by=A),
    "sample of a sample": dpf.sample("0.5", dpf.sample("0.4", count("n"))),
}
UNITS = {
    "a row": dpf.PrivacyUnit(),
    "two rows": dpf.PrivacyUnit("who", 2),
    "as asserted": dpf.PrivacyUnit(rows=2),
}
SLOW = "parts of parts"
CASES = [
    (name, relation, unit)
    for name in (*PLANS, *SAMPLED)
    for relation in dpf.Relation
    for unit in UNITS
    if not (name in SAMPLED and relation is REPLACE)
    and not (name in PLANS and unit == "as asserted")  # of which only samples know
    and not (name == SLOW and unit != "a row" and relation is REPLACE)
]
TIGHT = ("count", "either", "parallel", "beside pure", "sample")


def planned(plan_of: Callable[..., dpf.StudyPlan], name: str, relation: dpf.Relation, unit: str) -> dpf.StudyPlan:
    node = {**PLANS, **SAMPLED}[name]
    return plan_of(node, SCHEMA, relation, delta=ROOM, unit=UNITS[unit])


def lost(plan: dpf.StudyPlan, total: dpf.PrivacyLoss, less: float = 0.0) -> float:
    """The delta that the plan's outputs tell beyond a total's epsilon, or a little less."""
    assert total.epsilon is not None
    return delta_at(plan, float(total.epsilon) - less, pairs_of(plan, few=True))


@pytest.mark.parametrize(("name", "relation", "unit"), CASES)
def test_no_plan_loses_more_than_its_total(
    plan_of: Callable[..., dpf.StudyPlan], name: str, relation: dpf.Relation, unit: str
) -> None:
    plan = planned(plan_of, name, relation, unit)
    claimed = 0
    for kind in (PureAccountant, ZCDPAccountant, RDPAccountant, PLDAccountant):
        total = kind(relation, delta=ROOM).total(plan)
        if total is not None and total.epsilon is not None:
            claimed += 1
            assert 0 < total.delta <= ROOM
            found = lost(plan, total)
            assert found <= float(total.delta) * (1 + ROUNDING) + RAREST, kind.name
            if kind is PureAccountant and name in TIGHT and relation is ADD and unit != "as asserted":
                assert found >= 0.999 * float(total.delta)
    assert claimed >= 3


def test_the_deltas_of_a_plan_compose_as_epsilons_do(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    deltas = {"two": "0.04", "repeat": "0.03", "either": "0.1", "unequal parts": "0.1", "sample of a sample": "0.004"}
    for name, delta in deltas.items():
        assert planned(plan_of, name, ADD, "a row").exact_delta(planned(plan_of, name, ADD, "a row").root) == Fraction(
            delta
        )
    moved = planned(plan_of, "unequal parts", REPLACE, "a row")
    assert moved.exact_delta(moved.root) == Fraction(
        "0.07"
    )  # noise for rows that move: 0.05 and 0.02 under add-or-remove
    assert planned(plan_of, "sample", REPLACE, "a row").totals() == {}


def test_a_plugins_accountant_cannot_lower_the_exact_delta_of_a_plan(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    class Lower(PureAccountant):  # type: ignore[misc] # final, for all but this
        def exact_delta(self, plan: dpf.Plan) -> Fraction:
            return Fraction(0)

    plan = planned(plan_of, "two", ADD, "a row")
    total, run = Lower(ADD, delta=ROOM).total(plan), Lower(ADD, delta=ROOM)
    run.open(plan)
    assert total is not None
    assert run.spent is not None
    assert total.delta == run.spent.delta == Fraction("0.04")


def test_rows_that_are_sampled_one_by_one_are_not_amplified_beside_an_exact_delta(
    plan_of: Callable[..., dpf.StudyPlan],
) -> None:
    """An epsilon that is amplified for each row is of another split than the delta: nothing is proved of both."""
    totals = {unit: planned(plan_of, "sample", ADD, unit).totals()["pure"] for unit in UNITS}
    assert totals["as asserted"] == dpf.PrivacyLoss(1, delta="0.006")
    assert totals["two rows"].epsilon == totals["a row"].epsilon == composition.amplify(Fraction(1), Fraction("0.3"))
    without = plan_of(dpf.sample("0.3", pure("n")), SCHEMA, ADD, unit=UNITS["as asserted"])
    assert without.total().epsilon < 1  # type: ignore[operator]


def test_a_plan_without_exact_delta_is_composed_as_before(
    plan_of: Callable[..., dpf.StudyPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is composed twice, and its JSON does not speak of it."""
    plan = plan_of(dpf.sequential(pure("h"), rho("g")), SCHEMA, ADD, delta="1e-6")
    assert '"delta"' not in str(plan.content()["root"])
    monkeypatch.setattr("dpframework.accountant.exact_delta_composition.DeltaComposition.sequential", None)
    assert plan.totals()
    assert not plan.has_exact_delta


def test_a_plan_with_exact_delta_is_written_and_read(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    plan = plan_of(PLANS["two"], SCHEMA, ADD, delta="0.1")
    losses = plan.content()["root"]["parts"][0]["losses"]
    assert losses["delta"] == {"add-or-remove-one": "1/50", "replace-one": "1/50"}
    again = dpf.StudyPlan.from_json(plan.to_json(), mechanisms=())
    assert again == plan
    assert again.totals() == plan.totals()
    other = plan_of(dpf.sequential(count("n", "0.5", "0.03"), histogram("h")), SCHEMA, ADD, delta="0.1")
    assert other.hash != plan.hash


@pytest.mark.parametrize(
    ("node", "delta", "says"),
    [
        (PLANS["two"], "0.03", "a delta of 0.04 of their own under add-or-remove-one, and the study's delta is 0.03"),
        (PLANS["two"], "0", "a delta of 0.04 of their own"),
        (PLANS["beside rho"], "0.02", "set a delta above 0.02 in the study"),
    ],
)
def test_a_delta_that_does_not_admit_the_releases_is_an_error(
    plan_of: Callable[..., dpf.StudyPlan], node: Node, delta: str, says: str
) -> None:
    plan = plan_of(node, SCHEMA, ADD, delta=delta)
    (finding,) = [one for one in plan.refusals() if one.code == "DP010"]
    assert says in finding.message
    assert plan.smallest_total() is None
    with pytest.raises(dpf.PlanRefused):
        plan.total()


def test_a_total_at_the_plans_own_delta_is_pure(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    plan = plan_of(PLANS["two"], SCHEMA, ADD, delta="0.04")
    assert plan.totals() == {"pure": dpf.PrivacyLoss("1.5", delta="0.04")}
    assert plan.accountant().open(plan).plan is plan
    roomy = plan_of(PLANS["beside rho"], SCHEMA, ADD, delta="0.0200001")
    assert roomy.totals()["zcdp"].delta == Fraction("0.0200001")
    alone = ZCDPAccountant(ADD, delta="1e-7").total(plan_of(dpf.sequential(rho("g"), pure("h")), SCHEMA, ADD))
    assert roomy.totals()["zcdp"].epsilon == alone.epsilon  # type: ignore[union-attr] # both of rho 5/8


# --- budgets --------------------------------------------------------------------------------------------------------


def test_what_converts_takes_exact_delta_from_the_first_plan_only(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    plan = plan_of(count("n"), SCHEMA, ADD, delta="0.1")
    for kind in (ZCDPAccountant, RDPAccountant, PLDAccountant):
        accountant = kind(ADD, epsilon=20, delta="0.1")
        accountant.open(plan)
        accountant.open(plan_of(pure("h"), SCHEMA, ADD, delta="0.1"))
        alone = kind(ADD, delta="0.08").total(plan_of(dpf.sequential(pure("n"), pure("h")), SCHEMA, ADD, delta="0.1"))
        assert accountant.spent is not None
        assert accountant.spent.delta == Fraction("0.1")
        assert alone is not None
        if kind is not RDPAccountant:  # whose order is the first plan's
            assert float(accountant.spent.epsilon or 0) == pytest.approx(float(alone.epsilon or 0), rel=1e-2)
        with pytest.raises(dpf.PlanRefused, match="plan them together"):
            accountant.open(plan)


def test_pure_accounting_adds_up_exact_deltas(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    plan = plan_of(count("n"), SCHEMA, ADD, delta="0.1")
    accountant = PureAccountant(ADD, epsilon=20, delta="0.05")
    for _ in range(2):
        accountant.open(plan)
    assert accountant.spent == dpf.PrivacyLoss(2, delta="0.04")
    copy = pickle.loads(pickle.dumps(accountant))
    assert copy.spent == accountant.spent
    with pytest.raises(dpf.PlanRefused, match="no finite total"):
        accountant.open(plan)
    with pytest.raises(dpf.PlanRefused):
        PureAccountant(ADD, epsilon=20).open(plan)


def test_a_run_says_what_it_has_spent(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    plan = plan_of(dpf.either(count("n", 1, "0.02"), count("m", "0.5", "0.05")), SCHEMA, ADD, delta="0.1")
    run = PureAccountant(ADD, delta="0.1").open(plan)
    assert run.spent == dpf.PrivacyLoss(0)
    run.scope().charge("n")
    assert run.spent == dpf.PrivacyLoss(1, delta="0.02")
    assert plan.totals()["pure"] == dpf.PrivacyLoss(1, delta="0.05")


class Forgetful(AdditiveAccountant):
    """Pure epsilons, whatever the delta of the releases: what a plugin's total may not be."""

    name = "forgetful"
    amount, loss = PureAccountant.amount, PureAccountant.loss

    def total(self, plan: Any) -> dpf.PrivacyLoss | None:
        return self.loss(self.amount_of(plan.root, plan))


class Careful(Forgetful):
    """The same as the core totals it, which knows of the delta."""

    total = AdditiveAccountant.total


def test_an_accountant_that_drops_an_exact_delta_is_found_out() -> None:
    report = check_accountant(Forgetful)
    assert not report.passed
    assert any("exact delta" in one for one in report.wrong)
    assert check_accountant(Careful).passed


# --- what people see ------------------------------------------------------------------------------------------------


@attrs.frozen
class Selected(dpf.Miner):
    """Counts of cells with enough rows."""

    name = "selected"
    epsilon: Any = 1
    delta: Any = "0.01"
    times: int = 1

    def plan(self, schema: dpf.Schema) -> Node:
        steps = [count("n", self.epsilon, self.delta), histogram("h", self.epsilon, self.delta)]
        return dpf.sequential(*steps[: self.times])

    def mine(self, table: dpf.PrivateTable) -> Any:
        found = [table.release("n")]
        return found + ([table.release("h").tolist()] if self.times > 1 else [])


def test_reports_show_the_delta_beside_epsilon() -> None:
    study = dpf.Study(SCHEMA, epsilon=3, delta="0.02")
    study.add("selected", Selected(times=2))
    plan = study.plan()
    text = markdown_report(plan)
    assert "epsilon 1.0, delta 0.01" in text
    assert "epsilon 2.0, delta 0.02" in text_plan_drawings.tree(plan)
    assert "epsilon 2.0, delta 0.02" in html_report(plan)
    assert "delta 0.01" in plan._repr_html_()
    graph = plan.graph()
    assert sorted(graph.nodes[k]["delta"] for k in graph if graph.nodes[k]["kind"] == "step") == [Fraction("0.01")] * 2
    table = dpf.Table.from_codes(SCHEMA, [[0, 1, 1], [0, 1, 2]])
    results = study.run(table, seed=1)
    assert results.to_frame()["delta"].to_list() == [0.01, 0.01]
    assert results.spent == dpf.PrivacyLoss(2, delta="0.02")
    before = dpf.Study(SCHEMA, epsilon=3, delta="0.02")
    before.add("selected", Selected(delta="0.005", times=2))
    assert "delta 0.01" in difference_tree(difference(before.plan(), plan))


# --- verification ---------------------------------------------------------------------------------------------------


def test_a_mechanism_with_an_exact_delta_is_compared_release_by_release() -> None:
    added, replaced = (check_losses(PartitionSelection("0.5", "0.001"), relations=[one]) for one in dpf.Relation)
    assert added.passed, str(added)
    assert replaced.passed, str(replaced)
    assert added.tightness >= 0.99


@attrs.frozen
class Half(PartitionSelection):  # type: ignore[misc] # final, for all but this
    """Half of the delta is claimed."""

    def losses(self, change: Any, scale: Any) -> Any:
        found = super().losses(change, scale)
        return attrs.evolve(found, delta=found.delta.map(lambda delta: delta / 2))


def test_half_of_a_delta_is_found_out() -> None:
    report = check_losses(Half("0.5", "0.001"), relations=[ADD])
    assert not report.passed
    assert any(one.kind.startswith("exact delta") and not one.holds for one in report.claims)


@pytest.mark.parametrize("relation", list(dpf.Relation))
def test_an_audit_knows_outputs_that_are_impossible_on_one_side(relation: dpf.Relation) -> None:
    report = audit(Selected("0.7", "0.01", times=2), SCHEMA, relation, replays=1500)
    assert report.passed, str(report)
    assert report.delta == 0.02
    of_two = 0.9 if relation is ADD else 0.45  # a count of all rows does not change when one is replaced
    assert report.worst >= of_two * report.claim


A_DELTA = st.integers(0, 10).map(lambda number: Fraction(number, 1000))


def deltas(plan_of: Callable[..., dpf.StudyPlan], node: Node, relation: dpf.Relation = ADD) -> ByRelation:
    return exact_delta_of(node, plan_of(node, SCHEMA, relation, delta=ROOM))


def some(amounts: list[Fraction]) -> list[Node]:
    return [count(f"n{k}", 1, delta) if delta else pure(f"n{k}") for k, delta in enumerate(amounts)]


@given(st.lists(A_DELTA, min_size=1, max_size=4), st.integers(1, 3))
def test_deltas_add_up_where_rows_are_the_same_and_do_not_where_they_are_not(
    plan_of: Callable[..., dpf.StudyPlan], amounts: list[Fraction], times: int
) -> None:
    nodes = some(amounts)
    assert deltas(plan_of, dpf.sequential(*nodes)).add_or_remove_one == sum(amounts)
    assert deltas(plan_of, dpf.either(*nodes)).add_or_remove_one == max(amounts)
    assert deltas(plan_of, dpf.repeat(times, dpf.sequential(*nodes))).add_or_remove_one == times * sum(amounts)
    assert deltas(plan_of, dpf.sample("0.3", dpf.sequential(*nodes))).add_or_remove_one == sum(amounts) * Fraction(
        "0.3"
    )


@given(A_DELTA, A_DELTA)
def test_a_replaced_row_may_leave_one_part_and_enter_another(
    plan_of: Callable[..., dpf.StudyPlan], one: Fraction, other: Fraction
) -> None:
    node = dpf.parallel(*some([one, other]), by=A)
    assert deltas(plan_of, node).add_or_remove_one == max(one, other)
    replaced = deltas(plan_of, node, REPLACE).replace_one
    assert replaced is not None
    assert max(one, other) <= replaced <= 2 * max(one, other)
    assert replaced >= one + other


def test_a_plan_without_exact_deltas_has_none_whatever_lacks_a_claim(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    assert deltas(plan_of, dpf.sequential(pure("h"), rho("g"))) == NOTHING
