"""The columns and classes that an estimator is given, with their public or inferred schema."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from dpframework.facts import Attribute, Categorical, InputError, Numeric, Schema, nearest
from dpframework.tables import infer_schema, silenced

CLASS, NUMBER = "class", "number"


class PrivacyWarning(UserWarning):
    """A fit whose result is not covered by its claim of differential privacy."""


@attrs.frozen(eq=False, repr=False)
class Outcomes:
    """y, in which no cell decides how another one is read.

    Attributes
    ----------
    cells
        What a table reads: of a list or a series the container itself.
    dtype
        The type of the container, which is public; None for a list, which has none.
    """

    cells: Any
    dtype: np.dtype[Any] | None

    @classmethod
    def of(cls, y: Any) -> Outcomes:
        """Return y, a sequence, or else anything that numpy reads in one dimension.

        Raises
        ------
        InputError
            If there is none.
        """
        if y is None:
            raise InputError("requires y to be passed, but the target y is None")
        import narwhals as nw

        series = _as_series(y)
        if series is not None:
            cells = series.to_list() if series.dtype in (nw.Boolean, nw.Object) else series.to_native()
            return cls(cells, np.asarray(series.head(0).to_native()).dtype)
        if isinstance(y, Sequence) and not isinstance(y, str | bytes):
            return cls([_only(cell) for cell in y], None)
        with silenced(streams=True):
            given = np.asarray(y)
        array = np.asarray(column_or_1d(given, warn=True))  # of y's shape, which is public
        return cls(array, array.dtype)

    def __len__(self) -> int:
        """Return the number of rows (private)."""
        return len(self.cells)

    @property
    def array(self) -> NDArray[Any]:
        """All cells in an array, whose type may follow from a single one: to infer a schema from."""
        with silenced(streams=True):
            return np.asarray(self.cells)

    @property
    def typed(self) -> Outcomes:
        """The same with the type of the array, for a fit that is not private."""
        return attrs.evolve(self, dtype=self.array.dtype)


def _only(cell: Any) -> Any:
    """Return the cell of a row that is a list of one cell, as the rows of a column are written."""
    return cell[0] if isinstance(cell, list | tuple) and len(cell) == 1 else cell


def each_by_itself(column: Any) -> Any:
    """Return a column whose cells are read one by one, as its container holds them.

    numpy would choose one type for all cells of a list, and for those of a series where some are null. Then one row
    more could make two people's ids equal: floats do not tell 2**53 from 2**53 + 1.
    """
    return column if isinstance(column, list | tuple) or _as_series(column) is not None else column_or_1d(column)


def _as_series(column: Any) -> Any:
    """Return a series of polars, pandas or pyarrow for narwhals, None for anything else."""
    import narwhals as nw

    found = nw.from_native(column, series_only=True, pass_through=True)
    return found if isinstance(found, nw.Series) else None


@attrs.frozen
class InputColumns:
    """The columns of X, and the facts that an estimator was given about them.

    Attributes
    ----------
    schema
        The public schema; None if one is to be inferred.
    target
        The schema's name of the class; None if that is to be found.
    names
        The columns' names.
    named
        Whether they are the schema's: those of an array are by position.
    """

    schema: Schema | None
    target: str | None
    names: Sequence[str]
    named: bool

    def with_class(self, columns: list[Any], outcomes: Outcomes) -> tuple[Schema, str]:
        """Return a schema of the columns, in their order, and the class, and the class's name.

        Outcomes are looked at only if the schema does not have them.

        Raises
        ------
        InputError
            If the schema does not describe them, or the classes are of no use.
        ValueError
            If the classes are to be inferred, and are numbers with fractions, or not finite.
        """
        known, target = self._attributes_of(columns)
        if target is not None:
            return known, target
        if self.schema is not None:
            _warn("the schema has no attribute for the class: its values are read off y, so this fit is not private", 4)
        name = _free_name(CLASS, known.names)
        return _with_class(known, name, outcomes.array), name

    def with_number(self, columns: list[Any], outcomes: Outcomes) -> tuple[Schema, str]:
        """Return a schema of the columns, in their order, and the number that is predicted, and that one's name.

        Outcomes are looked at only if the schema does not have y.

        Raises
        ------
        InputError
            If the schema does not describe them, or y is to be inferred and has values that are no numbers.
        """
        known, target = self._attributes_of(columns)
        if target is not None:
            return known, target
        if self.schema is not None:
            _warn("the schema has no attribute for y: its bounds are read off y, so this fit is not private", 4)
        try:
            numbers = np.asarray(outcomes.array, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("y has values that are no numbers; a regression needs numbers") from None
        name, low, high = _free_name(NUMBER, known.names), float(numbers.min()), float(numbers.max())
        bounds = Numeric(name, low, high if high > low else low + 1, bins=1)
        inferred = tuple(dict.fromkeys((*known.inferred, "bounds of y: observed")))
        return attrs.evolve(known, attributes=(*known.attributes, bounds), inferred=inferred), name

    def _attributes_of(self, columns: list[Any]) -> tuple[Schema, str | None]:
        """Return the schema's attributes of the columns and of y, and y's name; an inferred one has no such facts."""
        if self.schema is None:
            _warn(
                "no schema was given: one is inferred from the data, so this fit is not private; "
                "write a public schema and pass it as schema=",
                5,
            )
            import polars as pl

            frame = pl.DataFrame({name: _plain(column) for name, column in zip(self.names, columns, strict=True)})
            return infer_schema(frame), None
        if self.schema.inferred:
            _warn("the schema was inferred from data, so this fit is not private; write a public schema", 5)
        features, target = self._features(self.schema)
        return self.schema.select(features if target is None else [*features, target]), target

    def _features(self, known: Schema) -> tuple[list[str], str | None]:
        """Return the schema's names of X's columns, in their order, and of the class, if it has that."""
        if self.named:
            features = list(self.names)
        else:
            features = [name for name in known.names if name != self.target][: len(self.names)]
        if len(features) < len(self.names):
            raise InputError(
                f"the schema describes {len(features)} columns, X has {len(self.names)}; describe them all"
            )
        for name in features:
            if name not in known:
                raise InputError(f"column '{name}' of X is not in the schema; {nearest(name, known.names)}")
        others = [name for name in known.names if name not in features]
        if self.target is not None and self.target not in others:
            raise InputError(f"target '{self.target}' must be an attribute of the schema, and no column of X")
        if self.target is None and len(others) > 1:
            shown = ", ".join(map(repr, others[:4]))
            raise InputError(
                f"the schema has more attributes than X has columns ({shown}); say by target= which is the class"
            )
        return features, self.target or next(iter(others), None)


def _warn(sentence: str, calls: int) -> None:
    """Warn at the user's line that called `fit`, with so many calls from there to here."""
    warnings.warn(sentence, PrivacyWarning, stacklevel=calls + 1)


def _plain(column: Any) -> Any:
    """Return a column for polars, with missing values as None and numbers among texts as texts."""
    if hasattr(column, "to_native"):
        if column.dtype.is_numeric():
            return column.to_numpy()
        values = column.to_list()
    elif column.dtype == object:
        values = column.tolist()
    else:
        return column
    values = [None if _is_missing(value) else value for value in values]
    mixed = any(isinstance(value, str) for value in values)
    return [str(value) if mixed and value is not None else value for value in values]


def _is_missing(value: Any) -> bool:
    """Tell whether a value is missing, that is None, NaN or pandas' NA."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _free_name(name: str, taken: Any) -> str:
    while name in taken:
        name += "_"
    return name


def _with_class(schema: Schema, name: str, classes: NDArray[Any]) -> Schema:
    """Add a class attribute whose values are those observed."""
    if classes.dtype.kind in "fc":  # only these may be continuous; sorting texts to find out is slow
        with silenced():  # it may warn of how many classes there are
            check_classification_targets(classes)
    if any(value is None or value != value for value in classes.tolist()):
        raise InputError("y has missing values; every row needs a class")
    if len(np.unique(classes)) < 2:
        raise InputError("y has 1 class; a classifier needs two or more")
    target = Categorical(name, values=[str(value) for value in np.unique(classes).tolist()])
    inferred = tuple(dict.fromkeys((*schema.inferred, "classes: observed")))
    return attrs.evolve(schema, attributes=(*schema.attributes, target), inferred=inferred)


def class_cells(target: Attribute, outcomes: Outcomes) -> tuple[Any, np.dtype[Any]]:
    """Return classes as the schema's labels write them, and their type: whole numbers if Booleans are labelled so.

    Raises
    ------
    InputError
        If y is Boolean or numeric, and no label is. It is known by y's type alone, which is public.
    """
    dtype = _dtype_of_labels(target) if outcomes.dtype is None else _dtype_in_labels(target, outcomes.dtype)
    return _booleans_as_texts(outcomes.cells), dtype


def _dtype_of_labels(target: Attribute) -> np.dtype[Any]:
    """Return the type of the classes of a y that has none: truths, numbers, or else texts."""
    labels = [label.lower() for label in target.labels]
    if set(labels) <= {"false", "true"}:
        return np.dtype(np.bool_)
    if not all(_is_number(label) for label in labels):
        return np.array(target.cells).dtype
    return np.dtype(np.int64 if all(float(label).is_integer() for label in labels) else np.float64)


def _booleans_as_texts(cells: Any) -> Any:
    if not isinstance(cells, np.ndarray | list):
        return cells
    if isinstance(cells, np.ndarray) and cells.dtype.kind != "O":
        return cells.astype(str) if cells.dtype.kind == "b" else cells
    return [str(cell) if isinstance(cell, bool | np.bool_) else cell for cell in cells]


def _dtype_in_labels(target: Attribute, dtype: np.dtype[Any]) -> np.dtype[Any]:
    kind, labels = dtype.kind, {label.lower() for label in target.labels}
    if isinstance(target, Numeric) or kind not in "biuf" or labels & {"false", "true"}:
        return dtype
    numbers = {float(label) for label in labels if _is_number(label)}
    if kind == "b" and {0.0, 1.0} <= numbers:
        return np.dtype(np.int64)
    if kind == "b" or not numbers:
        what, shown = "Boolean" if kind == "b" else "numeric", ", ".join(map(repr, target.labels[:4]))
        raise InputError(
            f"y is {what}, and class '{target.name}' of the schema has the values {shown}; "
            "give y with these values, or describe the class as Boolean in the schema"
        )
    return dtype


def ordered_classes(target: Attribute, dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the class values in y's type, sorted, and their positions among the target's labels.

    Where a label has no value of that type (a bin, a missing class) the classes are the labels.
    """
    labels = [label.lower() for label in target.labels]
    values: NDArray[Any] = np.array(target.cells)
    if set(labels) <= {"false", "true"} and dtype.kind in "biuf":
        values = np.array([label == "true" for label in labels]).astype(dtype)
    elif dtype.kind in "iuf" and all(_is_number(label) for label in labels):
        values = np.array([float(label) for label in labels]).astype(dtype)
    elif dtype.kind == "O":
        values = values.astype(object)
    order = np.argsort(values)
    return values[order], order


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
