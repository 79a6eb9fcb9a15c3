"""Arguments for claims about sensitivities.

An argument holds goals: texts for SMT solvers, each of which denies the claim in some case. A solver proves a goal by
finding the text unsatisfiable. An argument also holds the facts about sums and largest values that the goals use, and
the rule that says why the goals are enough for the claim.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any, final

import attrs

from dpframework.facts.errors import InputError
from dpframework.formulas.count_formula import AGGREGATES, Formula, form
from dpframework.formulas.formula_and_claim_json import read_claim, read_formula, read_shape
from dpframework.formulas.score_structures import Cells, Outer, Parts, Shape
from dpframework.formulas.sensitivity_claims_and_neighbours import Claim
from dpframework.formulas.smt_goal_writer import divisions


class Rule(enum.StrEnum):
    """The rule that says why proved goals are enough for a claim. Readers must check rules, since no solver does."""

    ONE_PART = "one part"
    ONE_CELL = "one cell"
    REPLACED = "replaced"
    EXTREMES = "extremes"
    RANGE = "range"
    OUTER = "outer"
    NORM = "norm"


#: The reason why each rule is right, in one sentence. Readers must check these reasons, since no solver does.
REASONS = {
    Rule.ONE_PART: "a row is in one part, so that a sum over parts changes by as much as that part's formula",
    Rule.ONE_CELL: "an added row raises one cell by 1, or none",
    Rule.REPLACED: "two tables that differ in one row are a shared table with a row added: the change is at most the "
    "rise and the fall together",
    Rule.EXTREMES: "a minimum or maximum moves no further than the values that it is taken of; -x rises as x falls",
    Rule.RANGE: "a score that lies between 0 and a number on every table moves by no more than that number",
    Rule.OUTER: "a function of degree 1 in each total is largest at a vertex of the box of the totals' ranges",
    Rule.NORM: "a sum over rows changes by the added row's entries, or by the difference of two rows' entries",
}


@final
@attrs.frozen
class Fact:
    """A fact about an aggregate (a sum or a largest value over classes), proved by induction over the classes.

    Attributes
    ----------
    aggregate
        The sum or the largest value.
    text
        The fact in SMT-LIB, with placeholders (see `smt_goals_for_part_scores.FACTS`).
    goals
        The two goals of the induction over classes: for no class, and for one more class.
    """

    aggregate: Formula
    text: str
    goals: tuple[str, ...]


@final
@attrs.frozen
class Argument:
    """Goals that are enough for a claim, once solvers have proved all of them.

    Attributes
    ----------
    shape
        The formula of the score or vector.
    claim
        The claim about it.
    rule
        The rule that says why the goals are enough.
    goals
        The goals of this rule, as SMT-LIB text.
    facts
        The facts that the goals use.
    parts
        Arguments for other claims that this argument rests on.
    """

    shape: Shape
    claim: Claim
    rule: Rule
    goals: tuple[str, ...]
    facts: tuple[Fact, ...] = ()
    parts: tuple[Argument, ...] = ()

    @property
    def all_goals(self) -> tuple[str, ...]:
        """The goals of the facts, of the arguments that this one rests on, and of this argument, in this order."""
        inductions = (goal for fact in self.facts for goal in fact.goals)
        return (*inductions, *(goal for part in self.parts for goal in part.all_goals), *self.goals)

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules of this argument and of the arguments that it rests on, each once.

        "the rest" and "zero cases" are names of rules for writing goals (see `smt_goals_for_part_scores`).
        """
        own: list[str] = [str(self.rule)]
        if isinstance(self.shape, Parts) and self.shape.body.leaves(*AGGREGATES) and self.goals:
            own.append("the rest")
        if isinstance(self.shape, Parts | Cells | Outer) and divisions(self.shape.body) and self.goals:
            own.append("zero cases")
        inner = (name for part in self.parts for name in part.rules)
        return tuple(dict.fromkeys((*own, *inner)))

    def walk(self) -> Iterator[Argument]:
        """Yield this argument and all arguments that it rests on."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "rule": str(self.rule),
            "formula": self.shape.text,
            "claim": self.claim.text,
            "form": [self.shape.form, self.claim.form],
            "goals": list(self.goals),
            "facts": [{"of": form(one.aggregate), "fact": one.text, "goals": list(one.goals)} for one in self.facts],
            "parts": [part.to_dict() for part in self.parts],
        }

    @classmethod
    def from_dict(cls, given: Any) -> Argument:
        """Read the output of `to_dict`.

        Raises
        ------
        InputError
            If `given` is something else.
        """
        try:
            shape, claim = given["form"]
            facts = [Fact(read_formula(one["of"]), str(one["fact"]), _texts(one["goals"])) for one in given["facts"]]
            parts = tuple(map(cls.from_dict, given["parts"]))
            found = cls(
                read_shape(shape), read_claim(claim), Rule(given["rule"]), _texts(given["goals"]), tuple(facts), parts
            )
        except (KeyError, TypeError, ValueError):
            raise InputError("is no argument for a claim") from None
        if found.shape.text != given["formula"] or found.claim.text != given["claim"]:
            raise InputError(f"the formula or claim of '{given['formula']}' differs from its text")
        return found


def _texts(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise TypeError
    return tuple(given)
