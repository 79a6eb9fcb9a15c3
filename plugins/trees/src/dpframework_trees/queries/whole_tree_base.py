"""The base class of queries for whole trees, which count rows where that is enough, and else gather bits."""

from __future__ import annotations


class CountedOrPacked:
    """A query that adds up counts if `gives_counts`, and else gathers a bit for each row and test."""

    __slots__ = ()
    gives_counts: bool

    @property
    def gathers(self) -> bool:
        """Whether the query gathers rows: one bit for each row and test, unless it answers with counts."""
        return not self.gives_counts

    @property
    def has_tables(self) -> bool:
        """Whether cross tables are enough to answer."""
        return self.gives_counts
