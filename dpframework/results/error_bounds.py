"""Bounds on the errors of results, each in the unit of its result.

A bound follows from public facts only: the plan's noise, the schema, and the approximate number of rows. On any table,
95 % of releases satisfy the bound. It covers the error that noise causes. Any other error is called a bias, and is
stated separately.
"""

from __future__ import annotations

import enum
import math
from typing import Any, final

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.value_checks import as_texts
from dpframework.results.noisy_count_with_interval import CONFIDENCE

SUPPORTS = "supports of redescriptions"
CHOSEN = "redescriptions are shown because of their noisy counts, so their supports are too large on average"
UNCLIPPED = "counts are not clipped at 0; clipping would make small counts too large on average"
WORST_ROWS = "on the worst rows"  # a note on bounds that are reached on the worst tables
QUARTER = 1 / 4  # a choice says little if it may be worse than the best by this share of all rows
GROUPS = (10, 100, 1_000, 10_000)  # group sizes, in rows, at which NIST SP 800-226 shows relative errors


class BoundKind(enum.StrEnum):
    """What an error bound is about: several counts, one number, or a choice that may be worse than the best."""

    COUNTS = "counts"
    NUMBER = "number"
    CHOICE = "choice"


def _amount(_: Any, attribute: attrs.Attribute[Any], value: float | None) -> None:
    if value is not None and not value >= 0:
        raise InputError(f"the {attribute.name} of an error bound is {value}; a number from 0 on is needed, or None")


@final
@attrs.frozen
class TableSize:
    """The public facts about a table's number of rows.

    Attributes
    ----------
    about
        The approximate number of rows. None if it is not stated.
    exact
        Whether `about` is the exact number.
    most
        The largest possible number of rows. None if it is not known.
    """

    about: int | None = None
    exact: bool = False
    most: int | None = None

    @property
    def text(self) -> str:
        """The number of rows in words, such as "the 500 rows" or "about 7,000 rows". Empty if it is not stated."""
        if self.about is None:
            return ""
        return f"the {self.about:,} rows" if self.exact else f"about {self.about:,} rows"

    @property
    def largest(self) -> int | None:
        """The number of rows with which errors are compared: `about` or, if that is None, `most`."""
        return self.about if self.about is not None else self.most


@final
@attrs.frozen
class ErrorBound:
    """A bound on the distance of a released number from the exact number, or of a choice from the best choice.

    Attributes
    ----------
    what
        The number, such as "mean of 'age'".
    amount
        The bound. In 95 % of releases the error is at most this. None if it depends on the number of rows, which is not
        stated.
    unit
        The unit of the amount, such as "rows". Empty for the unit of the attribute or of the answer.
    kind
        Whether the bound is about counts, a number or a choice.
    size
        The public facts about the number of rows.
    whole
        A number in the same unit, such as the number of rows. The amount is also shown as a share of this number. None
        if no such number is known.
    whole_text
        `whole` in words, such as "the range from 0 to 100".
    likely
        The largest value that the exact number is expected to have. An error of this size or more hides the number.
        None if no such value is known.
    likely_text
        `likely` in words, such as "the average of the 12 counts".
    note
        A remark on the amount, such as "on the worst rows". May be empty.
    biases
        Errors that are not caused by noise, one sentence for each.
    steps
        The paths, in the plan, of the steps whose noise causes the error.
    numbers
        The place, in the result, of the numbers that the bound is about: attributes' names and keys, joined by `/`,
        such as "counts/ill". Empty for all numbers of the result. None if this is not said; then verification only
        tests that the bound holds for some number of the result, or of the steps.

    Examples
    --------
    >>> size = TableSize(7000)
    >>> bound = ErrorBound("counts of 'town'", 59, "rows", BoundKind.COUNTS, size, 7000, "about 7,000 rows")
    >>> print(bound.text)
    each within ±59 rows, 0.84 % of about 7,000 rows
    >>> print(bound.sentence)
    Counts of 'town': each within ±59 rows, 0.84 % of about 7,000 rows, in 95 % of releases.
    """

    what: str
    amount: float | None = attrs.field(validator=_amount)
    unit: str = "rows"
    kind: BoundKind = attrs.field(default=BoundKind.NUMBER, converter=BoundKind)
    size: TableSize = attrs.field(factory=TableSize)
    whole: float | None = None
    whole_text: str = ""
    likely: float | None = None
    likely_text: str = ""
    note: str = ""
    biases: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
    steps: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
    numbers: str | None = None

    @property
    def confidence(self) -> float:
        """The share of releases for which the bound holds, 0.95."""
        return CONFIDENCE

    @property
    def share(self) -> float | None:
        """The amount as a share of `whole`. None if one of the two is unknown."""
        if self.amount is None or not self.whole:
            return None
        return self.amount / self.whole

    @property
    def text(self) -> str:
        """The amount with its unit, and its share of `whole`, in words."""
        if self.amount is None:
            return self.note
        known = math.isfinite(self.amount)
        amount = (rows_text(self.amount) if self.unit == "rows" else f"{self.amount:.4g}") if known else "any number of"
        amount += f" {self.unit}" if self.unit else ""
        words = {
            BoundKind.COUNTS: f"each within ±{amount}",
            BoundKind.NUMBER: f"within ±{amount}",
            BoundKind.CHOICE: f"worse than the best by at most {amount}",
        }[self.kind]
        share = ""
        if self.share is not None:
            share = f"{percent_text(self.share)} of {self.whole_text}"
        elif self.amount and known and self.unit == "rows":
            share = f"1 % of a table of {rows_text(100 * self.amount)}"
        return ", ".join(part for part in (words, self.note, share) if part)

    @property
    def sentence(self) -> str:
        """A sentence with the number, its bound, and the share of releases for which the bound holds."""
        return f"{self.what[:1].upper()}{self.what[1:]}: {self.text}, in {percent_text(CONFIDENCE)} of releases."

    @property
    def hides_choice(self) -> bool:
        """Whether a choice may be worse than the best by a quarter of all rows or more."""
        rows = self.size.largest
        return (
            self.unit == "rows" and rows is not None and self._off >= QUARTER * rows and self.kind is BoundKind.CHOICE
        )

    @property
    def hides_number(self) -> bool:
        """Whether the error may be at least as large as the number is expected to be (`likely`)."""
        return self.kind is not BoundKind.CHOICE and self.likely is not None and self._off >= self.likely

    @property
    def warning(self) -> str:
        """The reason why the result may say little or nothing. Empty if none is known."""
        rows = self.size.largest
        if rows is not None and self.unit == "rows" and self._off >= rows:
            return "useless: the noise is larger than the whole table"
        if self.hides_choice:
            return "weak: the choice may be worse than the best by a quarter of the table"
        return f"weak: the noise is larger than {self.likely_text}" if self.hides_number else ""

    @property
    def _off(self) -> float:
        return 0.0 if self.amount is None else self.amount

    @property
    def by_group(self) -> tuple[tuple[int, float], ...]:
        """Group sizes up to the size of the table, each with the error of a count as a share of the group's rows."""
        if self.kind is not BoundKind.COUNTS or not self.amount or not math.isfinite(self.amount):
            return ()
        most = self.size.largest
        return tuple([(group, self.amount / group) for group in GROUPS if most is None or group <= most])

    @property
    def group_text(self) -> str:
        """The output of `by_group` as one line. Empty if the bound is not about counts."""
        parts = [f"{percent_text(share)} of a count of {group:,}" for group, share in self.by_group]
        return f"that is {', '.join(parts)}" if parts else ""

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        finite = self.amount is not None and math.isfinite(self.amount)
        return {
            "what": self.what,
            "amount": self.amount if finite else None,
            "unit": self.unit,
            "confidence": CONFIDENCE,
            "rows": self.size.about,
            "share": self.share if finite else None,
            "of": self.whole_text,
            "text": self.text,
            "warning": self.warning,
            "biases": list(self.biases),
            "by_group": [{"rows": group, "share": share} for group, share in self.by_group],
            "steps": list(self.steps),
        }


def rows_text(number: float) -> str:
    """Return a number of rows as text, rounded up to a whole number with at most three significant digits.

    Examples
    --------
    >>> rows_text(1317.2), rows_text(4.1), rows_text(54.2)
    ('1,320', '5', '55')
    """
    whole = math.ceil(number - 1e-9)
    unit = 10 ** max(len(str(whole)) - 3, 0)
    rounded = -(-whole // unit) * unit
    return f"{rounded:,}" if rounded < 10**12 else f"{float(rounded):.3g}"


def percent_text(share: float) -> str:
    """Return a share as a percentage: below 10 % with two significant digits, and else as a whole number.

    Examples
    --------
    >>> percent_text(0.0291), percent_text(0.00002), percent_text(1.3)
    ('2.9 %', 'under 0.01 %', '130 %')
    """
    if share < 1e-4:
        return "under 0.01 %"
    percent = 100 * share
    return f"{percent:,.0f} %" if percent >= 10 else f"{percent:.2g} %"


def bound_of_supports(bound: ErrorBound, cells: int, most: int | None = None) -> ErrorBound:
    """Return the error bound for supports: numbers of rows for which descriptions hold, added up from noisy cells.

    The bound holds for any pair of descriptions that is fixed beforehand. An error of a quarter of all rows hides a
    support, since a support of this size may be chance: two independent descriptions that each hold for half of the
    rows both hold for a quarter of them.

    Parameters
    ----------
    bound
        The error bound of a sum of `cells` cells.
    cells
        The largest number of cells whose sum is a support.
    most
        The largest support that is shown. None if there is no limit.
    """
    rows = bound.size.largest
    likely = None if rows is None else QUARTER * rows
    text = "a quarter of the table"
    if most is not None and (likely is None or most < likely):
        likely, text = float(most), f"the largest support that is shown, {most:,} rows"
    biases = [CHOSEN]
    if cells > 1:
        biases.insert(
            0, f"a support is a sum of up to {cells:,} noisy cells, and a sum of fewer cells has less noise than stated"
        )
    return attrs.evolve(bound, what=SUPPORTS, likely=likely, likely_text=text, biases=biases)
