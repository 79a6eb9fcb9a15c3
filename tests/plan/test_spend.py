"""Blocks that a miner spends as it goes: planned, checked, written, run, resumed and reported."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from noisy_runs import TABLE as ROWS

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Exponential, Gaussian, Laplace, PartitionSelection
from dpframework.plan import Amounts, Node, Spend
from dpframework.reports import tree
from dpframework.reports.difference import difference
from dpframework.reports.html import html_report
from dpframework.reports.markdown import markdown_report

SCHEMA = ROWS.schema  # ill, and a town of three
TOWN, COUNT = dpf.queries.Histogram(SCHEMA["town"]), dpf.queries.Count()
ADD, REPLACE = "add-or-remove-one", "replace-one"


def block(name: str = "rounds", **caps: Any) -> Spend:
    kinds = dpf.kind("choose", TOWN, Exponential, times=2), dpf.kind("measure", TOWN, DiscreteLaplace, least="0.05")
    return dpf.spend(name, *kinds, **(caps or {"epsilon": "0.5"}))


@attrs.frozen
class Mining(dpf.Miner):
    """Do what a test says with a plan that it gives."""

    name = "mining-of-a-test"
    node: Node = attrs.field(eq=False)
    do: Callable[[dpf.PrivateTable], Any] = attrs.field(eq=False)

    def plan(self, schema: dpf.Schema) -> Node:
        return self.node

    def mine(self, table: dpf.PrivateTable) -> Any:
        return self.do(table)


def study_of(node: Node, do: Callable[[dpf.PrivateTable], Any] = lambda table: None, **options: Any) -> dpf.Study:
    study = dpf.Study(SCHEMA, **{"epsilon": 2, **options})
    study.add("m", Mining(node, do))
    return study


# --- requests ---------------------------------------------------------------------------------------------------------


def test_requests_are_made_until_the_cap_is_reached_exactly(opened: Callable[..., Any]) -> None:
    table, run = opened(block(), ROWS)
    spent = table.spend("rounds")
    for k in range(5):
        assert spent.spent == Amounts(epsilon=Fraction(k, 10))
        assert spent.release("measure", epsilon=0.1).shape == (3,)
    assert spent.left == Amounts(epsilon=0)
    assert not spent.fits("measure", epsilon="0.05")
    before = len(run.charges)
    with pytest.raises(dpf.ReleaseRefused, match=r"above its caps \(epsilon 0\.5\); epsilon 0\.0 is left"):
        spent.release("choose", epsilon="0.000001")
    assert len(run.charges) == before
    assert [charge.path for charge in run.charges] == ["rounds/measure (epsilon 1/10)"] * 5


def test_what_is_refused_is_never_asked_or_drawn(opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = opened(block(), ROWS)
    spent, seen = table.spend("rounds"), []
    draw, count = DiscreteLaplace.release_many, dpf.queries.Histogram.count
    monkeypatch.setattr(DiscreteLaplace, "release_many", lambda *given: (seen.append("drawn"), draw(*given))[1])
    monkeypatch.setattr(dpf.queries.Histogram, "count", lambda *given: (seen.append("asked"), count(*given))[1])
    spent.release("measure", epsilon="0.45")
    assert sorted(set(seen)) == ["asked", "drawn"]
    seen.clear()
    with pytest.raises(dpf.ReleaseRefused):
        spent.release("measure", epsilon="0.06")
    assert seen == []
    assert spent.release("measure", epsilon="0.05").shape == (3,)  # the refusal changed nothing


@pytest.mark.parametrize(
    ("kind", "given", "why"),
    [
        ("mode", {"epsilon": 1}, "has no kind 'mode'; did you mean 'measure'|has no kind 'mode'"),
        ("measure", {"epsilon": "0.04"}, "epsilon is 0.04; at most 0.5 and at least 0.05 is planned"),
        ("measure", {"epsilon": "0.6"}, "epsilon is 0.6; at most 0.5 and at least 0.05 is planned"),
        ("measure", {"rho": "0.1"}, "is given rho; it needs epsilon"),
        ("measure", {}, "is given nothing; it needs epsilon"),
        ("measure", {"epsilon": "0.1", "delta": "0.1"}, "is given epsilon, delta; it needs epsilon"),
    ],
)
def test_requests_outside_the_plan_are_refused(
    opened: Callable[..., Any], kind: str, given: dict[str, Any], why: str
) -> None:
    table, run = opened(block(), ROWS)
    spent = table.spend("rounds")
    with pytest.raises(dpf.ReleaseRefused, match=why):
        spent.release(kind, **given)
    assert (run.charges, spent.spent) == ([], Amounts(epsilon=0))


@pytest.mark.parametrize("epsilon", [0, -1, "nan", float("inf")])
def test_a_parameter_that_is_no_positive_number_is_refused(opened: Callable[..., Any], epsilon: Any) -> None:
    table, run = opened(block(), ROWS)
    with pytest.raises(dpf.InputError, match="epsilon"):
        table.spend("rounds").release("measure", epsilon=epsilon)
    assert run.charges == []


def test_a_kind_is_released_as_often_as_planned_and_nothing_after_the_end(opened: Callable[..., Any]) -> None:
    table, _ = opened(block(), ROWS)
    spent = table.spend("rounds")
    for _ in range(2):
        assert spent.release("choose", epsilon="0.1") in SCHEMA["town"].labels
    with pytest.raises(dpf.ReleaseRefused, match="was released 2 times, which is the most that the plan holds"):
        spent.release("choose", epsilon="0.1")
    spent.close()
    assert not spent.fits("measure", epsilon="0.1")
    with pytest.raises(dpf.ReleaseRefused, match="'rounds', which was closed"):
        spent.release("measure", epsilon="0.1")


def test_a_block_is_opened_once_and_its_kinds_are_no_steps(opened: Callable[..., Any]) -> None:
    table, run = opened(block(), ROWS)
    with pytest.raises(dpf.ReleaseRefused, match="step 'measure' is not in the plan"):
        table.release("measure")
    with pytest.raises(dpf.ReleaseRefused, match="block 'round' is not in the plan; did you mean 'rounds'"):
        table.spend("round")
    spent = table.spend("rounds")
    with pytest.raises(dpf.ReleaseRefused, match="block 'rounds' was made before"):
        table.spend("rounds")
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(dpf.InputError, match="a block cannot be pickled or copied"):
            copied(spent)
    assert repr(spent) == "SpendBlock(caps='epsilon 0.5', left='epsilon 0.5')"
    assert run.charges == []


def test_requests_of_many_threads_stay_within_the_cap(opened: Callable[..., Any]) -> None:
    table, run = opened(block(), ROWS, seed=None)
    spent = table.spend("rounds")

    def ask(_: int) -> bool:
        try:
            spent.release("measure", epsilon="0.05")
        except dpf.ReleaseRefused:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(40))) == 10
    assert len(run.charges) == 10


def test_several_requests_are_made_together(opened: Callable[..., Any]) -> None:
    alone, _ = opened(block(), ROWS)
    one = alone.spend("rounds")
    apart = [one.release("measure", epsilon="0.2"), one.release("choose", epsilon="0.1")]
    table, run = opened(block(), ROWS)
    spent = table.spend("rounds")
    asked = [("measure", {"epsilon": "0.2"}), ("choose", {"epsilon": "0.1"})]
    together = spent.release_many(asked)
    assert np.array_equal(together[0], apart[0])
    assert together[1] == apart[1]
    with pytest.raises(dpf.ReleaseRefused):
        spent.release_many([("measure", {"epsilon": "0.2"}), *asked])
    assert len(run.charges) == 3  # the one before the refusal was made
    assert spent.release_many([]) == []


def test_the_noise_of_a_request_is_that_of_a_step_with_its_parameter(
    opened: Callable[..., Any], plan_of: Callable[..., dpf.StudyPlan]
) -> None:
    for relation in (ADD, REPLACE):
        for around in (lambda node: node, lambda node: dpf.parallel(node, by=SCHEMA["ill"])):
            step = dpf.step("s", TOWN, DiscreteLaplace("0.2"))
            (planned,) = plan_of(around(step), SCHEMA, relation).index.steps
            table, _ = opened(around(block()), ROWS, relation)
            where = table if around(step) is step else table.partition("ill")[1]
            found = where.spend("rounds").calibration("measure", epsilon="0.2")
            assert (found.scale, found.losses) == (planned.calibration.scale, planned.calibration.losses)


# --- caps in a plan ---------------------------------------------------------------------------------------------------


def test_each_part_has_a_filter_of_its_own_and_a_row_that_moves_pays_in_two(opened: Callable[..., Any]) -> None:
    for relation in (ADD, REPLACE):
        table, run = opened(dpf.parallel(block(), by=SCHEMA["ill"]), ROWS, relation)
        assert run.plan.total().epsilon == Fraction(1, 2)
        for part in table.partition("ill"):
            spent = part.spend("rounds")
            for _ in range(5):
                spent.release("measure", epsilon="0.1")
            assert spent.left == Amounts(epsilon=0)
        assert run.spent.epsilon == Fraction(1, 2)
        losses = run.plan.index.nodes[1].calibration.losses
        assert losses.pure.add_or_remove_one == Fraction(1, 2 if relation == ADD else 4)


def test_the_losses_of_a_block_follow_from_its_caps() -> None:
    add, replace = dpf.Relation
    both = block(epsilon="0.6", rho="0.1", delta="0.01")
    found = both.losses(add, in_parts=True)
    assert (found.pure.add_or_remove_one, found.zcdp.add_or_remove_one) == (Fraction(3, 5), Fraction(1, 10))
    assert found.delta.add_or_remove_one == Fraction(1, 100)
    assert (found.pure.replace_one, found.delta.replace_one) == (None, None)
    assert block(epsilon="0.4", rho="0.1").losses(add, in_parts=False).zcdp.add_or_remove_one == Fraction(2, 25)
    moved = both.losses(replace, in_parts=True)
    assert [one.add_or_remove_one for one in (moved.pure, moved.zcdp, moved.delta)] == [
        Fraction(3, 10),
        Fraction(9, 200),
        Fraction(1, 200),
    ]
    assert [one.replace_one for one in (moved.pure, moved.zcdp, moved.delta)] == [
        Fraction(3, 5),
        Fraction(1, 10),
        Fraction(1, 100),
    ]
    assert both.losses(replace, in_parts=False).pure.add_or_remove_one is None


def test_a_block_is_totalled_in_every_notion(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    node = dpf.sequential(block(rho="0.02"), dpf.step("rows", COUNT, DiscreteLaplace("0.3")))
    plan = plan_of(node, SCHEMA, delta="1e-6")
    totals = {name: float(loss.epsilon) for name, loss in plan.totals().items()}
    assert set(totals) == {"zcdp", "rdp", "pld"}
    rho = dpf.step("s", TOWN, Gaussian("0.02"))
    as_steps = plan_of(dpf.sequential(rho, node.parts[1]), SCHEMA, delta="1e-6").totals()
    assert totals["zcdp"] == float(as_steps["zcdp"].epsilon)
    assert totals["pld"] > float(as_steps["pld"].epsilon)  # nothing is known of its distribution, but for the cap
    pure = plan_of(block(), SCHEMA, delta="1e-6").totals()
    assert pure["pure"].epsilon == Fraction(1, 2)
    assert pure["pld"].epsilon <= Fraction(501, 1000)


def test_a_block_nests_in_whatever_a_plan_has(opened: Callable[..., Any]) -> None:
    node = dpf.sequential(
        dpf.either(block("one"), block("two", epsilon="0.3")),
        dpf.repeat(2, block("again", epsilon="0.2")),
        dpf.sample("0.5", block("few", epsilon="0.4")),
        dpf.sequential(block("one", epsilon="0.1"), name="inner"),
    )
    table, run = opened(node, ROWS)
    assert float(run.plan.total().epsilon) == pytest.approx(0.5 + 0.4 + np.log1p(0.5 * np.expm1(0.4)) + 0.1)
    table.spend("two").release("measure", epsilon="0.3")
    with pytest.raises(dpf.ReleaseRefused, match="block 'one' is in a branch of the plan that was not taken"):
        table.spend("one")
    for _ in range(2):
        table.spend("again").release("choose", epsilon="0.2")
    with pytest.raises(dpf.ReleaseRefused, match="block 'again' was made before"):
        table.spend("again")
    table.sampled().spend("few").release("measure", epsilon="0.4")
    table.scope("inner").spend("one").release("choose", epsilon="0.1")
    paths = [charge.path.partition(" (")[0] for charge in run.charges]
    assert paths == ["two/measure", "again/choose", "again/choose", "sample/few/measure", "inner/one/choose"]


def test_units_of_several_rows_pay_as_units(opened: Callable[..., Any], plan_of: Callable[..., dpf.StudyPlan]) -> None:
    plan = plan_of(block(), SCHEMA, unit=dpf.PrivacyUnit("id", 3))
    assert plan.total().epsilon == Fraction(1, 2)
    (_, measure) = plan.index.steps
    assert measure.calibration.scale == 6  # three rows at a sixth of epsilon each


def test_the_odometer_never_tells_less_than_the_cap(opened: Callable[..., Any]) -> None:
    table, run = opened(dpf.sequential(block(), dpf.step("rows", COUNT, DiscreteLaplace("0.3"))), ROWS)
    spent = table.spend("rounds")
    assert run.spent.epsilon == 0
    spent.release("measure", epsilon="0.05")
    assert spent.spent == Amounts(epsilon="0.05")
    assert run.spent.epsilon == Fraction(1, 2)


def test_a_cap_on_delta_is_counted(opened: Callable[..., Any], plan_of: Callable[..., dpf.StudyPlan]) -> None:
    keys = dpf.spend("keys", dpf.kind("towns", TOWN, PartitionSelection), epsilon=1, delta="0.001")
    plan = plan_of(keys, SCHEMA, delta="0.001")
    assert plan.total() == dpf.PrivacyLoss(1, delta="0.001")
    assert plan_of(keys, SCHEMA, delta="0.0009").totals() == {}

    def mine(table: dpf.PrivateTable) -> None:
        spent = table.spend("keys")
        spent.release("towns", epsilon="0.5", delta="0.0006")
        with pytest.raises(dpf.ReleaseRefused, match=r"epsilon 0\.5, delta 0\.0004 is left"):
            spent.release("towns", epsilon="0.5", delta="0.0005")
        spent.release("towns", epsilon="0.5", delta="0.0004")
        assert spent.left == Amounts(epsilon=0)

    results = study_of(keys, mine, delta="0.001").run(ROWS)
    assert results.spent == dpf.PrivacyLoss(1, delta="0.001")


# --- what cannot be planned -------------------------------------------------------------------------------------------


@attrs.frozen
class Fixed(dpf.mechanisms.Mechanism):
    """A mechanism whose loss nobody chooses."""

    name = "fixed"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: dpf.spend("b", epsilon=1), "needs at least one kind"),
        (lambda: dpf.spend("b", dpf.kind("n", COUNT, Laplace)), "has no cap; give epsilon or rho"),
        (lambda: dpf.spend("b", dpf.kind("n", COUNT, Laplace), epsilon=0), "epsilon is 0; write a number above 0"),
        (lambda: dpf.spend("b", dpf.kind("n", COUNT, Laplace), epsilon=1, delta=1), "it must be below 1"),
        (lambda: dpf.spend("b", dpf.step("n", COUNT, Laplace(1)), epsilon=1), "which dpf.kind describes"),
        (lambda: dpf.spend("b/c", dpf.kind("n", COUNT, Laplace), epsilon=1), "cannot be used in a plan"),
        (lambda: dpf.spend("b", dpf.kind("n", COUNT, Gaussian), epsilon=1), "which the block does not cap; give the"),
        (lambda: dpf.spend("b", dpf.kind("n", TOWN, PartitionSelection), epsilon=1), "caps at 0; give the block"),
        (lambda: dpf.spend("b", dpf.kind("n", COUNT, Laplace, least=2), epsilon=1), "the caps allow at most 1.0"),
        (lambda: dpf.spend("b", dpf.kind("n", COUNT, Laplace, size=2), epsilon=1), "laplace takes the parameters"),
        (lambda: dpf.kind("n", COUNT, Laplace(1)), "is not a class of mechanisms"),
        (lambda: dpf.kind("n", "count", Laplace), "is not a query"),
        (lambda: dpf.spend("b", dpf.kind("n", COUNT, Fixed), epsilon=1), "'fixed' has no epsilon or rho that could be"),
        (lambda: dpf.kind("n", COUNT, Laplace, times=0), "times is 0; a whole number from 1 is needed"),
        (lambda: dpf.kind("n", COUNT, Laplace, least=2, most=1), "least is 2.0, which is above most = 1.0"),
    ],
)
def test_a_block_that_cannot_be_planned_is_refused_in_a_sentence(make: Callable[[], Any], why: str) -> None:
    with pytest.raises(dpf.InputError, match=why):
        make()


def test_checks_refuse_a_block_without_a_claim(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    both = dpf.spend("b", dpf.kind("n", COUNT, Gaussian), epsilon=1, rho="0.1")
    plan = plan_of(both, SCHEMA, delta="1e-6", epsilon=4)
    assert plan.totals() == {}
    assert "has no claim in epsilon, which block 'b' caps" in " ".join(map(str, plan.refusals()))
    rho = plan_of(block(rho="0.1"), SCHEMA)
    assert "block 'rounds' has no cap on epsilon; set delta > 0" in " ".join(map(str, rho.refusals()))
    twice = plan_of(dpf.sequential(block(), block()), SCHEMA)
    assert "holds 2 parts named 'rounds'" in " ".join(map(str, twice.refusals()))
    assert plan_of(block(), SCHEMA).refusals() == []


def test_a_block_needs_a_miner() -> None:
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add_plan("p", block())
    with pytest.raises(dpf.InputError, match="something must ask for the releases of block 'rounds'"):
        study.run(ROWS)


# --- written, read, shown ---------------------------------------------------------------------------------------------


def test_a_block_is_written_and_read(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    node = dpf.parallel(block(epsilon="0.5", rho="0.1", delta="0.01"), by=SCHEMA["ill"])
    for relation in (ADD, REPLACE):
        plan = plan_of(node, SCHEMA, relation, delta="0.1")
        again = dpf.StudyPlan.from_json(plan.to_json())
        assert again.hash == plan.hash
        assert again.totals() == plan.totals()
    for other in ({"epsilon": "0.6"}, {"epsilon": "0.5", "rho": "0.2"}, {"epsilon": "0.5", "delta": "0.001"}):
        assert plan_of(block(**other), SCHEMA).hash != plan_of(block(), SCHEMA).hash
    often = dpf.spend("rounds", *(dpf.kind("n", COUNT, Laplace, times=times) for times in (1,)), epsilon=1)
    seldom = dpf.spend("rounds", *(dpf.kind("n", COUNT, Laplace, times=times) for times in (2,)), epsilon=1)
    assert plan_of(often, SCHEMA).hash != plan_of(seldom, SCHEMA).hash


@pytest.mark.parametrize(
    ("old", "new"),
    [('"times": 2', '"times": 0'), ('"epsilon": "1/2",', ""), ('"kind": "spend"', '"kind": "spent"')],
)
def test_a_block_that_was_changed_in_its_file_is_refused(
    plan_of: Callable[..., dpf.StudyPlan], old: str, new: str
) -> None:
    text = plan_of(block(), SCHEMA).to_json()
    assert old in text
    with pytest.raises(dpf.InputError):
        dpf.StudyPlan.from_json(text.replace(old, new, 1))


def test_a_block_is_drawn_explained_and_compared(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    plan = plan_of(block(), SCHEMA, epsilon=1)
    lines = tree(plan).splitlines()
    assert lines[0] == "rounds: a block of at most epsilon 0.5  [epsilon 0.5]"
    assert lines[1] == "├─ choose: histogram of town, exponential  [each at most epsilon 0.5]"
    page, text = html_report(plan), markdown_report(plan)
    for shown in (page, text):
        assert "Spend blocks" in shown
        assert "choose, at most 2 times, each of epsilon at most 0.5" in shown
        assert "measure, any number of times, each of epsilon at least 0.05 and at most 0.5" in shown
        assert "at its largest, epsilon 0.5" in shown
    nodes = plan.graph().nodes
    assert [nodes[k]["path"] for k in nodes] == ["rounds", "rounds/choose", "rounds/measure"]
    found = str(difference(plan, plan_of(block(epsilon="0.7"), SCHEMA)).changes)
    assert "caps from epsilon 0.5 to epsilon 0.7" in found
    assert "Spend blocks" not in markdown_report(plan_of(dpf.step("n", COUNT, Laplace(1)), SCHEMA))


def test_a_report_says_what_was_asked_for(tmp_path: Path) -> None:
    def mine(table: dpf.PrivateTable) -> float:
        for part in table.partition("ill"):
            spent = part.spend("rounds")
            spent.release("measure", epsilon="0.1")
            spent.release("choose", epsilon="0.25")
        return 1.0

    results = study_of(dpf.parallel(block(), by=SCHEMA["ill"]), mine).run(ROWS, seed=1)
    assert "2 releases, epsilon 0.35, the largest of 2 parts" in markdown_report(results.plan, results)
    results.save(tmp_path / "out")
    again = dpf.Results.load(tmp_path / "out")
    assert [charge.path for charge in again.charges] == [charge.path for charge in results.charges]
    assert [charge.calibration.scale for charge in again.charges] == [c.calibration.scale for c in results.charges]
    assert again.charges[0].path == "m/parts 1/rounds/measure (epsilon 1/10)"


def test_error_bounds_of_requests_are_not_known_before_a_run(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    ((_, bounds),) = study_of(block()).plan().error_bounds().items()
    assert {bound.note for bound in bounds} == {"depends on what the miner asks for during the run"}


# --- resumed ----------------------------------------------------------------------------------------------------------


def asking(*epsilons: str, stop: bool = False) -> Callable[[dpf.PrivateTable], Any]:
    def mine(table: dpf.PrivateTable) -> list[Any]:
        spent = table.spend("rounds")
        made = [spent.release("measure", epsilon=epsilon).tolist() for epsilon in epsilons]
        if stop:
            raise KeyboardInterrupt
        return made

    return mine


def test_a_resumed_run_asks_for_the_same_and_goes_on(ledger: dpf.Ledger, tmp_path: Path) -> None:
    journal = tmp_path / "run.journal"
    ledger.approve("people", study_of(block()).plan(), by="b")
    with pytest.raises(dpf.RunStopped):
        study_of(block(), asking("0.1", "0.2", stop=True)).run(ROWS, ledger=ledger.run("people", journal=journal))
    for other in (asking("0.1", "0.15"), asking("0.2", "0.1"), asking("0.1", "0.200001")):
        with pytest.raises(dpf.ReleaseRefused, match="made another release here before it was resumed"):
            study_of(block(), other).run(ROWS, ledger=ledger.run("people", journal=journal))
    results = study_of(block(), asking("0.1", "0.2", "0.2")).run(ROWS, ledger=ledger.run("people", journal=journal))
    assert len(results["m"]) == 3
    assert results.spent.epsilon == Fraction(1, 2)
    (run,) = ledger.data_set("people").runs.values()
    assert run.charges == [f"m/rounds/measure (epsilon {epsilon})" for epsilon in ("1/10", "1/5", "1/5")]
    ledger.verify()
