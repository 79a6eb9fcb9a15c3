"""The base classes of results that can be stored as JSON, printed as tables, or drawn."""

from __future__ import annotations

import abc
import json
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from dpframework.facts.errors import InputError
from dpframework.facts.json_reader_and_schema_check import parsed_json
from dpframework.facts.notebook_html import NotebookText, html_table
from dpframework.results.matrix import matrices_of
from dpframework.results.table_text import TextTable


class StoredResult(NotebookText, abc.ABC):
    """The base class of results that can be stored as JSON. `from_dict` reads the output of `to_dict`."""

    __slots__ = ()

    #: The name of the class in error messages, with an article, such as "an estimate".
    name_in_errors: ClassVar[str]

    @classmethod
    def kind_of(cls, form: Mapping[str, Any]) -> type[StoredResult]:
        """Return the class that reads a saved result. By default it is this class.

        Override this if the miner returns results of another class for some parameters.
        """
        return cls

    def _repr_html_(self) -> str:
        """Return the matrices of the result as HTML tables, or its text if it has no matrices."""
        tables = [
            html_table(
                [matrix.title, *matrix.columns],
                [(label, *texts) for label, texts in zip(matrix.rows, matrix.texts, strict=True)],
            )
            for matrix in matrices_of(self)
        ]
        return "".join(tables) or super()._repr_html_()

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Self:
        """Read the output of `to_dict`.

        Raises
        ------
        InputError
            If the form is not the output of `to_dict`.
        """
        try:
            found = cls.read(form)
            found.require_usable()
            return found
        except InputError:
            raise
        except Exception:  # for a wrong form, `read` may raise any error, also in a plugin's class
            raise InputError(f"this is not {cls.name_in_errors} that dpframework wrote") from None

    def require_usable(self) -> None:
        """Raise an error, of any class, if this result cannot be stored, printed, or shown as matrices.

        A changed file may have a number in place of a text, or a list that is too short. Reading the file may not
        detect this, but using the result does.
        """
        parsed_json(self.to_json())
        str(self).encode()
        for matrix in matrices_of(self):
            matrix.to_dict()

    @classmethod
    @abc.abstractmethod
    def read(cls, form: Mapping[str, Any]) -> Self:
        """Build a result from its form. If this raises an error, `from_dict` turns it into one sentence."""


def axes_or_new(ax: Any | None, **figure: Any) -> Any:
    """Return the given matplotlib axes or, if `ax` is None, the axes of a new figure with these options.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    InputError
        If `ax` is a text, such as the name of a result.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plot needs matplotlib: pip install 'dpframework[plot]'") from error
    if isinstance(ax, str):
        raise InputError(f"plot takes matplotlib axes, not {ax!r}; results[{ax!r}].plot() draws one result")
    return pyplot.subplots(**figure)[1] if ax is None else ax


def without_math(drawn: Any) -> Any:
    """Return the figure or axes with formulas disabled, since matplotlib reads text between two $ as a formula."""
    from matplotlib.text import Text

    for text in drawn.figure.findobj(Text):
        text.set_parse_math(False)
    return drawn


class Tabular(StoredResult):
    """The base class of results that are printed as a table, and shown as a table in a notebook."""

    __slots__ = ()

    @abc.abstractmethod
    def _text_table(self) -> TextTable:
        """Return the table that is printed."""

    def __str__(self) -> str:
        return self._text_table().text()

    def _repr_html_(self) -> str:
        return self._text_table().html()


class Drawable(abc.ABC):
    """The base class of objects that matplotlib can draw."""

    __slots__ = ()

    def plot(self, ax: Any | None = None) -> Any:
        """Draw this object, as its class describes, and return the matplotlib axes.

        Parameters
        ----------
        ax
            The axes to draw on. If None, a new figure is made.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        return without_math(self._plot(ax))

    @abc.abstractmethod
    def _plot(self, ax: Any | None) -> Any:
        """Draw this object on the given axes, or on new ones, and return the axes."""


class DrawableResult(StoredResult, Drawable):
    """The base class of results that can be stored as JSON and drawn."""

    __slots__ = ()

    #: The options of a new figure.
    figure: ClassVar[Mapping[str, Any]] = {}

    def _plot(self, ax: Any | None) -> Any:
        axes = axes_or_new(ax, **self.figure)
        self.draw(axes)
        return axes

    @abc.abstractmethod
    def draw(self, axes: Any) -> None:
        """Draw the result on these matplotlib axes."""
