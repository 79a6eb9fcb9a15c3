"""The standing of claims: proved by records of proofs, tested by records of verification, else declared."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import pytest

import dpframework as dpf
from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import Relation
from dpframework.formulas import Proof, ScoreClaims, Verdict, query_problem
from dpframework.formulas.smt_goal_ground_test import bound_of, neighbours
from dpframework.formulas.stored_verdicts import rules_digest
from dpframework.plan import VerificationRecords
from dpframework.plan.claim_standing import Standing, covers, standings
from dpframework.plan.plan import Plan
from dpframework.plan.verification_records_file import ProvedClaim, VerifiedCode, claim_digest
from dpframework.queries import CellCounts, Histogram, Marginals, Norm, Sensitivity, Supports
from dpframework.redescriptions import MatchScores
from dpframework.study.plugin_registry import registry
from dpframework.verify.miners.audit_subject import Subject

SCHEMA = dpf.Schema([dpf.Boolean("ill", view="left"), dpf.Boolean("old", view="right")], max_rows=100)
MATCH = MatchScores([SCHEMA["ill"]], [SCHEMA["old"]])


def recorded(*formulas: ScoreClaims, rules: str | None = None) -> VerificationRecords:
    """Return records that say that all claims of formulas are proved."""
    digest = rules_digest() if rules is None else rules
    return VerificationRecords(
        proofs=tuple(
            ProvedClaim(claim_digest(one.shape, claim), one.shape.text, claim.text, "0" * 64, {"z3": "1"}, digest)
            for one in formulas
            for claim in one.claims
        )
    )


def standing(plan: dpf.StudyPlan, verified: VerificationRecords | None) -> Standing:
    (found,) = standings(plan, verified)
    return found.standing


@pytest.mark.parametrize(
    ("query", "mechanism"),
    [
        (Histogram(SCHEMA["ill"]), dpf.mechanisms.DiscreteLaplace(1)),
        (Histogram(SCHEMA["ill"]), dpf.mechanisms.Gaussian("0.1")),
        (Marginals([SCHEMA["ill"], SCHEMA["old"]]), dpf.mechanisms.DiscreteLaplace(1)),
        (Supports([dpf.Equals("ill", "true")]), dpf.mechanisms.PermuteAndFlip(1)),
        (MATCH, dpf.mechanisms.PermuteAndFlip(1)),
    ],
    ids=["histogram", "squared norm", "marginals", "supports", "matches"],
)
def test_a_step_is_proved_if_all_its_claims_are_by_the_rules_as_they_are(
    query: Any, mechanism: Any, plan_of: Callable[..., dpf.StudyPlan]
) -> None:
    plan = plan_of(dpf.step("one", query, mechanism), SCHEMA)
    formulas = query.scored_formulas
    assert standing(plan, recorded(*formulas)) is Standing.PROVED
    assert standing(plan, None) is Standing.DECLARED
    assert standing(plan, recorded(*formulas, rules="1" * 64)) is Standing.DECLARED
    whole = recorded(*formulas)
    for k in range(len(whole.proofs)):
        one_less = attrs.evolve(whole, proofs=whole.proofs[:k] + whole.proofs[k + 1 :])
        assert standing(plan, one_less) is Standing.DECLARED


@attrs.frozen
class Bold(CellCounts):
    """Counts that declare less than their formula's claims."""

    name = "bold"
    answer_length = 2

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        return (Sensitivity(Norm.L1, "0.9", 2, fall=0, source="a mistake"),)

    def count(self, block: Any, **inputs: Any) -> Any:
        return block.codes("ill")


def test_a_query_that_declares_less_than_is_proved_is_not_proved(plan_of: Callable[..., dpf.StudyPlan]) -> None:
    bold = Bold()
    plan = plan_of(dpf.step("one", bold, dpf.mechanisms.DiscreteLaplace(1)), SCHEMA)
    assert bold.scored_formulas
    assert standing(plan, recorded(*bold.scored_formulas)) is Standing.DECLARED


@pytest.mark.parametrize(
    ("query", "norm"),
    [
        (MATCH, Norm.LINF),
        (Histogram(SCHEMA["ill"]), Norm.L1),
        (Marginals([SCHEMA["ill"], SCHEMA["old"]]), Norm.L1),
        (Marginals([SCHEMA["ill"], SCHEMA["old"]]), Norm.SQUARED_L2),
        (Marginals([SCHEMA["ill"], SCHEMA["old"]]), Norm.HISTOGRAMS),
        (Supports([dpf.Equals("ill", "true"), dpf.Equals("old", "true")]), Norm.L1),
        (Supports([dpf.Equals("ill", "true")]), Norm.LINF),
    ],
)
def test_no_change_that_is_declared_may_be_below_a_claim(query: Any, norm: Norm) -> None:
    """Of several supports or histograms, the claim is about one, and what is declared is about all."""
    facts = query.facts()
    declared, scored = facts.sensitivity(norm), facts.formulas[0]
    added, replaced, rise = declared.add_or_remove_one, declared.change.replace_one, declared.rise
    for share, covered in ((1, True), (Fraction("0.99"), False)):
        fewer = Sensitivity(norm, added, share * replaced, rise=rise, fall=declared.fall, source="")
        assert covers(facts, fewer, scored, 100, exact=False) is covered
        fall = min(declared.fall, share * added)
        fewer = Sensitivity(norm, share * added, replaced, rise=share * rise, fall=fall, source="")
        assert covers(facts, fewer, scored, 100, exact=False) is covered


def test_no_claim_covers_blocks_of_numbers() -> None:
    facts = Marginals([SCHEMA["ill"], SCHEMA["old"]]).facts()
    blocks = Sensitivity(Norm.BLOCKS, 1, 2, source="")
    assert not covers(facts, blocks, facts.formulas[0], 100, exact=False)


def test_a_match_may_not_fall_further_than_is_declared_nor_rise() -> None:
    facts = MATCH.facts()
    declared = facts.sensitivity(Norm.LINF)
    assert declared is not None
    for changed in ({"rise": "0.49"}, {"fall": "0.49"}):
        fewer = attrs.evolve(declared, **changed)
        assert not covers(facts, fewer, facts.formulas[0], 100, exact=False)
    only_replaced = Sensitivity(Norm.LINF, None, 1, source="")
    assert covers(facts, only_replaced, facts.formulas[0], 100, exact=True)
    assert not covers(facts, attrs.evolve(only_replaced, replace_one="0.99"), facts.formulas[0], 100, exact=True)


@pytest.fixture(scope="module")
def plans() -> list[Plan]:
    """Return the plans of all examples of all built-in miners."""
    examples = [one for brought in registry().miners.values() for one in brought.component.examples().values()]
    return [Subject(one.miner, one.schema, relation).plan for one in examples for relation in dpf.Relation]


def test_no_step_of_any_example_declares_less_than_its_formulas_claim(plans: list[Plan]) -> None:
    """But for entropies, whose claims are of a public number of rows."""
    found: dict[str, set[bool]] = {}
    for plan in plans:
        for step in plan.steps():
            declared = step.facts.sensitivity(step.mechanism.norm)
            for scored in step.facts.formulas if declared is not None else ():
                assert declared is not None
                covered = covers(step.facts, declared, scored, plan.facts.row_bound, exact=plan.facts.rows is not None)
                found.setdefault(type(step.query).__name__, set()).add(covered)
    assert found.pop("Entropies") == {False}
    assert len(found) > 20
    assert {name for name, covered in found.items() if covered != {True}} == set()


def test_every_formula_is_what_its_query_computes_and_its_claims_hold(plans: list[Plan]) -> None:
    steps = [step for plan in plans for step in plan.steps()]
    found = {(scored.name, scored.shape.text): scored for step in steps for scored in step.query.scored_formulas}
    scores = [one for one in found.values() if one.scorer is not None]
    assert len(scores) > 20
    for scored in scores:
        assert query_problem(scored) is None, scored
        for claim in scored.claims:
            for pair in neighbours(scored.shape, claim, 40):
                assert float(pair.high - pair.low) <= bound_of(claim, pair.numbers) * (1 + 1e-9), (scored, claim)


def test_a_plan_that_was_read_has_the_standing_of_the_one_that_was_written(
    plan_of: Callable[..., dpf.StudyPlan],
) -> None:
    plan = plan_of(dpf.step("one", MATCH, dpf.mechanisms.PermuteAndFlip(1)), SCHEMA)
    again = dpf.StudyPlan.from_json(plan.to_json())
    assert next(again.steps()).facts.formulas == next(plan.steps()).facts.formulas
    assert standing(again, recorded(*MATCH.scored_formulas)) is Standing.PROVED
    changed = plan.to_json().replace("rise <= 1/2", "rise <= 1/4")
    with pytest.raises(InputError, match="differs from its text"):
        dpf.StudyPlan.from_json(changed)


def test_a_step_is_tested_if_its_miner_was(tmp_path: Path) -> None:
    study = dpf.Study(SCHEMA, epsilon=1)
    study.add("tree", dpf.miner("dp-id3", target="ill", max_depth=1, epsilon=1))
    plan = study.plan()
    (component,) = (one for one in plan.code["components"] if one["kind"] == "miner")
    record = VerifiedCode(
        component, tuple(plan.code["packages"]), Relation.ADD_OR_REMOVE_ONE, "dp-id3", ("default",), True, 0.97
    )
    found = list(standings(plan, VerificationRecords((record,))))
    assert {one.text for one in found} == {"tested: the search reached 97 % of the claim"}
    for worse in [attrs.evolve(record, passed=False), *(attrs.evolve(record, tightness=none) for none in (None, 0.0))]:
        assert {one.standing for one in standings(plan, VerificationRecords((worse,)))} == {Standing.DECLARED}


def test_only_what_is_proved_is_recorded_and_records_are_read_again(tmp_path: Path) -> None:
    (one,) = Histogram(SCHEMA["ill"]).scored_formulas
    claim = one.claims[0]
    assert ProvedClaim.of(one, Proof(claim, Verdict.UNPROVED)) is None
    whole, path = recorded(one), tmp_path / "verified.json"
    whole.record(path, (), whole.proofs[:1])
    read = VerificationRecords.load(path)
    assert {proof.claimed for proof in read.proofs} == {proof.claimed for proof in whole.proofs}
    assert read.proves(one.shape, claim) is not None
