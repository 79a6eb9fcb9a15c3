"""The columns X and the outcomes y that an estimator is given, with their public or inferred schema."""

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
    """A warning that a fit is not covered by its claim of differential privacy, or costs more than it seems."""


@attrs.frozen(eq=False, repr=False)
class Outcomes:
    """The outcomes y, kept so that no cell decides how another cell is read.

    Attributes
    ----------
    cells
        The cells, in a container that a table reads: a list, a series or an array.
    dtype
        The type of the container that was given, which is public. None for a list, since it has no type.
    """

    cells: Any
    dtype: np.dtype[Any] | None

    @classmethod
    def of(cls, y: Any) -> Outcomes:
        """Return the outcomes in y: a series, a sequence, or anything that numpy reads as one dimension.

        Raises
        ------
        InputError
            If y is None.
        """
        if y is None:
            raise InputError("requires y to be passed, but the target y is None")
        import narwhals as nw

        series = _as_series(y)
        if series is not None:
            cells = series.to_list() if series.dtype in (nw.Boolean, nw.Object) else series.to_native()
            return cls(cells, np.asarray(series.head(0).to_native()).dtype)
        if isinstance(y, Sequence) and not isinstance(y, str | bytes):
            # A row may be written as a list of its only cell.
            cells = [cell[0] if isinstance(cell, list | tuple) and len(cell) == 1 else cell for cell in y]
            return cls(cells, None)
        with silenced(streams=True):
            given = np.asarray(y)
        array = np.asarray(column_or_1d(given, warn=True))  # a warning is about y's shape, which is public
        return cls(array, array.dtype)

    def __len__(self) -> int:
        """Return the number of rows (private)."""
        return len(self.cells)

    @property
    def array(self) -> NDArray[Any]:
        """All cells in an array, to infer a schema from. A single cell may decide the array's type."""
        with silenced(streams=True):
            return np.asarray(self.cells)

    @property
    def typed(self) -> Outcomes:
        """The same outcomes with the type of `array`, for a fit that is not private."""
        return attrs.evolve(self, dtype=self.array.dtype)


def keep_cells(column: Any) -> Any:
    """Return a column whose cells are read one by one, as its container holds them.

    numpy would choose one type for all cells of a list, or of a series with nulls. Then one more row could make two
    people's ids equal, since floats do not tell 2**53 from 2**53 + 1.
    """
    return column if isinstance(column, list | tuple) or _as_series(column) is not None else column_or_1d(column)


def _as_series(column: Any) -> Any:
    """Return a series of polars, pandas or pyarrow as a narwhals series, and None for anything else."""
    import narwhals as nw

    found = nw.from_native(column, series_only=True, pass_through=True)
    return found if isinstance(found, nw.Series) else None


@attrs.frozen
class InputColumns:
    """The columns of X, and the facts that an estimator was given about them.

    Attributes
    ----------
    schema
        The public schema. None if one is to be inferred.
    target
        The schema's name for y. None if it is the only attribute that X has no column for.
    names
        The names of the columns of X.
    named
        Whether `names` are names of the schema. The columns of an array are matched to the schema by position instead.
    """

    schema: Schema | None
    target: str | None
    names: Sequence[str]
    named: bool

    def with_class(self, columns: list[Any], outcomes: Outcomes) -> tuple[Schema, str]:
        """Return a schema of the columns, in their order, with the class last, and the name of the class.

        The outcomes are looked at only if the schema has no attribute for the class.

        Raises
        ------
        InputError
            If the schema does not describe the columns. If the class is to be inferred, also if y has missing values or
            a single class.
        ValueError
            If the class is to be inferred, and y holds fractions or infinite numbers.
        """
        known, target = self._attributes_of(columns)
        if target is not None:
            return known, target
        if self.schema is not None:
            _warn("the schema has no attribute for the class; its values come from y, so this fit is not private", 4)
        name, classes = _free_name(CLASS, known.names), outcomes.array
        if classes.dtype.kind in "fc":  # Only numbers can be continuous, and sorting texts to find out is slow.
            with silenced():  # scikit-learn may warn that there are many classes.
                check_classification_targets(classes)
        if any(value is None or value != value for value in classes.tolist()):
            raise InputError("y has missing values; every row needs a class")
        values = np.unique(classes)
        if len(values) < 2:
            raise InputError("y has 1 class; a classifier needs two or more")
        of_class = Categorical(name, values=[str(value) for value in values.tolist()])
        inferred = tuple(dict.fromkeys((*known.inferred, "classes: observed")))
        return attrs.evolve(known, attributes=(*known.attributes, of_class), inferred=inferred), name

    def with_number(self, columns: list[Any], outcomes: Outcomes) -> tuple[Schema, str]:
        """Return a schema of the columns, in their order, with the predicted number last, and that number's name.

        The outcomes are looked at only if the schema has no attribute for y.

        Raises
        ------
        InputError
            If the schema does not describe the columns, or if it has no attribute for y and y holds values that are not
            numbers.
        """
        known, target = self._attributes_of(columns)
        if target is not None:
            return known, target
        if self.schema is not None:
            _warn("the schema has no attribute for y; its bounds come from y, so this fit is not private", 4)
        try:
            numbers = np.asarray(outcomes.array, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("y has values that are not numbers; a regression needs numbers") from None
        name, low, high = _free_name(NUMBER, known.names), float(numbers.min()), float(numbers.max())
        bounds = Numeric(name, low, high if high > low else low + 1, bins=1)
        inferred = tuple(dict.fromkeys((*known.inferred, "bounds of y: observed")))
        return attrs.evolve(known, attributes=(*known.attributes, bounds), inferred=inferred), name

    def _attributes_of(self, columns: list[Any]) -> tuple[Schema, str | None]:
        """Return a schema of the columns and, if the given schema describes y, of y, with y's name there or None."""
        if self.schema is None:
            _warn(
                "no schema was given, so one is inferred from the data and this fit is not private; "
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
        """Return the schema's names for the columns of X, in their order, and its name for y, or None."""
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
            raise InputError(f"target '{self.target}' must be an attribute of the schema, and not a column of X")
        if self.target is None and len(others) > 1:
            shown = ", ".join(map(repr, others[:4]))
            raise InputError(
                f"the schema has several attributes that are not columns of X ({shown}); "
                "name the one that y holds with target="
            )
        return features, self.target or next(iter(others), None)


def _warn(sentence: str, calls: int) -> None:
    """Warn at the user's line that called `fit`, which is this number of calls above this function."""
    warnings.warn(sentence, PrivacyWarning, stacklevel=calls + 1)


def _plain(column: Any) -> Any:
    """Return a column in a form that polars reads.

    If the column can hold cells of several types, missing cells become None. If some of its cells are texts, all other
    cells become texts, too.
    """
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


def class_cells(target: Attribute, outcomes: Outcomes) -> tuple[Any, np.dtype[Any]]:
    """Return classes as the schema's labels write them, and the type of the predicted classes.

    That type is the type of y, with two exceptions. It is int64 if y is Boolean and the schema's labels are the numbers
    0 and 1. If y is a list, it follows from the labels.

    Raises
    ------
    InputError
        If y is Boolean or numeric, and the schema's labels are not. This follows from y's type, which is public.
    """
    dtype = _dtype_of_labels(target) if outcomes.dtype is None else _dtype_in_labels(target, outcomes.dtype)
    cells = outcomes.cells
    if isinstance(cells, np.ndarray) and cells.dtype.kind != "O":
        cells = cells.astype(str) if cells.dtype.kind == "b" else cells
    elif isinstance(cells, np.ndarray | list):
        cells = [str(cell) if isinstance(cell, bool | np.bool_) else cell for cell in cells]
    return cells, dtype


def _dtype_of_labels(target: Attribute) -> np.dtype[Any]:
    """Return the type of classes that are given in a list: Boolean or numeric if all labels are, or else text."""
    labels = [label.lower() for label in target.labels]
    if set(labels) <= {"false", "true"}:
        return np.dtype(np.bool_)
    if not all(_is_number(label) for label in labels):
        return np.array(target.cells).dtype
    return np.dtype(np.int64 if all(float(label).is_integer() for label in labels) else np.float64)


def _dtype_in_labels(target: Attribute, dtype: np.dtype[Any]) -> np.dtype[Any]:
    kind, labels = dtype.kind, {label.lower() for label in target.labels}
    if isinstance(target, Numeric) or kind not in "biuf" or labels & {"false", "true"}:
        return dtype
    numbers = {float(label) for label in labels if _is_number(label)}
    if kind == "b" and {0.0, 1.0} <= numbers:
        return np.dtype(np.int64)
    if kind == "b" or not numbers:
        what, shown = "Boolean" if kind == "b" else "numeric", ", ".join(map(repr, target.labels[:4]))
        numbered = f"'0' to '{len(target.labels) - 1}'"
        other = (
            "describe the class as Boolean in the schema"
            if kind == "b"
            else (f"for an ensemble of scikit-learn, which numbers the classes, describe them as {numbered}")
        )
        raise InputError(
            f"y is {what}, and class '{target.name}' of the schema has the values {shown}; "
            f"give y with these values, or {other}"
        )
    return dtype


def ordered_classes(target: Attribute, dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the class values in y's type, sorted, and their positions among the target's labels.

    If some label has no value of that type, such as a bin or a missing class, all classes are the labels as texts.
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
