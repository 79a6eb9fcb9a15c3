"""Released estimates: one number with a confidence interval, or one point as a quantile.

Everything here is post-processing of releases. Confidence intervals account for noise only: they are about the exact
number in this table, not about a population.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.parameter_checks import finite_from_0
from dpframework.facts.phrases import count_text
from dpframework.facts.privacy_losses import decimal_text, exact
from dpframework.facts.value_checks import as_float
from dpframework.results.result import DrawableResult, StoredResult, Tabular
from dpframework.results.table_text import TextTable

if TYPE_CHECKING:
    import polars as pl

MANY_DIGITS = 1e16  # beyond this, some whole numbers are not floats
_STRIP = {"figsize": (6, 1.5)}  # inches, for a plot of one line


def groups_or(kind: type[StoredResult], form: Any) -> type[StoredResult]:
    """Return the class `Groups` if a form holds a table of groups, or else the given class."""
    from dpframework.results.groups import Groups

    return Groups if isinstance(form, Mapping) and "groups" in form else kind


def _finite(_: Any, attribute: attrs.Attribute[Any], value: float) -> None:
    if not math.isfinite(value):
        raise InputError(f"the {attribute.name} of an estimate must be finite, not {value}")


@final
@attrs.frozen
class Estimate(Tabular, DrawableResult):
    """A released number, with an interval that holds the exact number with a probability of 95 %, on any table.

    Attributes
    ----------
    what
        The name of the number, such as "mean of age".
    value
        The released number, or a number that is computed from releases.
    low, high
        The ends of the interval.

    Examples
    --------
    >>> print(Estimate("mean of age", 38.6437, 38.6121, 38.6753))
    what         value   95 %
    mean of age  38.644  [38.612, 38.676]
    Brackets: the 95 % interval, from the noise alone.
    """

    name_in_errors = "an estimate"
    figure = _STRIP
    what: str
    value: float = attrs.field(converter=as_float, validator=_finite)
    low: float = attrs.field(converter=as_float, validator=_finite)
    high: float = attrs.field(converter=as_float, validator=_finite)

    def __attrs_post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise InputError(f"the interval of '{self.what}' does not contain its value")

    def to_frame(self) -> pl.DataFrame:
        """Return a polars dataframe of one row, with the columns what, value, low and high."""
        import polars as pl

        return pl.DataFrame([attrs.asdict(self)])

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        return attrs.asdict(self)

    @classmethod
    def kind_of(cls, form: Mapping[str, Any]) -> type[StoredResult]:
        """Return the class that reads `form`. A miner with groups returns a table of groups instead."""
        return groups_or(cls, form)

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Estimate:
        """Build the result from its form (see `StoredResult.read`)."""
        return cls(str(form["what"]), form["value"], form["low"], form["high"])

    def draw(self, axes: Any) -> None:
        """Draw the value with its interval."""
        arms = [[self.value - self.low], [self.high - self.value]]
        axes.errorbar([self.value], [0], xerr=arms, fmt="o", color="#0b5394", ecolor="0.5", capsize=4)
        axes.set_yticks([0], [self.what])

    @property
    def texts(self) -> tuple[str, str]:
        """The value and the interval as text. A step of the last decimal is at most a tenth of the interval's width.

        There are at most 12 decimals, and none if the value and both ends are whole. The ends are rounded outwards, so
        that the interval does not become narrower. If one of the three is beyond 1e16, where floats skip whole numbers,
        all are written with a power of ten.
        """
        if max(abs(self.value), abs(self.low), abs(self.high)) >= MANY_DIGITS:
            value, low, high = (
                f"{float(Context(4, rounding).create_decimal_from_float(x)):.3e}"
                for x, rounding in ((self.value, ROUND_HALF_EVEN), (self.low, ROUND_FLOOR), (self.high, ROUND_CEILING))
            )
            return value, f"[{low}, {high}]"
        width = self.high - self.low
        if width > 0 and all(x.is_integer() for x in (self.value, self.low, self.high)):
            return f"{self.value:.0f}", f"[{self.low:.0f}, {self.high:.0f}]"
        places = 6 if width <= 0 else min(max(1 - math.floor(math.log10(width)), 0), 12)
        unit = 10.0**-places
        numbers = self.value, math.floor(self.low / unit) * unit, math.ceil(self.high / unit) * unit
        value, low, high = (f"{round(x, places) + 0.0:.{places}f}" for x in numbers)  # adding 0.0 turns -0.0 into 0.0
        return value, f"[{low}, {high}]"

    def _text_table(self) -> TextTable:
        legend = "Brackets: the 95 % interval, from the noise alone."
        return TextTable(("what", "value", "95 %"), [(self.what, *self.texts)], legend=legend)


def _share(value: Any) -> Fraction:
    return exact(value, "a quantile")


@final
@attrs.frozen
class QuantileEstimate(Tabular, DrawableResult):
    """A released point, with the number of rows by which it may miss the quantile.

    On any table, and with a probability of 95 %, at most `rows` rows lie between the point and an exact quantile q.
    This means: of n rows with a value, at most q n + `rows` lie below the point, and at least q n - `rows` lie at or
    below it. Each value is first rounded to the nearest point of the grid.

    Attributes
    ----------
    attribute
        The name of the attribute.
    quantile
        The quantile q, between 0 and 1, as an exact fraction.
    value
        The released point.
    rows
        The bound on the number of rows between the point and an exact quantile. It follows from the plan.
    step
        The distance between neighbouring points of the grid.

    Examples
    --------
    >>> print(QuantileEstimate("age", "0.5", 37, rows=15, step=1))
    attribute  quantile  value  off by at most
    age        0.5       37     15 rows
    With 95 % probability, at most that many rows separate the value from the exact quantile; values are rounded to
    steps of 1.
    """

    name_in_errors = "a quantile"
    figure = _STRIP
    attribute: str
    quantile: Fraction = attrs.field(converter=_share)
    value: float = attrs.field(converter=as_float, validator=_finite)
    rows: float = attrs.field(converter=as_float, validator=finite_from_0("how far a quantile may be off"))
    step: float = attrs.field(converter=as_float, validator=finite_from_0("the step of a quantile's grid"))

    def to_frame(self) -> pl.DataFrame:
        """Return a polars dataframe of one row, with attribute, quantile, value, rows and step."""
        import polars as pl

        return pl.DataFrame([{**attrs.asdict(self), "quantile": float(self.quantile)}])

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        return {**attrs.asdict(self), "quantile": str(self.quantile)}

    @classmethod
    def kind_of(cls, form: Mapping[str, Any]) -> type[StoredResult]:
        """Return the class that reads `form`. A miner with groups returns a table of groups instead."""
        return groups_or(cls, form)

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> QuantileEstimate:
        """Build the result from its form (see `StoredResult.read`)."""
        return cls(str(form["attribute"]), form["quantile"], form["value"], form["rows"], form["step"])

    @property
    def texts(self) -> tuple[str, str]:
        """The value, and the number of rows by which it may miss the quantile, as text."""
        off = math.ceil(self.rows)
        return f"{self.value:.10g}", count_text(off, "row")

    def draw(self, axes: Any) -> None:
        """Draw the point on the axis of the attribute, which may be the axis of a plotted histogram."""
        axes.plot([self.value], [0], "o", color="#0b5394")
        axes.set_yticks([0], [f"quantile {decimal_text(self.quantile)} (± {math.ceil(self.rows)} rows)"])
        axes.set(xlabel=self.attribute)

    def _text_table(self) -> TextTable:
        legend = (
            "With 95 % probability, at most that many rows separate the value from the exact quantile; values are "
            f"rounded to steps of {self.step:.6g}."
        )
        row = (self.attribute, decimal_text(self.quantile), *self.texts)
        return TextTable(("attribute", "quantile", "value", "off by at most"), [row], legend=legend)
