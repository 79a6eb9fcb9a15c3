"""Queries that learn at run time which attributes they read."""

from __future__ import annotations

import attrs

from dpframework.queries.base import Query


@attrs.frozen
class ReadsAmong(Query):
    """A query whose inputs decide at run time which of some planned attributes it reads.

    A plan shows the planned attributes, and a run hides all others.

    Attributes
    ----------
    among
        The names of all attributes that the query may read, including the class attribute if it reads one. Empty if the
        query may read any attribute.
    """

    among: tuple[str, ...] = attrs.field(default=(), kw_only=True)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the query may read."""
        return self.among
