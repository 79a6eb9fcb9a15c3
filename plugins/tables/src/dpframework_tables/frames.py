"""Rows of codes as a dataframe of labels, Boolean values, and numbers that are drawn evenly within their bins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpframework.facts import Attribute, Boolean, Numeric, Schema
from dpframework_tables.sampling import Draws

if TYPE_CHECKING:
    import polars as pl


def frame_of(schema: Schema, codes: NDArray[Any], seed: int) -> pl.DataFrame:
    """Return a polars dataframe, with null where a value is missing.

    A numeric attribute gets whole numbers if its bounds and cuts are all whole numbers.

    Parameters
    ----------
    schema
        The public facts about the columns.
    codes
        The code of each attribute in each row, shape (rows, attributes).
    seed
        A public seed, by which numbers are drawn within their bins.
    """
    import polars as pl

    draw, found = Draws(seed), []
    for k, attribute in enumerate(schema):
        own = codes[:, k].astype(np.int64)
        column = pl.Series(attribute.name, _values(attribute, own, draw))
        gone = np.zeros(len(own), dtype=np.bool_) if attribute.missing_code is None else own == attribute.missing_code
        found.append(column.set(pl.Series(gone), None) if gone.any() else column)
    return pl.DataFrame(found)


def _values(attribute: Attribute, codes: NDArray[np.int64], draw: Draws) -> NDArray[Any]:
    if isinstance(attribute, Numeric):
        return _numbers(attribute, np.minimum(codes, len(attribute.edges) - 2), draw)
    if isinstance(attribute, Boolean):
        return np.asarray(codes == 1)
    return np.asarray(attribute.cells, dtype=np.str_)[codes]


def _numbers(attribute: Numeric, bins: NDArray[np.int64], draw: Draws) -> NDArray[Any]:
    """Return numbers below the upper end of their bin. Only whole numbers of the last bin may reach that end."""
    edges, at = np.array(attribute.edges), draw.numbers(len(bins))
    low, high = edges[bins], edges[bins + 1]
    if bool(np.all(edges == np.rint(edges))) and float(np.abs(edges).max()) < 2**53:
        last = bins == len(edges) - 2
        return np.asarray((low + np.floor(at * (high - low + last))).astype(np.int64))
    return np.asarray(np.minimum(low + at * (high - low), np.nextafter(high, low)))
