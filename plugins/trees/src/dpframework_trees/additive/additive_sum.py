"""The common base of additive models, whatever they predict: functions that are named, ranked, drawn and printed."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from dpframework.facts import Schema
from dpframework.results import Drawn, TextTable, axes_or_new, without_math
from dpframework_trees.additive.drawing import BAND, FIGURE, draw_term, draw_terms
from dpframework_trees.additive.terms import Term, term_named

if TYPE_CHECKING:
    import polars as pl

SHOWN = 6  # attributes in a drawing of all
LEGEND = (
    f"±: {BAND} standard deviations of noise, from what even rows and unrelated attributes leave to the most that any\n"
    "rows leave."
)


class AdditiveSum(Drawn):
    """A model whose score is a sum of one function of each attribute, and an intercept."""

    __slots__ = ()
    figure: ClassVar[Mapping[str, Any]] = FIGURE

    if TYPE_CHECKING:

        @property
        def terms(self) -> tuple[Term, ...]:
            """The functions of attributes, in the schema's order: a field of each model."""

    @property
    @abc.abstractmethod
    def outputs(self) -> tuple[str, ...]:
        """The sum that each output of a function is a part of, as drawings name it."""

    @property
    @abc.abstractmethod
    def shown_terms(self) -> tuple[Term, ...]:
        """The functions as they are drawn and printed."""

    @property
    @abc.abstractmethod
    def added_to(self) -> str:
        """The sum that the values of functions are parts of, in words."""

    @property
    def schema(self) -> Schema:
        """The attributes that the model reads."""
        return Schema([term.attribute for term in self.terms])

    @property
    def most_important(self) -> list[Term]:
        """The functions that are shown, those that make the largest differences first."""
        return sorted(self.shown_terms, key=lambda term: term.importance, reverse=True)

    def term(self, name: str) -> Term:
        """Return the function of an attribute, or of another part that is shown, as it is shown.

        Raises
        ------
        InputError
            If the model has none of that name.
        """
        return term_named(self.shown_terms, name)

    def draw(self, axes: Any) -> None:
        """Draw the functions of the attributes that matter most, each with the band that noise leaves it."""
        draw_terms(self.most_important[:SHOWN], self.outputs, f"added to {self.added_to}", axes)

    def to_frame(self) -> pl.DataFrame:
        """Return a polars dataframe, a row for each cell of each function, those that matter most first.

        Its columns are `attribute`, `cell`, a number for each output (`added to NAME`), and the two ends of the band
        that noise leaves it (`noise_even`, `noise_most`).
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

    def plot_term(self, name: str, ax: Any | None = None) -> Any:
        """Draw the function of one attribute, with the band that noise leaves it, and return the matplotlib axes."""
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
