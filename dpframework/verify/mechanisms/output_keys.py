"""Outputs of mechanisms (numbers, arrays, texts or collections) as keys, as numbers, and the step between numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms import Calibration, Mechanism
from dpframework.mechanisms.randomness import SeededRandomness

NUMBERS = (np.ndarray, np.generic, int, float)
LOOKED_AT = 48  # how many numbers show the step between outputs
SAME = 1e-9  # numbers that differ by less than this share of the largest one are taken for equal


def output_key(output: Any) -> Any:
    """Return a key that can be hashed. Outputs with the same key are equal.

    Arrays and collections with the same key also have the same type. The numbers 1 and 1.0 have the same key.
    The key of an array consists of its shape, type and bytes. The key of a collection consists of its class and the
    keys of its parts, in order.

    Examples
    --------
    >>> output_key({"counts": [1, 2]})
    ('dict', (('counts', ('list', (1, 2))),))
    """
    if isinstance(output, np.ndarray):
        return output.shape, output.dtype.str, output.tobytes()
    kind = type(output).__name__
    if isinstance(output, Mapping):
        return kind, tuple((key, output_key(part)) for key, part in output.items())
    if isinstance(output, list | tuple):
        return kind, tuple(map(output_key, output))
    return output


def puts_out_numbers(mechanism: Mechanism, answer: Any, calibration: Calibration) -> bool:
    """Tell whether a mechanism's outputs are numbers or arrays of the answer's shape, judged by one output."""
    if mechanism.selects or not isinstance(answer, NUMBERS):
        return False
    output = mechanism.release(answer, calibration, SeededRandomness(0).handed(mechanism.assumptions))
    return isinstance(output, NUMBERS) and np.shape(output) == np.shape(answer)


def exchange_last_parts(one: Any, other: Any) -> tuple[Any, Any]:
    """Return two collections, each with the last half of the other's parts.

    Other outputs are returned as they are, and so are lists of different lengths and mappings with different keys.

    Examples
    --------
    >>> exchange_last_parts([1, 2, 3], [4, 5, 6])
    ([1, 5, 6], [4, 2, 3])
    """
    if type(one) is not type(other):
        return one, other
    if isinstance(one, Mapping) and list(one) == list(other):
        last = list(one)[len(one) // 2 :]
        return {**one, **{key: other[key] for key in last}}, {**other, **{key: one[key] for key in last}}
    if type(one) in (list, tuple) and len(one) == len(other):
        half = len(one) // 2
        return one[:half] + other[half:], other[:half] + one[half:]
    return one, other


def is_array_like(output: Any, answer: NDArray[Any]) -> bool:
    """Tell whether an output is an array of numbers with the shape of an answer."""
    return isinstance(output, np.ndarray) and output.shape == answer.shape and output.dtype.kind in "iuf"


def output_step(mechanism: Mechanism, answer: NDArray[Any], calibration: Calibration) -> float:
    """Return the step of the lattice on which a mechanism's outputs lie, in units of the answer.

    The step is `Calibration.unit` or any larger number, since a mechanism may put out real answers as whole numbers, or
    on a grid of its own. If the outputs that are drawn do not lie on a wider lattice, the step is the unit.
    """
    unit = float(calibration.unit)
    if calibration.facts.integer or not puts_out_numbers(mechanism, answer, calibration):
        return unit
    handed = SeededRandomness(19).handed(mechanism.assumptions)
    step, numbers = 0.0, 0
    first: float | None = None
    while numbers < LOOKED_AT:
        drawn = output_numbers(mechanism.release(answer, calibration, handed))
        numbers += max(drawn.size, 1)
        for number in drawn[np.isfinite(drawn)].tolist():
            first = number if first is None else first
            step = _common_step(step, abs(number - first), max(unit / 2, SAME * max(abs(number), abs(first))))
            if 0 < step <= unit:
                return unit
    return max(step, unit)


def _common_step(one: float, other: float, least: float) -> float:
    """Return the largest number of which both numbers are multiples, where numbers below `least` count as 0."""
    while other > least:
        one, other = other, one % other
        if other > one - least:
            other = 0.0  # a multiple, up to rounding
    return one


def output_numbers(output: Any) -> NDArray[np.float64]:
    """Return the numbers in an output in their order, without texts and other values, shape (numbers,).

    Examples
    --------
    >>> output_numbers({"counts": [1, 2], "text": "few"}).tolist()
    [1.0, 2.0]
    >>> output_numbers("few").tolist()
    []
    """
    if isinstance(output, NUMBERS):
        return np.asarray(output, dtype=np.float64).ravel()
    return np.fromiter(_parts(output), dtype=np.float64)


def _parts(output: Any) -> Iterator[float]:
    if isinstance(output, Mapping):
        output = list(output.values())
    elif attrs.has(type(output)):
        output = [getattr(output, field.name) for field in attrs.fields(type(output))]
    if isinstance(output, list | tuple):
        for part in output:
            yield from _parts(part)
    elif isinstance(output, NUMBERS):
        yield from np.asarray(output, dtype=np.float64).ravel().tolist()


def signs_in_histograms(noise: NDArray[np.float64], sizes: Sequence[int]) -> list[tuple[str, Any, Any]]:
    """Return the signs of the differences between the noise of two cells, one sign for each of two histograms.

    The noise of several histograms may be drawn so that their sums agree. Their cells are then correlated. But two
    cells of one histogram can be exchanged, so either sign is equally likely, whatever the sign in the other histogram.

    Parameters
    ----------
    noise
        The noise of all cells of the histograms, shape (draws, cells).
    sizes
        The number of cells of each histogram.
    """
    places = [sum(sizes[:k]) for k, size in enumerate(sizes) if size > 1][:2]
    signs = [np.sign(noise[:, place] - noise[:, place + 1]) for place in places]
    return [("between histograms", signs[0], signs[1])] if len(signs) == 2 else []
