"""Releases of many nodes in step, where the next requests of all nodes are released together.

Each node is a generator, so its code reads as if it were the only node. It yields its requests, and is sent their
releases.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

from dpframework.run import PrivateTable

T = TypeVar("T")
Request: TypeAlias = "tuple[PrivateTable, str, Mapping[str, Any]]"
Requests: TypeAlias = Generator[list[Request], list[Any], T]


def release_in_step(nodes: Iterable[Requests[None]]) -> None:
    """Make the releases that nodes request: the first requests of all nodes together, then the second, and so on.

    Parameters
    ----------
    nodes
        Generators that yield lists of tables, steps and inputs, as `PrivateTable.release_many` takes them, and are sent
        the releases.
    """
    sent: list[tuple[Requests[None], Any]] = [(node, None) for node in nodes]
    while sent:
        requested: list[tuple[Requests[None], list[Request]]] = []
        for node, released in sent:
            try:
                requested.append((node, node.send(released)))
            except StopIteration:
                continue
        found = iter(PrivateTable.release_many(one for _, own in requested for one in own))
        sent = [(node, [next(found) for _ in own]) for node, own in requested]
