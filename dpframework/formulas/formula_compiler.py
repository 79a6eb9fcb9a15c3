"""Numba kernels (compiled functions that compute scores), generated from formulas.

Two rules keep a kernel as precise as one written by hand. Let N be the number of rows in a part of the table, and n the
number of these rows that belong to one class. The sum of n log2 n over the classes, minus N log2 N, is computed as the
sum of n log2(n / N), since large terms would cancel. A cube root is computed from a logarithm, whose error grows with
the number. One step of Newton's method then leaves an error of two unit roundoffs. Numba itself does not check
divisions for 0 (its error model is "numpy"), since `quotient` does.

Each kernel's source is written to a file in the user's cache folder, so that numba keeps the compiled code beside it.
The file's name is the SHA-256 of the source. Python always runs the text that was generated here, whatever the file
holds.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframework.formulas.count_formula import (
    AGGREGATES,
    Formula,
    Operation,
    n,
    rows_of_part,
    sum_over_classes,
    x_log2_x,
)
from dpframework.formulas.score_structures import Parts, Scored
from dpframework.formulas.user_cache_folder import cache_folder, write_cached

_HEAD = '''"""Generated from the formula {text}."""
import math


def quotient(above, below):
    return above / below if below != 0 else 0.0


def x_log2_x(count):
    return count * math.log2(count) if count > 0 else 0.0


def cube_root(number):
    if number == 0:
        return 0.0
    near = math.exp(math.log(number) / 3)
    return near - (near * near * near - number) / (3 * near * near)


def score(counts):
{score}


def fill(counts, scores):
    for i in range(len(counts)):
{fill}
'''
_FILL = {
    True: """\
        total = 0.0
        for p in range(counts.shape[1]):
            total += score(counts[i, p])
        scores[i] = total""",
    False: "        scores[i] = score(counts[i])",
}


def kernel_source(shape: Scored) -> str:
    """Return the source of a kernel: `score` for one part or one set of cells, and `fill` for many of them."""
    if isinstance(shape, Parts):
        lines = _part_lines(shape)
    else:
        names = {cell: f"float(counts[{k}])" for k, cell in enumerate(shape.cells)}
        lines = [f"return {_expression(shape.body, names)}"]
    body = "\n".join(f"    {line}" for line in lines)
    return _HEAD.format(text=shape.text, score=body, fill=_FILL[isinstance(shape, Parts)])


#: Stands for n log2(n / N) of a class. Users cannot write this formula, since their x log2 x has one operand.
_SHARED = Formula(Operation.X_LOG_X, (n, rows_of_part))
#: The negative entropy of the classes, times the number of rows of the part.
_INFORMATION = sum_over_classes(x_log2_x(n)) - x_log2_x(rows_of_part)


def _part_lines(shape: Parts) -> list[str]:
    """Return the lines of code for a part's score.

    A first loop over the classes counts the part's rows. Sums that read this number are computed in a second loop.
    """
    body = shape.body.replaced({_INFORMATION: Formula(Operation.SUM, (_SHARED,))})
    aggregates = body.leaves(*AGGREGATES)
    names = {n: "n", rows_of_part: "total", **{found: f"sum{k}" for k, found in enumerate(aggregates)}}
    names[_SHARED] = "(n * math.log2(n / total) if n > 0 else 0.0)"
    late = [found for found in aggregates if rows_of_part in found.walk()]
    lines = ["total = 0.0", *(f"{names[found]} = 0.0" for found in aggregates)]
    for first, those in ((True, [one for one in aggregates if one not in late]), (False, late)):
        if not (first or those):
            continue
        lines += ["for c in range(len(counts)):", "    n = float(counts[c])", *(["    total += n"] if first else [])]
        for found in those:
            name, each = names[found], _expression(found.parts[0], names)
            joined = f"{name} + {each}" if found.operation is Operation.SUM else f"max({name}, {each})"
            lines.append(f"    {name} = {joined}")
    return [*lines, f"return {_expression(body, names)}"]


def _expression(formula: Formula, names: dict[Formula, str]) -> str:
    if formula in names:
        return names[formula]
    parts = [_expression(part, names) for part in formula.parts]
    match formula.operation:
        case Operation.CONSTANT:
            return repr(float(formula.constant or 0))
        case Operation.ADD | Operation.MULTIPLY:
            return f"({parts[0]} {formula.operation} {parts[1]})"
        case Operation.DIVIDE:
            return f"quotient({parts[0]}, {parts[1]})"
        case Operation.LEAST | Operation.MOST:
            return f"{formula.operation}({parts[0]}, {parts[1]})"
        case Operation.AT_LEAST:
            return f"(1.0 if {parts[0]} >= {parts[1]} else 0.0)"
        case Operation.ROOT if formula.value == 3:
            return f"cube_root({parts[0]})"
        case Operation.ROOT:
            return f"({parts[0]} ** {1 / int(str(formula.value))!r})"
        case _:
            return f"x_log2_x({parts[0]})"


Kernel = Callable[[NDArray[Any], NDArray[np.float64]], None]
#: Returns one score. The argument holds the counts of one part by class, shape (classes,), or of a set of cells, shape
#: (cells,).
ScoreKernel = Callable[[NDArray[Any]], float]


def kernel_of(shape: Scored) -> Kernel:
    """Return the compiled function `fill(counts, scores)`, which writes one score for each entry of the first axis.

    `counts` has the shape (scores, cells) or (scores, parts, classes). The function is compiled once per formula, and
    kept on disk if the user's cache folder can be written.
    """
    filled: Kernel = _compile_module(shape)["fill"]
    return filled


def score_kernel(shape: Scored) -> ScoreKernel:
    """Return the compiled score of one part, or of one set of cells. Other kernels can call it (see `compiled_for`)."""
    score: ScoreKernel = _compile_module(shape)["score"]
    return score


@functools.lru_cache(maxsize=256)
def plain_score(shape: Scored) -> Callable[[Sequence[int]], float]:
    """Return the function that `score_kernel` compiles, as plain Python. For a few scores, this saves loading numba.

    The results of both functions are the same, bit by bit, as a test checks. Both have the same text, and numba keeps
    the order of additions, fuses no addition with a product, and calls the same functions of the C library.
    """
    space: dict[str, Any] = {}
    exec(compile(kernel_source(shape), "<generated score>", "exec"), space)
    score: Callable[[Sequence[int]], float] = space["score"]
    return score


def compiled_for(shape: Scored, function: Callable[..., Any], **calls: Any) -> Callable[..., Any]:
    """Compile, for one formula, a function that calls `score` without saying which formula's score this is.

    Parameters
    ----------
    shape
        The formula.
    function
        A plain function of a module. It calls the functions in `calls` as if its module defined them.
    calls
        For each name that `function` calls without defining it, a compiled function: the formula's `score_kernel`, or
        another function that was compiled for the same formula.

    Examples
    --------
    >>> from dpframework.formulas import largest_over_classes
    >>> def both(first, second):
    ...     return score(first) + score(second)
    >>> formula = Parts(largest_over_classes(n))
    >>> largest = compiled_for(formula, both, score=score_kernel(formula))
    >>> largest(np.array([3, 1]), np.array([0, 2]))
    5.0
    """
    from numba import njit

    own = types.FunctionType(function.__code__, {**function.__globals__, **calls}, function.__name__)
    own.__module__ = function.__module__
    # Numba keeps compiled code in a file with this name. The name holds a digest of the kernel's source, so code for
    # another formula, or from another version of this generator, is in another file.
    own.__qualname__ = f"{function.__qualname__}_{hashlib.sha256(kernel_source(shape).encode()).hexdigest()[:20]}"
    compiled: Callable[..., Any] = njit(nogil=True, cache=Path(function.__code__.co_filename).exists())(own)
    return compiled


@functools.lru_cache(maxsize=256)
def _compile_module(shape: Scored) -> dict[str, Any]:
    """Return the module of a kernel, with its compiled functions."""
    from numba import njit

    text = kernel_source(shape)
    path = _source_file(text)
    module = types.ModuleType(f"dpframework_kernel_{hashlib.sha256(text.encode()).hexdigest()}")
    module.__file__ = str(path or "<generated kernel>")
    # Numba looks in this module for code that it compiled before.
    sys.modules[module.__name__] = module
    space = module.__dict__
    exec(compile(text, module.__file__, "exec"), space)
    for name in ("quotient", "x_log2_x", "cube_root"):
        space[name] = njit(inline="always", error_model="numpy")(space[name])
    for name in ("score", "fill"):
        space[name] = njit(nogil=True, cache=path is not None, error_model="numpy")(space[name])
    return space


def scores_of(shape: Scored, counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return scores, shape (scores,), from counts of shape (scores, cells) or (scores, parts, classes)."""
    table = np.ascontiguousarray(counts, dtype=np.int64)
    scores = np.zeros(len(table))
    kernel_of(shape)(table, scores)
    return scores


def _source_file(text: str) -> Path | None:
    """Return a file that holds a kernel's source; None if none can be written. Numba keeps compiled code beside it."""
    path = cache_folder("kernels") / f"{hashlib.sha256(text.encode()).hexdigest()}.py"
    return path if write_cached(path, text) else None
