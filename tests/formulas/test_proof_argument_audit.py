"""The audit of certificates: true ones stand, and each spoil of one is seen, by whom it should be."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import pytest
from proving import needs_solvers
from scored_formulas import (
    ASSOCIATION,
    DERIVED,
    FLOORED,
    GAIN,
    GINI,
    JACCARD,
    JACCARD_FLOOR,
    KOLMOGOROV_SMIRNOV,
    MAX,
    NORM,
    SURPLUS,
)

from dpframework.facts.errors import InputError
from dpframework.formulas import (
    Adds,
    Argument,
    Claim,
    Outer,
    Parts,
    Rule,
    ScoreClaims,
    Shape,
    Total,
    audit,
    cells,
    largest_over_classes,
    n,
    prove,
    public,
    rows,
    rows_of_part,
    sum_over_classes,
    table_rows,
)
from dpframework.formulas.formula_and_claim_json import read_score_claims, read_shape, score_claims_form
from dpframework.formulas.proof_certificates_and_audit import Certificate, audit_certificate
from dpframework.formulas.score_structures import Cells
from dpframework.formulas.smt_goals_for_cell_scores import cell_goals
from dpframework.formulas.smt_goals_for_part_scores import induction_goals, part_goals

pytestmark = needs_solvers

gain, none = cells("gain", "none")
x = public("x", 0, 1)
HALF_GAIN = Outer((Total(gain, 1, 1, 1), Total(none, 1, 0, 1)), (gain - none) / 2)
PRODUCT = Outer((Total(gain, 1, 0, 1), Total(none, 1, 0, 1)), gain * none / table_rows)
PAIR = Adds((x, 1 - x))


@functools.cache
def proved(shape: Shape, claim: Claim) -> Argument:
    (proof,) = prove(shape, [claim])
    assert proof.argument is not None
    assert proof.verdict == "proved", proof.problem
    return proof.argument


TRUE: dict[str, tuple[Shape, Claim]] = {
    "gini falls": (GINI, Claim("fall", 1 - 2 / rows)),
    "gini is replaced": (GINI, Claim("replaced", 2 - 2 / rows)),
    "gain": (GAIN, Claim("fall", DERIVED["information gain"][1][1])),  # type: ignore[arg-type]
    "norm": (NORM, Claim("rise", 1)),
    "max": (MAX, Claim("rise", 1)),
    "jaccard": (JACCARD, Claim("replaced", 1)),
    "jaccard with a floor": (JACCARD_FLOOR, Claim("replaced", Fraction(1, 50))),
    "kolmogorov-smirnov": (KOLMOGOROV_SMIRNOV, Claim("replaced", 1)),
    "jaccard, two rows": (JACCARD, Claim("fall", Fraction(2, 3), group=2)),
    "surplus": (SURPLUS, Claim("rise", 1)),
    "half a gain": (HALF_GAIN, Claim("replaced", Fraction(3, 2))),
    "a product": (PRODUCT, Claim("rise", 3)),
    "two shares": (PAIR, Claim("l1", 2, replaced=True)),
}


@pytest.mark.parametrize("name", TRUE)
def test_a_true_argument_stands_after_it_was_written_and_read(name: str) -> None:
    argument = proved(*TRUE[name])
    again = Argument.from_dict(json.loads(json.dumps(argument.to_dict())))
    assert again == argument
    assert list(audit(again)) == []


def replaced(old: str, new: str) -> Callable[[Argument], Argument]:
    """Return a spoil that puts another text into all goals; it must be there."""

    def spoil(argument: Argument) -> Argument:
        goals = tuple(goal.replace(old, new) for goal in argument.goals)
        assert goals != argument.goals
        return attrs.evolve(argument, goals=goals)

    return spoil


def without(text: str) -> Callable[[Argument], Argument]:
    """Return a spoil that leaves out the goals with a text; there must be some."""

    def spoil(argument: Argument) -> Argument:
        goals = tuple(goal for goal in argument.goals if text not in goal)
        assert len(goals) < len(argument.goals)
        return attrs.evolve(argument, goals=goals)

    return spoil


def with_facts(facts: tuple[str, ...], inductions: bool) -> Callable[[Argument], Argument]:
    """Return a spoil whose goals assume other facts, with the inductions that the rules write for them or without."""

    def spoil(argument: Argument) -> Argument:
        assert isinstance(argument.shape, Parts)
        (aggregate,) = argument.shape.body.leaves("sum", "largest")  # type: ignore[arg-type]
        goals = tuple(part_goals(argument.shape, argument.claim, {aggregate: facts}, False))
        (some, *_) = proved(GINI, Claim("rise", 1)).facts
        made = [
            attrs.evolve(some, aggregate=aggregate, text=fact, goals=tuple(induction_goals(aggregate, fact, facts[:k])))
            for k, fact in enumerate(facts)
        ]
        return attrs.evolve(argument, goals=goals, facts=tuple(made) if inductions else ())

    return spoil


def induced(old: str, new: str) -> Callable[[Argument], Argument]:
    """Return a spoil that puts another text into the steps of all inductions; it must be in one."""

    def spoil(argument: Argument) -> Argument:
        facts = tuple(
            attrs.evolve(fact, goals=(fact.goals[0], fact.goals[1].replace(old, new))) for fact in argument.facts
        )
        assert facts != argument.facts
        return attrs.evolve(argument, facts=facts)

    return spoil


def of_the_sum(argument: Argument) -> Argument:
    """Use facts of a sum, with their true inductions, for the largest."""
    others = proved(GINI, Claim("rise", 1))
    (aggregate,) = argument.shape.body.leaves("largest")  # type: ignore[union-attr,arg-type]
    facts = tuple(attrs.evolve(fact, aggregate=aggregate) for fact in others.facts)
    goals = tuple(part_goals(argument.shape, argument.claim, {aggregate: [one.text for one in facts]}, False))  # type: ignore[arg-type]
    return attrs.evolve(argument, goals=goals, facts=facts)


def of_shape(shape: Shape) -> Callable[[Argument], Argument]:
    return lambda argument: attrs.evolve(argument, shape=shape)


def of_claim(claim: Claim) -> Callable[[Argument], Argument]:
    return lambda argument: attrs.evolve(argument, claim=claim)


FALL = (GINI, Claim("fall", 1 - 2 / rows))
SQUARE = Parts(largest_over_classes(n**2) / rows_of_part)
INDEX = (JACCARD, Claim("fall", Fraction(1, 2)))

#: An argument, how it is spoilt, and what the audit says.
SPOILS: dict[str, tuple[tuple[Shape, Claim], Callable[[Argument], Argument], str]] = {
    "rest forgotten": (FALL, replaced("(+ s0 ", "(+ 0.0 "), "a goal says"),
    "a false fact": (FALL, with_facts(("(= {s} {rest})",), True), "no goal describes"),
    "a fact without induction": (FALL, with_facts(("(>= {s} {rest})",), False), "no induction proves"),
    "a fact true of small tables": (FALL, with_facts(("(<= {s} 1e30)".replace("1e30", "1" + 30 * "0" + ".0"),), False),
                                    "no induction proves"),
    "facts of a sum used for the largest": ((SQUARE, Claim("rise", 3)), of_the_sum, "the induction of"),
    "an induction that ends where it began": (FALL, induced("(+ rest x)", "rest"), "the induction of"),
    "an induction by a smaller step": (FALL, induced("(+ s (* x x))", "s"), "the induction of"),
    "another formula": (FALL, replaced("(* c c)", "(* c c c)"), "a goal says"),
    "another formula's argument": (FALL, of_shape(Parts(sum_over_classes(n**3) / rows_of_part)), "a goal"),
    "a lost case": (FALL, without("(= (+ c rest) 0.0)"), "no goal describes"),
    "a lost sign": (FALL, without("(assert (< "), "never negative"),
    "a sign the other way round": (FALL, replaced("(assert (< ", "(assert (> "), "never negative"),
    "a sign of what is not said": (FALL, replaced("(assert (< ", "(assert (<= "), "never negative"),
    "a sign of other tables": (FALL, lambda one: attrs.evolve(one, goals=(*one.goals[:-1], one.goals[-1].replace(
        "; the claim", "(assert (= c 5.0))\n; the claim"))), "never negative"),
    "a smaller claim": (FALL, of_claim(Claim("fall", 1 - 3 / rows)), "has the bound"),
    "another change": (FALL, of_claim(Claim("rise", 1 - 2 / rows)), "a goal says"),
    "several rows": (FALL, of_claim(Claim("fall", 1 - 2 / rows, group=2)), "covers one row"),
    "rows bound from above only": (FALL, replaced("(<= (+ (+ c rest)", "(= (+ (+ c rest)"), "no goal"),
    "no row added": (FALL, replaced("(+ c 1.0)", "c"), "a goal"),
    "nothing fits": (FALL, replaced("(assert (>= c 0.0))", "(assert (< c 0.0))"), "no goal describes"),
    "a contradiction behind the claim": (FALL, replaced("(check", "(assert (< c c))\n(check"), "other commands"),
    "another claim denied": (FALL, replaced("(> (* bound.den", "(> (* 0.0 bound.den"), "does not deny"),
    "two answers": (FALL, replaced("(check-sat)", "(check-sat)\n(check-sat)"), "other commands"),
    "quoted text": (FALL, replaced("rows", "|rows|"), "quoted text"),
    "a wrong logarithm": (TRUE["gain"], replaced("(f (+ c 1))", "(f (+ c 2))"), "no goal describes|a goal says"),
    "a wrong root": (TRUE["norm"], replaced("(* (* c c) c)", "(* c c)"), "a goal says"),
    "a root's lost sign": (TRUE["norm"], without("(assert (< "), "never negative, and a root is taken of it"),
    "a root's sign turned": (TRUE["norm"], replaced("(assert (< ", "(assert (> "), "never negative"),
    "a root of another sign": (TRUE["norm"], replaced("(assert (< (+ s0 ", "(assert (< (- s0 "), "never negative"),
    "a cell exchanged": (INDEX, replaced("(+ a 1.0)", "(+ b 1.0)"), "a goal says"),
    "a lost cell": (INDEX, without("(+ a 1.0)"), "no goal says that the denominator|no goal describes|a goal says"),
    "no argument at all": (INDEX, lambda one: attrs.evolve(one, goals=()), "no goal describes"),
    "a range's lost case": (TRUE["kolmogorov-smirnov"], without("(= (+ a b) 0.0)"), "no goal says that the score"),
    "a range's lost end": (TRUE["kolmogorov-smirnov"], without("define-fun high.num () Real 0.0)"), "is at least 0"),
    "a smaller range": (TRUE["kolmogorov-smirnov"], of_claim(Claim("replaced", Fraction(1, 2))), "is at most 0.5"),
    "a range of another score": (TRUE["kolmogorov-smirnov"], replaced("(+ c d)", "(+ c c)"), "no goal says"),
    "a range's lost sign": (TRUE["kolmogorov-smirnov"], without("(assert (< "), "never negative"),
    "half of an extreme": (TRUE["surplus"], lambda one: attrs.evolve(one, parts=one.parts[:1]), "does not rest on"),
    "a replacement of cells": (TRUE["gini is replaced"], lambda one: attrs.evolve(
        one, shape=JACCARD, parts=[attrs.evolve(part, shape=JACCARD) for part in one.parts]),
                               "must rest on a rise and a fall"),
    "a fall taken for a rise": (TRUE["gini is replaced"], lambda one: attrs.evolve(one, parts=one.parts[:1] * 2),
                                "must rest on a rise and a fall"),
    "several rows that are replaced": (TRUE["gini is replaced"], of_claim(Claim("replaced", 2 - 2 / rows, group=2)),
                                       "covers one row"),
    "a replacement for a fall": (TRUE["gini is replaced"], of_claim(Claim("fall", 2 - 2 / rows)), "covers one row"),
    "two goals of a replacement": (TRUE["gini is replaced"], lambda one: attrs.evolve(one, goals=one.goals * 2),
                                   "covers one row"),
    "a replacement of another bound": (TRUE["gini is replaced"], of_claim(Claim("replaced", 1)), "does not compare"),
    "a lost vertex": (TRUE["a product"], lambda one: attrs.evolve(one, goals=one.goals[:-8]), "a goal says|no goal"),
    "another total": (TRUE["a product"], of_claim(Claim("fall", 3)), "a goal says|no goal"),
    "a vertex that need not be largest": (TRUE["a product"], lambda one: attrs.evolve(one, shape=Outer(
        PRODUCT.totals, gain * gain / table_rows)), "degree 1"),
    "a norm of one entry": (TRUE["two shares"], replaced("(- (+ 1.0 ", "(- (+ 0.5 "), "a goal says"),
    "a rule of other scores": (TRUE["two shares"], lambda one: attrs.evolve(one, rule="one part"), "other scores"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILS)
def test_a_spoilt_argument_is_seen(name: str) -> None:
    import re

    what, spoil, says = SPOILS[name]
    told = " | ".join(audit(spoil(proved(*what))))
    assert re.search(says, told), told


def test_goals_about_the_score_are_not_enough_if_solvers_do_not_prove_them() -> None:
    """The texts are honest, and the claim is wrong."""
    claim = Claim("fall", 1 - Fraction(9, 4) / rows)
    aggregate = GINI.body.leaves("sum")[0]  # type: ignore[arg-type]
    true = proved(*FALL)
    facts = {aggregate: [fact.text for fact in true.facts]}
    honest = attrs.evolve(true, claim=claim, goals=tuple(part_goals(GINI, claim, facts, False)))
    told = list(audit(honest))
    assert any(one.startswith("z3 does not prove") for one in told)
    assert any(one.startswith("cvc5 does not prove") for one in told)
    index = Argument(JACCARD, Claim("fall", Fraction(1, 3)), Rule.ONE_CELL, ())
    index = attrs.evolve(index, goals=tuple(cell_goals(JACCARD, index.claim, False)))
    assert any("does not prove" in one for one in audit(index))


def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Certificate, list[ScoreClaims]]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    scored = [
        ScoreClaims("max", MAX, (Claim("rise", 1), Claim("fall", 0)), lambda counts, _: counts.max(axis=1).sum()),
        ScoreClaims("index", JACCARD, (Claim("fall", Fraction(1, 4)),)),
    ]
    return Certificate.of("1" * 64, scored), scored


def test_a_certificate_says_what_is_proved_and_what_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, scored = certificate(tmp_path, monkeypatch)
    read = Certificate.from_json(written.to_json())
    assert read == written
    assert [one.claim.text for _, one in read.proofs] == ["rise <= 1", "fall <= 0"]
    assert len(read.unproved) == 1
    assert len(read.trusted) == 2
    found = list(audit_certificate(read, "1" * 64, scored))
    assert [(one.text, one.proved, one.problems) for one in found] == [
        ("rise <= 1", True, ()),
        ("fall <= 0", True, ()),
        ("fall <= 1/4", False, ()),
    ]
    another = [attrs.evolve(scored[0], scorer=lambda counts, _: counts.sum()), scored[1]]
    (problem,) = next(iter(audit_certificate(read, "1" * 64, another))).problems
    assert problem.startswith("the query's scores of")
    (*_, extra) = audit_certificate(read, "1" * 64, scored[1:])
    assert extra.problems == ("no step of the plan makes this claim about this formula",)
    with pytest.raises(InputError, match="is of plan 111111111111, not of 222"):
        list(audit_certificate(read, "2" * 64, scored))


def test_a_certificate_that_was_changed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, _ = certificate(tmp_path, monkeypatch)
    text = written.to_json()
    for old, new, says in (
        ('"rise <= 1"', '"rise <= 2"', "does not fit its SHA-256"),
        ('"certificate_version": 1', '"certificate_version": 2', "has version 2"),
        ('"sha256"', '"sha"', "no certificate"),
        (text, "[]", "no certificate"),
        (text, "{", "is"),
    ):
        assert old in text
        with pytest.raises(InputError, match=says):
            Certificate.from_json(text.replace(old, new))


@pytest.mark.parametrize("name", TRUE)
def test_shapes_and_claims_are_read_as_they_were_written(name: str) -> None:
    shape, claim = TRUE[name]
    scored = ScoreClaims(name, shape, (claim,))
    form = json.loads(json.dumps(score_claims_form(scored)))
    assert read_score_claims(form) == scored
    with pytest.raises(InputError, match="differs from its text"):
        read_score_claims({**form, "text": "n"})


@pytest.mark.parametrize(
    "form",
    [
        ["parts", ["+", None, [["class", None, []]]]],
        ["parts", ["constant", "1/0", []]],
        ["parts", ["n", None, []]],
        ["cells", [["a) (assert false"], ["constant", "1", []], []]],
        ["cells", [["a"], ["cell", "b", []], []]],
        ["parts", ["root", 1, [["part", None, []]]]],
        ["lines", 1],
        7,
    ],
)
def test_what_is_no_shape_is_refused(form: Any) -> None:
    with pytest.raises(InputError):
        read_shape(form)


def test_a_formula_nested_too_deep_is_refused() -> None:
    form: Any = ["part", None, []]
    for _ in range(200):
        form = ["x log2 x", None, [form]]
    with pytest.raises(InputError, match="operations within each other"):
        read_shape(["parts", form])


def test_floors_and_associations_stand(tmp_path: Path) -> None:
    """The larger ones, of one claim each: what their goals say is compared, without solvers."""
    from dpframework.formulas.proof_argument_audit import _find_problems

    for shape, claim in ((FLOORED, Claim("fall", Fraction(1, 51))), (ASSOCIATION, Claim("rise", 1))):
        assert isinstance(shape, Cells)
        argument = Argument(shape, claim, Rule.ONE_CELL, tuple(cell_goals(shape, claim, False)))
        assert list(_find_problems(argument)) == []
