"""Queries that are told at run time which attributes they are about."""

from __future__ import annotations

import attrs

from dpframework.queries.base import Query


@attrs.frozen
class ReadsAmong(Query):
    """A query whose inputs decide at run time which of some planned attributes it reads.

    A plan shows the attributes, and a run hides the others.

    Attributes
    ----------
    among
        The names of all that it may read, a class among them; empty if that may be any.
    """

    among: tuple[str, ...] = attrs.field(default=(), kw_only=True)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those that it may read."""
        return self.among
