"""Claims about the largest change of a score or vector between neighbours, and pairs of neighbours as evidence."""

from __future__ import annotations

import enum
import functools
import itertools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import rational_above
from dpframework.formulas.count_formula import Formula, Number, Operation, as_formula, form, rows, x_log2_x
from dpframework.formulas.score_structures import Adds, Shape

_Bound: TypeAlias = "Formula | Number"


class Change(enum.StrEnum):
    """The change that a claim bounds.

    `RISE` is how far a score goes up when rows are added, and `FALL` how far it goes down. `REPLACED` is how far it
    goes up or down when rows leave and the same number of other rows join. `L1`, `SQUARED_L2` and `LINF` are norms of a
    vector's change when one row is added or replaced.
    """

    RISE = "rise"
    FALL = "fall"
    REPLACED = "replaced"
    L1 = "l1"
    SQUARED_L2 = "squared-l2"
    LINF = "linf"

    @property
    def is_norm(self) -> bool:
        """Whether the claim bounds a norm of a vector's change, and not the change of a score."""
        return self in (Change.L1, Change.SQUARED_L2, Change.LINF)


@final
@attrs.frozen
class Claim:
    """A bound on the change of a score or of a vector.

    Attributes
    ----------
    change
        The change that is bounded.
    bound
        A number, or a formula of `rows` that grows with `rows`. `rows` is the number of rows of the larger table, or
        any larger number.
    group
        The largest number of rows that are added or replaced together.
    replaced
        For norms, whether a row is replaced instead of added.
    """

    change: Change = attrs.field(converter=Change)
    bound: Formula = attrs.field(converter=as_formula)
    group: int = attrs.field(default=1, validator=[attrs.validators.instance_of(int), attrs.validators.ge(1)])
    replaced: bool = False

    @property
    def text(self) -> str:
        """The claim in one line."""
        who = f" by {self.group} rows" if self.group > 1 else ""
        return f"{self.change}{' when replaced' if self.replaced else ''}{who} <= {self.bound}"

    @property
    def form(self) -> Any:
        """The claim as JSON content."""
        return [str(self.change), self.group, self.replaced, form(self.bound)]


#: A function that scores the counts of one table, given numbers for the formula's public parameters.
Scorer: TypeAlias = Callable[[NDArray[np.int64], Mapping[str, Any]], Any]


@final
@attrs.frozen
class ScoreClaims:
    """A score's formula and its claims, which `dpframework prove` proves.

    Attributes
    ----------
    name
        The name of the score.
    shape
        The score's formula.
    claims
        The claims that the query makes about the score.
    scorer
        The query's own code, which scores the counts of one table. An audit compares it with the formula. None if there
        is nothing to compare.
    """

    name: str
    shape: Shape
    claims: tuple[Claim, ...]
    scorer: Scorer | None = attrs.field(default=None, eq=False, repr=False)


def score_claims(
    name: str, shape: Shape, rise: _Bound, fall: _Bound, replaced: _Bound, scorer: Scorer | None = None
) -> ScoreClaims:
    """Return a score's formula with the bounds that a query declares for its rise, its fall and a replacement."""
    bounds = zip((Change.RISE, Change.FALL, Change.REPLACED), (rise, fall, replaced), strict=True)
    return ScoreClaims(name, shape, tuple(Claim(change, bound) for change, bound in bounds), scorer)


def norm_claims(
    name: str, shape: Adds, added: Mapping[Change, _Bound], replaced: Mapping[Change, _Bound]
) -> ScoreClaims:
    """Return a vector's formula with the bounds on norms that a query declares for an added and for a replaced row."""
    claims = [Claim(norm, bound) for norm, bound in added.items()]
    return ScoreClaims(name, shape, (*claims, *(Claim(norm, bound, replaced=True) for norm, bound in replaced.items())))


#: One table of `Neighbours`, in the form that its shape needs: the counts of cells, the counts of parts by class, or
#: totals with the number of rows last. For a vector, these are the entries of one row.
Counts: TypeAlias = "tuple[int | Fraction, ...] | tuple[tuple[int, ...], ...]"


@final
@attrs.frozen
class Neighbours:
    """Two neighbouring tables and the difference of their scores.

    For a vector they are two rows, and the change is a norm of the difference of the rows' entries.

    Attributes
    ----------
    low, high
        The counts of the two tables. `high` has the higher score.
    change
        The difference of the two scores. It is exact if the formula is rational.
    """

    low: Counts
    high: Counts
    change: Fraction | float

    def __str__(self) -> str:
        change = str(self.change) if isinstance(self.change, Fraction) else f"{self.change:.6g}"
        return f"{_text(self.low)} -> {_text(self.high)}: {change}"


def _text(counts: Counts) -> str:
    return f"[{' '.join(_text(one) if isinstance(one, tuple) else str(one) for one in counts)}]"


#: The largest change of N log2 N, for a table of N rows, when a row is added that makes N at most `rows`.
LAST_INCREMENT = x_log2_x(rows) - x_log2_x(rows - 1)


def bound_at(bound: Formula, row_bound: int | None) -> Fraction:
    """Return a bound for tables of at most `row_bound` rows (None for any number), rounded up to a rational.

    Raises
    ------
    InputError
        If the bound grows without end, and the number of rows has no bound. Also if the bound is smaller for more rows,
        or if it is something else than a number, `LAST_INCREMENT`, or a formula of numbers and `rows` with sums,
        products and quotients. Such a formula may divide by numbers, by `rows`, and by `rows` plus a number of 0 or
        more.

    Examples
    --------
    >>> from dpframework.formulas.count_formula import rows
    >>> bound_at(1 - 2 / rows, 8), bound_at(1 - 2 / rows, None)
    (Fraction(3, 4), Fraction(1, 1))
    """
    if bound == LAST_INCREMENT:
        if row_bound is None:
            raise _grows(bound)
        less = row_bound - 1
        return (
            rational_above(math.log2(row_bound) + less * math.log1p(1 / less) / math.log(2)) if less > 0 else Fraction()
        )
    _require_growth(bound)
    return _limit(bound) if row_bound is None else max(_exact(bound, Fraction(max(row_bound, 1))), Fraction())


@functools.cache
def _require_growth(bound: Formula) -> None:
    """Refuse a bound that falls as the rows grow. Its values are compared at 1, 2 and 3 rows and at powers of 2.

    The value of such a bound at the largest number of rows would not hold for tables with fewer rows.
    """
    values = [_exact(bound, Fraction(number)) for number in (1, 2, 3, *(2**power for power in range(2, 41)))]
    if any(later < earlier for earlier, later in itertools.pairwise(values)):
        raise InputError(
            f"the bound '{bound}' falls as the rows grow, so that it does not hold for tables with fewer rows than "
            "max_rows; declare its largest value"
        )


def _exact(bound: Formula, number: Fraction) -> Fraction:
    if bound.constant is not None:
        return bound.constant
    if bound == rows:
        return number
    parts = [_exact(part, number) for part in bound.parts]
    match bound.operation:
        case Operation.ADD:
            return parts[0] + parts[1]
        case Operation.MULTIPLY:
            return parts[0] * parts[1]
        case Operation.DIVIDE if bound.parts[1].constant or is_rows_or_more(bound.parts[1]):
            return parts[0] / parts[1]
    raise InputError(
        f"no sensitivity can be read from the bound '{bound}'; declare a number, or a formula of numbers and the rows "
        "that divides only by numbers and by the rows (to which a number of 0 or more may be added)"
    )


def is_rows_or_more(formula: Formula) -> bool:
    """Tell whether a formula is `rows`, or `rows` plus a number of 0 or more. A bound may divide by nothing else."""
    if formula == rows:
        return True
    others = [part for part in formula.parts if part != rows]
    return formula.operation is Operation.ADD and len(others) == 1 and (others[0].constant or -1) >= 0


def _limit(bound: Formula) -> Fraction:
    """Return the limit for many rows. A number divided by `rows` becomes 0."""
    if bound.constant is not None:
        return bound.constant
    match bound.operation:
        case Operation.ADD:
            return _limit(bound.parts[0]) + _limit(bound.parts[1])
        case Operation.MULTIPLY if bound.parts[0].constant is not None:
            return bound.parts[0].constant * _limit(bound.parts[1])
        case Operation.DIVIDE if bound.parts[1].constant:
            return _limit(bound.parts[0]) / bound.parts[1].constant
        case Operation.DIVIDE if bound.parts[0].constant is not None and is_rows_or_more(bound.parts[1]):
            return Fraction()
    raise _grows(bound)


def _grows(bound: Formula) -> InputError:
    return InputError(f"the bound '{bound}' grows with the rows; set max_rows or rows in the schema")
