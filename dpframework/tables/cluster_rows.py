"""What this side of a cluster knows of rows: where the pieces of a table lie, and how some of its rows were made."""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from typing import Any, final

import attrs

from dpframework.facts.attributes import Attribute
from dpframework.facts.cuts import Cut
from dpframework.facts.descriptions import Cases
from dpframework.tables.files import Piece
from dpframework.tables.holder import Derivation, Read


@attrs.define(eq=False)
class OpenedTable:
    """A table on the cluster: its pieces, what was found in each, and which worker holds which."""

    number: int
    pieces: list[Piece]
    key: bytes
    read: dict[int, Read] = attrs.field(factory=dict)
    places: dict[int, str] = attrs.field(factory=dict)
    dropped: list[int] = attrs.field(factory=list)

    def held_by(self, address: str) -> list[int]:
        """Return the pieces that a worker holds."""
        return [piece for piece, place in self.places.items() if place == address]


@final
@attrs.frozen(eq=False, repr=False, weakref_slot=True)
class ClusterRows:
    """Some rows of a table on a cluster.

    Attributes
    ----------
    table, number
        Of which table, and their number.
    lineage
        How they were made, from the whole table on.
    kept
        What queries have kept of their sums (private).
    around
        What is kept of the rows that these are a part of, and of its other parts (private).
    """

    table: OpenedTable
    number: int
    lineage: tuple[Derivation, ...] = ()
    kept: dict[Hashable, Any] = attrs.field(factory=dict)
    around: tuple[dict[Hashable, Any], list[dict[Hashable, Any]]] | None = None

    def made(self, by: Cut, numbers: tuple[int, ...], attribute: Attribute | None) -> list[ClusterRows]:
        """Return handles of the parts of a cut, or of the same rows with one more attribute: so many, by number.

        When one is not used any more, the workers are told to forget it.
        """
        step = Derivation(self.number, numbers, by, attribute)
        kept: list[dict[Hashable, Any]] = [{} for _ in numbers]
        parts = attribute is None and isinstance(by, Attribute | Cases)  # and each row is in one
        found = []
        for number, own in zip(numbers, kept, strict=True):
            around = (self.kept, [other for other in kept if other is not own]) if parts else None
            one = ClusterRows(self.table, number, (*self.lineage, step), own, around)
            weakref.finalize(one, self.table.dropped.append, number).atexit = False
            found.append(one)
        return found

    def __repr__(self) -> str:
        """Show nothing."""
        return "ClusterRows(rows are private)"
