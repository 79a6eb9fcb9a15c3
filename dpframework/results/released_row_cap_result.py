"""The result of the miner `rows-per-unit`: a number of rows per privacy unit, which later steps can use as a limit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.facts.errors import InputError
from dpframework.facts.parameter_checks import finite_from_0, is_whole_number
from dpframework.facts.phrases import count_text
from dpframework.facts.privacy_losses import exact
from dpframework.facts.value_checks import as_float
from dpframework.results.result import DrawableResult, Tabular
from dpframework.results.table_text import TextTable

if TYPE_CHECKING:
    import polars as pl

_STRIP = {"figsize": (6, 1.5)}  # inches


def _share(value: Any) -> Fraction:
    return exact(value, "a share of the units")


@final
@attrs.frozen
class RowsPerUnit(Tabular, DrawableResult):
    """A number of rows per unit that is enough for all but a share of the units, with its error in units.

    On any table, and with a probability of 95 %, the units with more rows are at most the share `outside` of all units,
    plus `units` further units.

    Attributes
    ----------
    unit
        The name of the privacy unit, which is the name of the column of ids.
    rows
        The released number of rows.
    most
        The largest possible number: the number of rows that the study keeps of each unit.
    outside
        The share of the units that may have more rows, a parameter of the miner.
    units
        The number of further units that may have more rows. It follows from the plan.

    Examples
    --------
    >>> print(RowsPerUnit("owner", 5, 40, "0.05", 31))
    unit   rows  of at most  all rows of   off by at most
    owner  5     40          95 % of them  31 units
    With 95 % probability, at most 5 % of all units and 31 units besides have more rows.
    """

    name_in_errors = "rows of a unit"
    figure = _STRIP
    unit: str
    rows: int
    most: int
    outside: Fraction = attrs.field(converter=_share)
    units: float = attrs.field(converter=as_float, validator=finite_from_0("how many units a number of rows may miss"))

    def __attrs_post_init__(self) -> None:
        if not (is_whole_number(self.most) and is_whole_number(self.rows, most=self.most)):
            raise InputError(f"rows is {self.rows!r}; a whole number from 1 to {self.most!r} is needed")

    def to_frame(self) -> pl.DataFrame:
        """Return a polars dataframe of one row, with unit, rows, most, outside and units."""
        import polars as pl

        return pl.DataFrame([{**attrs.asdict(self), "outside": float(self.outside)}])

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""
        return {**attrs.asdict(self), "outside": str(self.outside)}

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> RowsPerUnit:
        """Build the result from its form (see `StoredResult.read`)."""
        return cls(str(form["unit"]), form["rows"], form["most"], form["outside"], form["units"])

    def draw(self, axes: Any) -> None:
        """Draw the number of rows on a line up to the largest possible number."""
        axes.plot([self.rows], [0], "o", color="#0b5394")
        axes.set_yticks([0], [self.unit])
        axes.set(xlim=(0, self.most + 1), xlabel="rows")

    def _text_table(self) -> TextTable:
        off, beyond = math.ceil(self.units), f"{float(100 * self.outside):.6g} %"
        kept = f"{float(100 * (1 - self.outside)):.6g} % of them"
        row = (self.unit, str(self.rows), str(self.most), kept, count_text(off, "unit"))
        legend = f"With 95 % probability, at most {beyond} of all units and {row[-1]} besides have more rows."
        return TextTable(("unit", "rows", "of at most", "all rows of", "off by at most"), [row], legend=legend)
