"""The error bound of the supports of redescriptions, which are sums of the cells of a noisy table."""

from __future__ import annotations

import attrs

from dpframework.results.error_bounds import QUARTER, ErrorBound

SUPPORTS = "supports of redescriptions"
CHOSEN = "redescriptions are shown for their noisy counts, so that their supports are too large on average"


def bound_of_supports(bound: ErrorBound, cells: int, most: int | None = None) -> ErrorBound:
    """Return the error bound of sums of cells as one of supports, for any two descriptions fixed beforehand.

    A support is hidden by noise of a quarter of the table: so many rows does chance give two sides that each hold for
    half of them.

    Parameters
    ----------
    bound
        For the sums of as many cells as both sides hold in at most.
    cells
        How many these are.
    most
        The largest support that is shown, if a number of rows is asked for.
    """
    rows = bound.size.largest
    likely = None if rows is None else QUARTER * rows
    text = "a quarter of the table"
    if most is not None and (likely is None or most < likely):
        likely, text = float(most), f"the largest support that is shown, {most:,} rows"
    biases = [CHOSEN]
    if cells > 1:
        biases.insert(0, f"a support adds up to {cells:,} noisy cells, and fewer cells have less noise than is said")
    return attrs.evolve(bound, what=SUPPORTS, likely=likely, likely_text=text, biases=biases)
