"""Releases of many nodes in step, with the next request of every node released together.

A node is a generator, so that it reads as if it were alone: it yields what it asks for, and is sent what was released.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

from dpframework.run import PrivateTable

T = TypeVar("T")
Asked: TypeAlias = "tuple[PrivateTable, str, Mapping[str, Any]]"
Asking: TypeAlias = Generator[list[Asked], list[Any], T]


def release_in_step(nodes: Iterable[Asking[None]]) -> None:
    """Make the releases that nodes ask for, the first of each together, then the second, and so on.

    Parameters
    ----------
    nodes
        Each yields tables with steps and inputs, as `PrivateTable.release_many` takes them, and is sent their releases.
    """
    sent: list[tuple[Asking[None], Any]] = [(node, None) for node in nodes]
    while sent:
        asked: list[tuple[Asking[None], list[Asked]]] = []
        for node, released in sent:
            try:
                asked.append((node, node.send(released)))
            except StopIteration:
                continue
        found = iter(PrivateTable.release_many(one for _, own in asked for one in own))
        sent = [(node, [next(found) for _ in own]) for node, own in asked]
