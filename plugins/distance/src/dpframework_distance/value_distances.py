"""The result of DP-DILCA: the distance between any two values of each attribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import (
    Attribute,
    FileKind,
    InputError,
    NotebookText,
    Schema,
    csv_text,
    nearest,
    parsed_json,
    write_whole,
)
from dpframework.results import Matrix, StoredResult, axes_or_new, without_math

if TYPE_CHECKING:
    import polars as pl

EVEN = 1.2  # shares are about even if the most common value's share, times the number of values, is at most this


@final
@attrs.frozen(eq=False)
class ValueDistances(NotebookText):
    """The distances between the values of one attribute.

    Two values are near each other if the attributes of the context are distributed alike in the rows of either value.

    Attributes
    ----------
    attribute
        The attribute.
    context
        The names of the attributes that the distances were learned from. Empty if the distances are differences between
        the values' shares of the rows.
    matrix
        The distances, shape (codes, codes): symmetric, 0 on the diagonal, between 0 and 1.
    shares
        Each value's share of the rows by released marginals, shape (codes,). None if no marginals were released.
    signal
        The share of the differences between squared distances that is more than noise, from 0 to 1
        (see `signal_to_noise`).
    """

    attribute: Attribute
    context: tuple[str, ...]
    matrix: NDArray[np.float64]
    shares: NDArray[np.float64] | None = None
    signal: float = 1.0

    def between(self, one: str, other: str) -> float:
        """Return the distance between two values, given by their labels.

        Raises
        ------
        InputError
            If the attribute has no such value. The message names the nearest one.
        """
        labels = self.attribute.labels
        for value in (one, other):
            if value not in labels:
                raise InputError(f"attribute '{self.attribute.name}' has no value {value!r}; {nearest(value, labels)}")
        return float(self.matrix[labels.index(one), labels.index(other)])

    @property
    def _title(self) -> str:
        return f"{self.attribute.name}, from {', '.join(self.context) or 'shares of rows'}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        return {
            "attribute": self.attribute.name,
            "values": list(self.attribute.labels),
            "context": list(self.context),
            "distances": self.matrix.tolist(),
            **({} if self.shares is None else {"shares": self.shares.tolist(), "signal": self.signal}),
        }

    def blend(self) -> NDArray[np.float64]:
        """Return the distances blended with overlap, which has half of the weight or more, shape (codes, codes).

        Let d be the learned distance, s its `signal`, and [y != z] the overlap of two values, 1 where they differ. Then

            d'(y, z)**2 = (1 - w) [y != z] + w c d(y, z)**2.

        The weight w is s / 2, and s / 4 without a context: how common two values are says less about how alike they are
        than a context does.

        The factor c gives both parts the same mean over two random rows. By the released shares p, this mean is 1 - sum
        of p**2. So every attribute has the weight that it has in overlap, and noise is not scaled up. A sum of squared
        Euclidean distances is a squared Euclidean distance, so the result is Euclidean.

        Raises
        ------
        InputError
            If no marginals were released.
        """
        shares = self._known_shares
        overlap, squares = 1.0 - np.eye(len(self.matrix)), np.square(self.matrix)
        mean = float(shares @ squares @ shares)
        scaled = squares * (float(shares @ overlap @ shares) / mean) if mean > 0 else overlap
        weight = self.signal / (2 if self.context else 4)
        return np.asarray(np.sqrt((1 - weight) * overlap + weight * scaled))

    @property
    def unevenness(self) -> float:
        """The share of the most common value, times the number of values. It is 1 if all values are equally common.

        Raises
        ------
        InputError
            If no marginals were released.
        """
        return float(self._known_shares.max() * len(self._known_shares))

    @property
    def _known_shares(self) -> NDArray[np.float64]:
        """The shares of the rows. Refuse distances that come without shares."""
        if self.shares is not None:
            return self.shares
        raise InputError(
            f"the distances of '{self.attribute.name}' come without shares of the rows, which a blend with overlap "
            "needs; learn them with context = 'auto', 'tree' or 'none'"
        )

    def to_csv(self) -> str:
        """Write the matrix as CSV, with the values in the first row and column."""
        labels = self.attribute.labels
        rows = [[label, *row] for label, row in zip(labels, self.matrix.tolist(), strict=True)]
        return csv_text([self.attribute.name, *labels], rows)

    def to_frame(self) -> pl.DataFrame:
        """Return a polars dataframe with the columns `attribute`, `value`, `other`, `distance`, one row per pair."""
        import polars as pl

        labels = self.attribute.labels
        pairs = [(self.attribute.name, a, b, float(self.matrix[i, j])) for i, a in enumerate(labels)
                 for j, b in enumerate(labels)]  # fmt: skip
        kinds = {"attribute": pl.String, "value": pl.String, "other": pl.String, "distance": pl.Float64}
        return pl.DataFrame(pairs, schema=kinds, orient="row")

    def matrices(self) -> list[Matrix]:
        """Return the distances as a matrix, which reports show as a heat map."""
        labels = self.attribute.labels
        return [Matrix(f"distances of {self._title}", labels, labels, self.matrix.tolist())]

    def plot(self, ax: Any = None) -> Any:
        """Draw the matrix as a heat map, with values in the schema's order, and return the matplotlib axes.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        side = min(2 + 0.3 * len(self.matrix), 14)
        axes = axes_or_new(ax, figsize=(side + 1, side), layout="constrained")
        return without_math(self._draw_on(axes))

    def _draw_on(self, axes: Any) -> Any:
        image = axes.imshow(self.matrix, vmin=0, cmap="viridis")
        positions = range(len(self.matrix))
        axes.set_xticks(positions, self.attribute.labels, rotation=90)
        axes.set_yticks(positions, self.attribute.labels)
        axes.set_title(self._title, wrap=True)
        axes.figure.colorbar(image, ax=axes, label="distance")
        return axes

    def __str__(self) -> str:
        """Write the matrix as a table, with two digits per distance."""
        labels = [label if len(label) <= 18 else label[:17] + "…" for label in self.attribute.labels]
        left = max(map(len, labels))
        widths = [max(len(label), 4) for label in labels]
        lines = [self._title]
        lines.append(" ".join([" " * left, *(f"{label:>{w}}" for label, w in zip(labels, widths, strict=True))]))
        for label, row in zip(labels, self.matrix.tolist(), strict=True):
            cells = (f"{value:>{w}.2f}" for value, w in zip(row, widths, strict=True))
            lines.append(" ".join([f"{label:<{left}}", *cells]))
        return "\n".join(line.rstrip() for line in lines)


@final
@attrs.frozen(eq=False)
class LearnedDistances(StoredResult, Mapping[str, ValueDistances]):
    """The distances between the values of several attributes, by attribute.

    It is a mapping by the attributes' names: `distances["zone"]` holds the distances between the values of zone.

    Attributes
    ----------
    schema
        The public facts about the attributes that were looked at.
    learned
        The distances of each attribute that was a target, by its name.
    covered
        Whether the distances came from planned releases. False for the baseline that reads the rows freely.
    """

    name_in_errors = "a result of learned distances"
    schema: Schema
    learned: Mapping[str, ValueDistances]
    covered: bool = True

    def __getitem__(self, name: str) -> ValueDistances:
        """Return one attribute's distances."""
        if name not in self.learned:
            raise InputError(f"no distances of attribute {name!r} were learned; {nearest(name, self.learned)}")
        return self.learned[name]

    def __contains__(self, name: object) -> bool:
        """Tell whether an attribute's distances were learned."""
        return name in self.learned

    def __iter__(self) -> Iterator[str]:
        """Go through the attributes' names."""
        return iter(self.learned)

    def __len__(self) -> int:
        """Return the number of attributes."""
        return len(self.learned)

    def blend(self) -> dict[str, NDArray[np.float64]]:
        """Return each attribute's distances blended with overlap (see `ValueDistances.blend`), or overlap alone.

        The result is overlap alone where nearly all values are equally common: where the mean of `unevenness` over
        attributes is at most `EVEN`. Distances are learned first of all from how common values are. If shares are even,
        distances tell nothing, and the noise that is left would put an order on neighbours that are equally near.

        Raises
        ------
        InputError
            If no marginals were released.
        """
        every = self.learned.values()
        if np.mean([one.unevenness for one in every]) <= EVEN:
            return {name: 1.0 - np.eye(len(one.matrix)) for name, one in self.learned.items()}
        return {name: one.blend() for name, one in self.learned.items()}

    def to_frame(self) -> pl.DataFrame:
        """Return the distances of all attributes as one polars dataframe (see `ValueDistances.to_frame`)."""
        import polars as pl

        return pl.concat([distances.to_frame() for distances in self.learned.values()])

    def plot(self, ax: Any = None) -> Any:
        """Draw the heat map of each attribute, and return the matplotlib axes.

        Parameters
        ----------
        ax
            Axes to draw on, for one attribute. Without them, a new figure has one picture per attribute.

        Raises
        ------
        InputError
            If axes are given for several attributes.
        ImportError
            If matplotlib is not installed.
        """
        each = list(self.learned.values())
        if ax is not None or len(each) == 1:
            if len(each) != 1:
                raise InputError(
                    "axes can hold the plot of one attribute, not of several; plot one of them, or give no axes"
                )
            return each[0].plot(ax)
        across = min(len(each), 3)
        axes = axes_or_new(None, ncols=across, nrows=-(-len(each) // across), squeeze=False, layout="constrained",
                           figsize=(5 * across, 4 * -(-len(each) // across)))  # fmt: skip
        for one, place in zip(each, axes.flat, strict=False):
            without_math(one._draw_on(place))
        for place in axes.flat[len(each) :]:
            place.set_axis_off()
        return axes

    def matrices(self) -> list[Matrix]:
        """Return the distances of each attribute as a matrix."""
        return [matrix for distances in self.learned.values() for matrix in distances.matrices()]

    @property
    def contexts(self) -> dict[str, tuple[str, ...]]:
        """Each attribute's context."""
        return {name: distances.context for name, distances in self.learned.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form, with the schema, that `from_dict` reads."""
        facts = {} if self.covered else {"private": False}
        distances = [distances.to_dict() for distances in self.learned.values()]
        return {"schema": self.schema.to_dict(), **facts, "distances": distances}

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> LearnedDistances:
        """Return the distances that a form holds (see `StoredResult`)."""
        schema = Schema.from_dict(form["schema"])
        learned = {}
        for one in form["distances"]:
            attribute, matrix = schema[one["attribute"]], np.asarray(one["distances"], dtype=np.float64)
            if matrix.shape != (attribute.size, attribute.size) or not bool((matrix >= 0).all()):
                raise InputError(f"attribute '{attribute.name}' needs one distance per pair of its values")
            shares, signal = _shares_of(one, attribute)
            learned[attribute.name] = ValueDistances(attribute, tuple(one["context"]), matrix, shares, signal)
        return cls(schema, learned, bool(form.get("private", True)))

    @classmethod
    def from_json(cls, text: str, *, source: str = "distances") -> LearnedDistances:
        """Read the output of `to_json`.

        Raises
        ------
        InputError
            If the text is not such output.
        """
        try:
            return cls.from_dict(parsed_json(text))
        except InputError as error:
            raise InputError(f"{source}: {error}") from None

    def write_csv(self, folder: Path | str) -> None:
        """Write one CSV file per attribute into a folder that exists.

        Raises
        ------
        InputError
            If the folder does not exist, or holds another file with such a name.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise InputError(f"{folder}: there is no such folder; make it first")
        for number, (name, distances) in enumerate(self.learned.items(), start=1):
            safe = "".join(c if c.isalnum() or c in " ._-" else "_" for c in name)
            content = distances.to_csv()
            kind = FileKind.of_beginning("a table of distances", content.partition("\n")[0])
            write_whole(folder / f"{number:02d} {safe}.csv", content, kind)

    def __str__(self) -> str:
        """Write one table per attribute."""
        head = "" if self.covered else "not private\n\n"
        return head + "\n\n".join(map(str, self.learned.values()))


def _shares_of(form: Mapping[str, Any], attribute: Attribute) -> tuple[NDArray[np.float64] | None, float]:
    """Return the shares of an attribute's values and the signal of its distances, as `to_dict` writes them."""
    if "shares" not in form:
        return None, 1.0
    shares, signal = np.asarray(form["shares"], dtype=np.float64), float(form["signal"])
    if shares.shape != (attribute.size,) or not bool((shares >= 0).all()) or not 0 <= signal <= 1:
        raise InputError(f"attribute '{attribute.name}' needs one share per value, and a signal from 0 to 1")
    return shares, signal
