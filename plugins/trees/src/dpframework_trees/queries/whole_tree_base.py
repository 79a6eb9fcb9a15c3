"""The base class of queries for whole trees, which count rows where that is enough, and else gather bits."""

from __future__ import annotations


class CountedOrPacked:
    """A query that adds up counts if `counted`, and else gathers a bit for each row and test."""

    __slots__ = ()
    counted: bool

    @property
    def gathers(self) -> bool:
        """Whether the query gathers rows: one bit for each row and test, unless it answers with counts."""
        return not self.counted

    @property
    def tabled(self) -> bool:
        """Whether cross tables are enough to answer."""
        return self.counted
