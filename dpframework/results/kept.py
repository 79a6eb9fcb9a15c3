"""What results have in common: they are kept as JSON and read again, and some are drawn."""

from __future__ import annotations

import abc
import json
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from dpframework.facts.errors import InputError
from dpframework.facts.shown import Shown


class Kept(Shown, abc.ABC):
    """A result that is kept as JSON: `from_dict` reads what `to_dict` wrote."""

    __slots__ = ()

    #: What errors call it, with its article, such as "an estimate".
    called: ClassVar[str]

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form that `from_dict` reads."""

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Raises
        ------
        InputError
            If it is something else.
        """
        try:
            return cls.read(form)
        except InputError:
            raise
        except Exception:  # what a wrong form makes `read` raise depends on the class, which may be a plugin's
            raise InputError(f"this is not {cls.called} that dpframework wrote") from None

    @classmethod
    @abc.abstractmethod
    def read(cls, form: Mapping[str, Any]) -> Self:
        """Make it of the form; what a wrong form makes Python raise becomes one sentence in `from_dict`."""


def axes_or_new(ax: Any | None, **figure: Any) -> Any:
    """Return matplotlib axes to draw on: those that were given, else those of a new figure with these options.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plot needs matplotlib: pip install 'dpframework[plot]'") from error
    return pyplot.subplots(**figure)[1] if ax is None else ax


class Drawn(Kept):
    """A result that can be drawn too."""

    __slots__ = ()

    #: Options of a new figure.
    figure: ClassVar[Mapping[str, Any]] = {}

    def plot(self, ax: Any | None = None) -> Any:
        """Draw it, as its class says, and return the matplotlib axes.

        Parameters
        ----------
        ax
            Axes to draw on; without them, new ones.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        axes = axes_or_new(ax, **self.figure)
        self.draw(axes)
        return axes

    @abc.abstractmethod
    def draw(self, axes: Any) -> None:
        """Draw it on axes."""
