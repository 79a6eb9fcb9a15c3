"""The base class of additive models of classes and of numbers, which names, ranks, draws and prints their functions."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from dpframework.facts import InputError, Schema
from dpframework.results import DrawableResult, TextTable, axes_or_new, without_math
from dpframework.tables import NewRows
from dpframework_trees.additive.design import Reals
from dpframework_trees.additive.term_drawing import BAND, FIGURE, draw_term, draw_terms
from dpframework_trees.additive.terms import Term

if TYPE_CHECKING:
    import polars as pl

SHOWN = 6  # the most functions in a drawing of the model
LEGEND = (
    f"±: {BAND} standard deviations of noise. The smaller number is for evenly spread rows and unrelated attributes,\n"
    "the larger one for any rows."
)


class AdditiveSum(DrawableResult):
    """A model whose score is a sum of one function of each attribute, and an intercept."""

    __slots__ = ()
    figure: ClassVar[Mapping[str, Any]] = FIGURE

    if TYPE_CHECKING:

        @property
        def terms(self) -> tuple[Term, ...]:
            """The functions of attributes, in the schema's order. Each model has them as a field."""

    @property
    @abc.abstractmethod
    def outputs(self) -> tuple[str, ...]:
        """The name of each output in drawings. A function adds a value to each output."""

    @property
    @abc.abstractmethod
    def shown_terms(self) -> tuple[Term, ...]:
        """The functions as they are drawn and printed."""

    @property
    @abc.abstractmethod
    def added_to(self) -> str:
        """The sum to which the functions add their values, in words."""

    @property
    def schema(self) -> Schema:
        """The attributes that the model reads."""
        return Schema([term.attribute for term in self.terms])

    @property
    def most_important(self) -> list[Term]:
        """The functions that are shown, with those that make the largest differences first."""
        return sorted(self.shown_terms, key=lambda term: term.importance, reverse=True)

    def term(self, name: str) -> Term:
        """Return one of `shown_terms` by the name of its attribute, or by "the tree's part".

        Raises
        ------
        InputError
            If the model has no function of that name.
        """
        found = {term.attribute.name: term for term in self.shown_terms}
        if name not in found:
            raise InputError(f"attribute '{name}' is not in the model; it has {', '.join(found)}")
        return found[name]

    def contributions(self, rows: Any, *, out_of_domain: str = "error") -> Reals:
        """Return each attribute's part of each row's sum, shape (rows, attributes), or (rows, attributes, outputs).

        The first shape is that of a model of a number, the second that of a classifier. An unknown cell (see `NewRows`)
        adds 0, which is the plain mean of what the attribute's cells add. In a classifier with a tree, the second axis
        has one more entry (see `AdditiveModel.parts`).

        Parameters
        ----------
        rows
            A table of any schema with the model's attributes, or a dataframe with their columns.
        out_of_domain
            What to do with values of a dataframe outside the schema (see `NewRows.read`).

        Raises
        ------
        InputError
            If an attribute is missing, or if it has values outside its domain and these are refused.
        """
        given = NewRows.read(rows, self.schema, out_of_domain=out_of_domain)
        return self._contributions(given)

    @abc.abstractmethod
    def _contributions(self, given: NewRows) -> Reals:
        """Return the contributions to rows that were read."""

    def draw(self, axes: Any) -> None:
        """Draw the most important functions, each with its band of noise."""
        draw_terms(self.most_important[:SHOWN], self.outputs, f"added to {self.added_to}", axes)

    def to_frame(self) -> pl.DataFrame:
        """Return a polars dataframe with one row for each cell of each function, the most important functions first.

        Its columns are `attribute`, `cell`, one column of values for each output (`added to NAME`), and two
        half-widths of the band of noise around these values. `noise_even` is the half-width for evenly spread rows and
        unrelated attributes, and `noise_most` is an upper bound for any rows.
        """
        import polars as pl

        parts = [
            pl.DataFrame(
                {"attribute": [term.attribute.name] * len(term.labels), "cell": list(term.labels)}
                | {f"added to {name}": term.values[:, k] for k, name in enumerate(self.outputs)}
                | {"noise_even": BAND * term.deviations, "noise_most": BAND * term.most_deviations}
            )
            for term in self.most_important
        ]
        return pl.concat(parts)

    def _repr_html_(self) -> str:
        names = [f"added to {name}" for name in self.outputs]
        tables = [
            TextTable((term.attribute.name, *names, "noise"), list(_rows(term)), legend="").html()
            for term in self.most_important
        ]
        return "".join(tables)

    def _term_lines(self, form: str) -> list[str]:
        """Return each function with one line for each cell, the most important first, and the legend.

        `form` is the format of numbers, such as ".2f".
        """
        lines = []
        for term in self.most_important:
            lines.append(term.attribute.name)
            for label, values, *two in zip(
                term.labels, term.values, term.deviations, term.most_deviations, strict=True
            ):
                added = ", ".join(f"{value:+{form}}" for value in values)
                expected, most = (f"{BAND * deviation:{form}}" for deviation in two)
                lines.append(f"  {label}: {added} ± {expected} to {most}")
        return [*lines, LEGEND]

    def plot_term(self, name: str, ax: Any | None = None) -> Any:
        """Draw the function of one attribute with its band of noise, and return the matplotlib axes."""
        axes = axes_or_new(ax, layout="constrained")
        draw_term(self.term(name), self.outputs, axes)
        axes.set_ylabel(f"added to {self.added_to}")
        if len(self.outputs) > 1:
            axes.legend()
        return without_math(axes)


def _rows(term: Term) -> Iterator[tuple[str, ...]]:
    bands = zip(BAND * term.deviations, BAND * term.most_deviations, strict=True)
    for label, values, (even, most) in zip(term.labels, term.values, bands, strict=True):
        yield (label, *(f"{value:+.3g}" for value in values), f"± {even:.3g} to {most:.3g}")
