"""Plans in which compositions stand within other ones, mostly up to three deep, on which accountants are tried.

An accountant may look at the kinds of a plan's nodes, and be wrong only where one kind stands within another.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms import DiscreteLaplace, Gaussian, PermuteAndFlip
from dpframework.plan.nodes import Node, Step, either, parallel, post, repeat, sample, sequential, step
from dpframework.queries import Count, Query, Sensitivity
from dpframework.tables.encoded_row_blocks import Block
from dpframework.verify.accountants.accountant_plans import LARGE, PERSON, A, Case

_DEEP = ("a sequence", "a choice", "parts") * 3  # nine compositions, as in the plan of a tree of three levels
_SIDES = ("0.25", "0.5")  # the epsilons of the releases beside the expensive part


@attrs.frozen
class _Votes(Query):
    """The histogram of `a` with one more row that is false, as scores of two candidates.

    If a row with a = true is added to an empty table, the first candidate becomes exp(epsilon) times as likely. A
    selection may not lose more.
    """

    name = "votes"
    answer_length = 2
    sensitivities = (Sensitivity("linf", 1, 1, rise=1, fall=0, source="a row adds 1 to one of the scores"),)

    def count(self, block: Block, **inputs: Any) -> NDArray[Any]:
        """Return both scores."""
        ill = int(block.codes("a").sum())
        return np.array([ill, len(block.codes("a")) - ill + 1])


def _select(name: str, epsilon: Any) -> Step:
    """Return a selection. It has only two outputs, so that all outputs of many selections can be listed."""
    return step(name, _Votes(), PermuteAndFlip(epsilon))


def _beside(depth: int) -> tuple[Step, Step]:
    """Return two cheap releases that stand beside the expensive part at a depth."""
    first, second = (_select(f"{side}{depth}", epsilon) for side, epsilon in zip("ab", _SIDES, strict=True))
    return first, second


def _choose(node: Node, depth: int) -> Node:
    first, second = _beside(depth)
    return either(first, node, second)


def _split(node: Node, depth: int) -> Node:
    return parallel(_beside(depth)[0], node, by=A, name=f"parts {depth}")


def _follow(node: Node, depth: int) -> Node:
    first, second = _beside(depth)
    return sequential(first, post(f"p{depth}", [first.name]), node, second)


#: The compositions, each with a function that puts a node into one. The function is also given the depth, from which
#: it makes the names of other nodes, so that they differ from those at other depths.
_WITHIN: Mapping[str, Callable[[Node, int], Node]] = {
    "a repeat": lambda node, depth: repeat(2, node),
    "a choice": _choose,
    "parts": _split,
    "a sequence": _follow,
    "a sample": lambda node, depth: sample("0.3", node, name=f"sample {depth}"),
}


def _nest(text: str, leaf: Node, around: tuple[str, ...], **case: Any) -> Case:
    """Return the case of a release within compositions, the innermost of which comes first.

    The exact loss is that of a plan with the expensive branch in place of each choice.
    """
    node = spent = leaf
    for depth, name in enumerate(around):
        node = _WITHIN[name](node, depth)
        spent = spent if name == "a choice" else _WITHIN[name](spent, depth)
    return Case("nested", " in ".join((text, *around)), node, spent=spent, **case)


@functools.cache
def nested_cases() -> tuple[Case, ...]:
    """Return the plans: a selection that is nested up to three deep, in a deep tree, and two deep for people."""
    leaf = _select("n", 1)
    two, three = (tuple(itertools.permutations(_WITHIN, depth)) for depth in (2, 3))
    found = [_nest("a selection", leaf, around) for around in (*((one, one) for one in _WITHIN), *two, *three, _DEEP)]
    return (*found, *(_nest("a selection", leaf, around, unit=PERSON) for around in two))


@functools.cache
def nested_noise() -> tuple[Case, ...]:
    """Return plans with little Gaussian noise that is nested two deep: its rho converts to an epsilon near its loss."""
    leaf = step("n", Count(), Gaussian(LARGE))
    return tuple(_nest("little Gaussian noise", leaf, around) for around in itertools.permutations(_WITHIN, 2))


def _repeated(times: int, epsilon: Any) -> Node:
    return repeat(times, step("n", Count(), DiscreteLaplace(epsilon)))


#: First plans, each with the plans from which its output chooses the second one. Which of these reveals more depends
#: on that output.
CHOSEN: tuple[tuple[Node, tuple[Node, ...]], ...] = (
    (_repeated(1, 1), (_repeated(1, 2), _repeated(16, "0.25"))),
    (_repeated(1, "0.5"), (_repeated(1, 1), _repeated(4, "0.5"), _repeated(16, "0.125"))),
    (_repeated(1, 2), (_repeated(1, 3), _repeated(6, 1))),
)
