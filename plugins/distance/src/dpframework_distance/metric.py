"""A metric between rows: the square root of the sum, over attributes, of squared distances between values."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts import InputError
from dpframework.tables import Table, table_from_columns, table_from_frame
from dpframework_distance.value_distances import LearnedDistances

BLOCK = 1024  # rows per block, so that the distances between two blocks fit into the processor's cache
MOST_PAIRS = 1 << 27  # the most distances that are written out unless you ask for more: 1 GiB

#: Rows as a table, a dataframe, columns by name, or an array of codes of shape (rows, attributes).
RowsLike: TypeAlias = Any


@final
@attrs.frozen(eq=False, slots=False)
class CategoricalMetric:
    """The distance sqrt(sum over attributes of d(value, value)**2) between rows (Ienco, Pensa and Meo 2012).

    The metric is public if its distances are. It does not protect the rows that it is applied to: a distance between
    two private rows is private, too.

    Attributes
    ----------
    distances
        The learned distances of each attribute's values. The metric looks at these attributes.
    blend
        Whether each attribute's distances are blended with overlap, which is 1 between values that differ (see
        `LearnedDistances.blend`).
    """

    distances: LearnedDistances
    blend: bool = False

    def __attrs_post_init__(self) -> None:
        """Refuse distances of no attribute, and a blend of distances that come without shares."""
        if not len(self.distances):
            raise InputError("a metric needs the distances of at least one attribute")
        _ = self._matrices  # raises if a blend lacks shares

    def __call__(self, one: RowsLike, other: RowsLike) -> float:
        """Return the distance between two rows of codes, as scikit-learn calls a `metric`.

        Also give scikit-learn `algorithm="brute"`, since its trees first try a metric on rows of their own. For many
        rows `pairwise` (with metric="precomputed") and `embed` are much faster.

        Raises
        ------
        InputError
            If a row does not have one code per attribute, or a code is not in its domain.
        """
        left, right = (self.encode(np.asarray(row)[np.newaxis]) for row in (one, other))
        return float(self._between(left, right)[0, 0])

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes that the metric looks at."""
        return tuple(self.distances)

    def encode(self, rows: RowsLike) -> NDArray[np.int64]:
        """Return rows as codes of the metric's attributes, shape (rows, attributes).

        Parameters
        ----------
        rows
            A `Table` with these attributes, a dataframe, a mapping of columns, or an array of codes. Codes may be
            floats without a fraction, as scikit-learn's `OrdinalEncoder` makes them.

        Raises
        ------
        InputError
            If an attribute is missing, or a value is not in its domain.
        """
        if not isinstance(rows, Table | np.ndarray | list | tuple):
            if isinstance(rows, Mapping) and (lacking := [name for name in self.attributes if name not in rows]):
                raise InputError(f"the columns lack attribute '{lacking[0]}', which the metric reads")
            schema = attrs.evolve(self.distances.schema.select(self.attributes), rows=None, max_rows=None)
            read = table_from_columns if isinstance(rows, Mapping) else table_from_frame
            rows = read(rows, schema, out_of_domain="error")  # a row that the schema does not hold has no distance
        if isinstance(rows, Table):
            for name in self.attributes:
                if rows.schema[name] != self.distances[name].attribute:
                    raise InputError(f"attribute '{name}' of the table is not the one whose distances were learned")
            return np.asarray(rows.codes[[rows.schema.index(name) for name in self.attributes]].T, dtype=np.int64)
        sizes = np.array([self.distances[name].attribute.size for name in self.attributes])
        codes = whole_numbers(rows, len(sizes))
        if len(codes) and not bool(((codes >= 0) & (codes < sizes)).all()):
            raise InputError("a code is outside its attribute's domain; encode the rows with the metric's schema")
        return codes

    @functools.cached_property
    def _matrices(self) -> list[NDArray[np.float64]]:
        if self.blend:
            blended = self.distances.blend()
            return [blended[name] for name in self.attributes]
        return [self.distances[name].matrix for name in self.attributes]

    @functools.cached_property
    def _squares(self) -> list[NDArray[np.float64]]:
        return [np.square(matrix) for matrix in self._matrices]

    def blocks(
        self, rows: RowsLike, others: RowsLike | None = None, *, block: int = BLOCK
    ) -> Iterator[tuple[slice, slice, NDArray[np.float64]]]:
        """Yield the distances between blocks of rows, with their positions, so that memory grows with one block only.

        Without `others`, the distances are between the rows themselves, and each pair of blocks comes once.
        """
        left = self.encode(rows)
        right = left if others is None else self.encode(others)
        for i in range(0, len(left), block):
            for j in range(i if others is None else 0, len(right), block):
                here, there = slice(i, min(i + block, len(left))), slice(j, min(j + block, len(right)))
                yield here, there, self._between(left[here], right[there])

    def _between(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
        from dpframework_distance.kernels import add_squares

        total = np.zeros((len(left), len(right)))
        for k, squares in enumerate(self._squares):
            add_squares(np.ascontiguousarray(left[:, k]), np.ascontiguousarray(right[:, k]), squares, total)
        return np.sqrt(total)

    def pairwise(
        self, rows: RowsLike, others: RowsLike | None = None, *, large: bool = False, dtype: Any = np.float64
    ) -> NDArray[Any]:
        """Return all distances, shape (rows, others).

        Parameters
        ----------
        rows, others
            See `encode`. Without `others`, the distances are between the rows themselves.
        large
            Allow a matrix of more than 2**27 distances (1 GiB in float64).
        dtype
            The dtype of the matrix. float32 halves its size.

        Raises
        ------
        InputError
            If the matrix has more distances than this, and `large` is not set.
        """
        left = self.encode(rows)
        right = left if others is None else self.encode(others)
        _require_asked(len(left) * len(right), large)
        matrix = np.empty((len(left), len(right)), dtype=dtype)
        for here, there, found in self.blocks(left, None if others is None else right):
            matrix[here, there] = found
            if others is None:
                matrix[there, here] = found.T
        return matrix

    def condensed(self, rows: RowsLike, *, large: bool = False) -> NDArray[np.float64]:
        """Return the distances between the rows in scipy's condensed form, shape (n (n - 1) / 2,).

        More than 2**27 distances are refused unless `large` is set.
        """
        codes = self.encode(rows)
        n = len(codes)
        _require_asked(n * (n - 1) // 2, large)
        flat = np.empty(n * (n - 1) // 2)
        for here, there, found in self.blocks(codes):
            for i in range(here.start, here.stop):
                first = max(there.start, i + 1)
                begin = n * i - i * (i + 1) // 2 + first - i - 1
                flat[begin : begin + there.stop - first] = found[i - here.start, first - there.start :]
        return flat

    def linkage(self, rows: RowsLike, *, large: bool = False) -> NDArray[np.float64]:
        """Return Ward's clustering of the rows, as scipy's linkage matrix.

        More than 2**27 distances are refused unless `large` is set.
        """
        from scipy.cluster.hierarchy import ward

        return np.asarray(ward(self.condensed(rows, large=large)))

    def clusters(self, rows: RowsLike, number: int, *, large: bool = False) -> NDArray[np.int64]:
        """Return the cluster of each row, from 0, of Ward's clustering with `number` clusters.

        Raises
        ------
        InputError
            If there are too many distances, or if `number` is not from 1 to the number of rows.
        """
        from scipy.cluster.hierarchy import fcluster

        codes = self.encode(rows)
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(codes):
            raise InputError(f"number is {number!r}; a whole number of clusters, at most the number of rows, is needed")
        if len(codes) == 1:
            return np.zeros(1, dtype=np.int64)
        merges = self.linkage(codes, large=large)
        last = len(codes) - number - 1  # the last merge that is made; "maxclust" may make more before scipy 1.14
        height = merges[last, 2] if last >= 0 else -1.0
        return np.asarray(fcluster(merges, height, criterion="distance") - 1, dtype=np.int64)

    @functools.cached_property
    def points(self) -> tuple[NDArray[np.float64], ...]:
        """Each attribute's values as points, whose Euclidean distances are the learned ones (see `coordinates`)."""
        return tuple(coordinates(matrix) for matrix in self._matrices)

    def embed(self, rows: RowsLike) -> NDArray[np.float64]:
        """Return rows as points, shape (rows, dimensions), whose Euclidean distances are the metric's."""
        codes = self.encode(rows)
        return np.concatenate([points[codes[:, k]] for k, points in enumerate(self.points)], axis=1)


def coordinates(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points with these distances, shape (values, dimensions), the dimension of the largest spread first.

    This is classical scaling (Crippen and Havel 1978). The Gram matrix of points centred at their mean is -J D2 J / 2,
    with D2 the squared distances and J = I - 1/n. Its eigenvectors, scaled by the square roots of their eigenvalues,
    are the points. Learned distances are Euclidean, so no eigenvalue is negative, except by rounding.

    Examples
    --------
    >>> line = coordinates(np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]]))
    >>> line.shape, round(float(abs(line[0, 0] - line[2, 0])), 9)
    ((3, 1), 3.0)
    """
    squares = np.square(distances)
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, np.newaxis] + squares.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    kept = np.flatnonzero(values > 1e-12 * max(values.max(initial=0.0), 1e-300))[::-1]
    points = vectors[:, kept] * np.sqrt(values[kept])
    # an eigenvector is known up to its sign: its largest coordinate is made positive, so that results repeat
    signs = np.sign(points[np.abs(points).argmax(axis=0), np.arange(len(kept))])
    return np.asarray(points * signs)


def whole_numbers(rows: Any, attributes: int) -> NDArray[np.int64]:
    """Return an array of codes as integers.

    Raises
    ------
    InputError
        If it does not hold whole numbers, with one column per attribute.
    """
    given = np.asarray(rows)
    whole = given.dtype.kind in "iu" or (given.dtype.kind == "f" and bool((given == np.rint(given)).all()))
    if given.ndim != 2 or given.shape[1] != attributes or not whole:
        raise InputError(f"codes must be whole numbers of shape (rows, {attributes}), one column per attribute")
    return given.astype(np.int64)


def _require_asked(pairs: int, large: bool) -> None:
    if pairs > MOST_PAIRS and not large:
        raise InputError(
            f"{pairs:,} distances take {pairs * 8 / 2**30:.1f} GiB; iterate over blocks(), embed the rows, or set "
            "large=True"
        )
