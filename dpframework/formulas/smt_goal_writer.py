"""Goals for solvers: SMT-LIB text that is written from formulas.

Most goals state what is known about two neighbouring tables, and that their scores `high` and `low` differ by more than
`bound`. A solver that answers `unsat` has proved the claim for all tables that the goal describes. The text names the
ratios `high`, `low` and `bound`, so that anybody can put in the numbers of real tables (see `smt_goal_ground_test`).
Other goals state that a denominator is negative, or that a fact about a sum over classes does not hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from itertools import permutations
from typing import TypeAlias

from dpframework.facts.errors import DPFrameworkError
from dpframework.formulas.count_formula import Formula, Operation, PublicRange

#: The SMT-LIB terms of a numerator and a denominator.
Ratio: TypeAlias = "tuple[str, str]"
CLAIM = "; the claim, denied"  #: The line of a goal before its denied claim.
#: The denied claim if high and low have the same denominator. `DENIAL` is for any denominators.
SHARED_DENIAL = "(> (* bound.den (- high.num low.num)) (* bound.num high.den))"
DENIAL = "(> (* bound.den (- (* high.num low.den) (* low.num high.den))) (* bound.num (* high.den low.den)))"


#: Names that mean something in SMT-LIB or to one of the solvers, so that goals cannot use them for numbers of rows.
RESERVED = frozenset(
    (
        *(
            "_",
            "abs",
            "and",
            "arcsin",
            "as",
            "assert",
            "cos",
            "cot",
            "csc",
            "distinct",
            "div",
            "euler",
            "exists",
            "exp",
        ),
        *("false", "forall", "fp", "is_int", "ite", "let", "match", "mod", "not", "or", "par", "pi", "pto", "sec"),
        *("select", "sep", "sin", "sqrt", "store", "tan", "to_int", "to_real", "true", "tuple", "wand", "xor"),
    )
)


class UnprovableError(DPFrameworkError):
    """No rule of `dpframework.formulas` covers a formula or a claim."""


def number_text(value: Fraction) -> str:
    """Return a number in SMT-LIB.

    Examples
    --------
    >>> number_text(Fraction(-2, 3))
    '(- (/ 2.0 3.0))'
    """
    size = abs(value)
    text = f"{size.numerator}.0" if size.denominator == 1 else f"(/ {size.numerator}.0 {size.denominator}.0)"
    return text if value >= 0 else f"(- {text})"


def product(first: str, second: str) -> str:
    """Return the term for a product, without factors of 1."""
    return second if first == "1.0" else first if second == "1.0" else f"(* {first} {second})"


def total(terms: Iterable[str]) -> str:
    """Return the term for a sum."""
    listed = list(terms)
    return listed[0] if len(listed) == 1 else f"(+ {' '.join(listed)})"


class Goal:
    """One goal, while it is being written.

    Parameters
    ----------
    whole
        Whether counts are whole numbers. Otherwise they are real numbers, for which a proof is often easier.
    """

    def __init__(self, whole: bool) -> None:
        self.whole = whole
        self.constants: dict[str, str] = {}
        self.assumptions: dict[str, None] = {}
        self.logs: dict[str, None] = {}
        self.increments: dict[str, None] = {}
        self.definitions: dict[str, str] = {}
        self.claim = ""

    def count(self, name: str, gap: bool = True) -> str:
        """Declare a number of rows, and return its name.

        With `gap`, also assume that the number is not between 0 and 1. This costs the solvers time.
        """
        self.constants[name] = "Int" if self.whole else "Real"
        zero = self.whole_number(0)
        self.assume(f"(>= {name} {zero})")
        if gap and not self.whole:
            self.assume(f"(or (= {name} 0.0) (>= {name} 1.0))")
        return name

    def real(self, name: str) -> str:
        """Declare a real number, and return its name."""
        self.constants[name] = "Real"
        return name

    def assume(self, text: str) -> None:
        """Add an assumption."""
        self.assumptions[text] = None

    def whole_number(self, value: int) -> str:
        """Return a whole number as a term of the type that counts have."""
        return str(value) if self.whole else f"{value}.0"

    def plus(self, term: str, value: int) -> str:
        """Return the term for a number of rows plus `value`."""
        return term if value == 0 else f"(+ {term} {self.whole_number(value)})"

    def as_real(self, term: str) -> str:
        """Return the term that turns a number of rows into a real number."""
        return f"(to_real {term})" if self.whole else term

    def log(self, term: str) -> str:
        """Return the term for x log2 x of a number of rows. Solvers know only the properties that `text` states."""
        self.logs[term] = None
        return f"(f {term})"

    def ratio(self, formula: Formula, terms: Mapping[Formula, Ratio], zero: Collection[Formula] = ()) -> Ratio:
        """Return the SMT-LIB terms of a formula's numerator and of its denominator, which is assumed to be positive.

        Parameters
        ----------
        formula
            The formula to write.
        terms
            The ratios that stand for the formula's leaves and sums.
        zero
            The formula's quotients whose denominators are 0. Such a quotient counts as 0.
        """
        if formula in terms:
            return terms[formula]
        if formula in zero:
            return "0.0", "1.0"
        if formula.operation is Operation.CONSTANT:
            return number_text(formula.constant or Fraction()), "1.0"
        if isinstance(formula.value, PublicRange):
            name = self.real(formula.value.name)
            self.assume(f"(<= {number_text(formula.value.lower)} {name} {number_text(formula.value.upper)})")
            return name, "1.0"
        parts = [self.ratio(part, terms, zero) for part in formula.parts]
        (top, bottom), (above, below) = parts[0] if parts else ("", ""), parts[-1] if parts else ("", "")
        match formula.operation:
            case Operation.ADD if bottom == below:
                return f"(+ {top} {above})", bottom
            case Operation.ADD:
                return f"(+ {product(top, below)} {product(above, bottom)})", product(bottom, below)
            case Operation.MULTIPLY:
                return product(top, above), product(bottom, below)
            case Operation.DIVIDE if (divisor := formula.parts[1].constant) is not None and divisor <= 0:
                return ("0.0", "1.0") if divisor == 0 else (f"(- {top})", product(bottom, number_text(-divisor)))
            case Operation.DIVIDE:
                self.assume(f"(> {above} 0.0)")
                return product(top, below), product(bottom, above)
            case Operation.LEAST | Operation.MOST | Operation.AT_LEAST:
                shared = bottom if bottom == below else product(bottom, below)
                if bottom != below:
                    top, above = product(top, below), product(above, bottom)
                if formula.operation is Operation.AT_LEAST:
                    return f"(ite (>= {top} {above}) 1.0 0.0)", "1.0"
                sign = "<=" if formula.operation is Operation.LEAST else ">="
                return f"(ite ({sign} {top} {above}) {top} {above})", shared
            case Operation.ROOT:
                name = self.real(f"root{len(self.constants)}")
                self.assume(f"(>= {name} 0.0)")
                power = " ".join([name] * int(str(formula.value)))
                # Other goals show that no root is of a negative number (see `roots`).
                self.assume(f"(or (< {top} 0.0) (= {product(f'(* {power})', bottom)} {top}))")
                return name, "1.0"
        raise UnprovableError(f"no rule covers '{formula}'")

    def deny(self, high: Ratio, low: Ratio, bound: Ratio) -> None:
        """Set the denied claim of the goal: `high - low` is more than `bound`."""
        names = {"high": high, "low": low, "bound": bound}
        for name, (top, bottom) in names.items():
            self.definitions |= {f"{name}.num": top, f"{name}.den": bottom}
        self.claim = SHARED_DENIAL if high[1] == low[1] else DENIAL

    def text(self) -> str:
        """Return the goal as SMT-LIB text."""
        lines = [f"(set-logic {'ALL' if self.whole else 'QF_NRA'})"]
        lines += [f"(declare-const {name} {sort})" for name, sort in self.constants.items()]
        if self.logs:
            lines += ["(declare-fun f (Int) Real)", "(assert (= (f 0) 0.0))", "(assert (= (f 1) 0.0))"]
            grown = {term: f"(- (f (+ {term} 1)) (f {term}))" for term in self.increments}
            for less, more in permutations(grown, 2):
                lines.append(f"(assert (=> (and (<= 0 {less}) (<= {less} {more})) (<= {grown[less]} {grown[more]})))")
            lines += [f"(assert (=> (<= 0 {term}) (<= 0.0 {step})))" for term, step in grown.items()]
        lines += [f"(define-fun {name} () Real {body})" for name, body in self.definitions.items()]
        lines += [f"(assert {told})" for told in self.assumptions]
        return "\n".join([*lines, CLAIM, f"(assert {self.claim})", "(check-sat)"]) + "\n"


def divisions(body: Formula) -> list[Formula]:
    """Return the quotients of a formula whose denominators may be 0."""
    found = [one for one in body.leaves(Operation.DIVIDE) if one.parts[1].constant is None]
    if any(divisions(one.parts[1]) for one in found):
        raise UnprovableError(f"a denominator has a quotient in it: '{body}'")
    return found


def roots(body: Formula) -> list[tuple[Formula, list[Formula]]]:
    """Return the operand of each root of a formula, with the quotients in it whose denominators may be 0."""
    operands = dict.fromkeys(one.parts[0] for one in body.leaves(Operation.ROOT))
    return [(one, divisions(one)) for one in operands]


def is_whole(formula: Formula) -> bool:
    """Tell whether a formula's values are whole numbers on every table."""
    if formula.operation is Operation.CONSTANT:
        return formula.constant is not None and formula.constant.denominator == 1
    if formula.operation is Operation.AT_LEAST:
        return True
    if formula.operation in (Operation.DIVIDE, Operation.ROOT, Operation.X_LOG_X, Operation.PUBLIC):
        return False
    return all(is_whole(part) for part in formula.parts)


def assume_sign(goal: Goal, quotient: Formula, denominator: Ratio, zero: bool) -> None:
    """Assume that a quotient's denominator is 0 (if `zero`), or else positive: at least 1 if it is a whole number."""
    top, _ = denominator
    if zero:
        goal.assume(f"(= {top} 0.0)")
    else:
        goal.assume(f"(>= {top} 1.0)" if is_whole(quotient.parts[1]) else f"(> {top} 0.0)")


def table_ratio(goal: Goal, body: Formula, terms: Mapping[Formula, Ratio], zeros: Iterable[bool]) -> Ratio:
    """Return a score on one table as a ratio. Assume for each denominator in the score that it is 0, or positive.

    Parameters
    ----------
    goal
        The goal that gets the assumptions.
    body, terms
        The formula, and the ratios that stand for its leaves and sums on the table.
    zeros
        For each quotient in `divisions(body)`, whether its denominator is 0.
    """
    quotients = divisions(body)
    zero = [one for one, is_zero in zip(quotients, zeros, strict=True) if is_zero]
    for one in quotients:
        assume_sign(goal, one, goal.ratio(one.parts[1], terms), one in zero)
    return goal.ratio(body, terms, zero)


def without_claim(text: str) -> str:
    """Return a goal without its denied claim. Some table must fit it, or else the proof is about no table at all."""
    kept, _ = text.split(CLAIM)
    return f"{kept}(check-sat)\n"
