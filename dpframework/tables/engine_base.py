"""Engines, which hold the private rows and count them, block by block or in a database.

A miner never sees an engine. An engine needs only a few operations on opaque handles of rows, and the rows may be on
other machines. So a plugin can add an engine for a cluster without a change to any miner.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.facts.row_partitions import Cut
from dpframework.tables.count_width import in_64_bits
from dpframework.tables.encoded_row_blocks import Block
from dpframework.tables.open_attribute_keys import add_counts

if TYPE_CHECKING:
    from dpframework.tables.coded_table import Table
    from dpframework.tables.unread_table_files import TableFiles

Rows: TypeAlias = Any  # an engine's opaque handle of some rows


class Engine(abc.ABC):
    """Holds private rows behind opaque handles and evaluates counting functions on their blocks.

    A subclass defines `load`, `split`, `derive`, and either `map` or `counts`. It defines `map` if it can hand over a
    function's result for each block. If only sums leave the place where the rows are, it defines `counts` and sets
    `gathers` to False. Plans with queries that gather rows are then refused.
    """

    name: ClassVar[str]
    #: Whether a study that reads a table for this engine keeps the table in files, not memory (see `read_table`).
    mapped: ClassVar[bool] = False
    #: Whether the engine reads files itself, by `open`. A study then hands it `TableFiles`, and reads no table.
    reads_files: ClassVar[bool] = False
    #: Whether the engine reads tables of a database, by `open` of a `DatabaseTable`.
    reads_tables: ClassVar[bool] = False
    #: Whether `open` bounds how many rows each unit contributes. Tables that an engine is given are bounded already.
    bounds_units: ClassVar[bool] = False
    #: Whether `open` joins the rows of two views in separate files. Tables that an engine is given are joined already.
    joins_views: ClassVar[bool] = False
    #: Whether the engine knows each row's place within its unit, from the table that it was given or has read.
    places_rows: ClassVar[bool] = False
    #: Whether the engine has `map`, so that queries may gather what they need from each row.
    gathers: ClassVar[bool] = True
    #: Whether the engine counts cross tables only (see `GroupingEngine`).
    groups: ClassVar[bool] = False
    #: Whether each call sends a message, so that one call for several sets of rows is faster (see `counts_of`).
    sends_messages: ClassVar[bool] = False

    @property
    def reads_itself(self) -> bool:
        """Whether the engine reads its rows itself, from files or from a database, and is given no table."""
        return self.reads_files or self.reads_tables

    @property
    def address(self) -> str | None:
        """Where, and by which other program, rows are counted. None if this package's code counts them on this machine.

        Plans show the address, and the approval of a plan holds for no other address.
        """
        return None

    @abc.abstractmethod
    def load(self, table: Table) -> Rows:
        """Return a handle of all rows of a table."""

    def counting_summary(self) -> str | None:
        """Return a sentence for reports, which says what counted the last table, and with how many queries.

        By default there is no such sentence, and the result is None. The sentence may depend on the plan and on
        releases only, not on the rows.
        """
        return None

    def open(self, files: TableFiles) -> Rows:
        """Return a handle of all rows of the table in some files. This raises the errors of `read_table`."""
        return self.load(files.read(mapped=self.mapped))

    def map(self, rows: Rows, function: Callable[[Block], Any]) -> list[Any]:
        """Evaluate a function on every block and return the results in block order.

        Raises
        ------
        InputError
            If the engine gathers nothing, since only sums leave its blocks.
        """
        raise InputError(f"engine '{self.name}' adds up counts and gathers no rows; use another engine")

    def counts(self, rows: Rows, functions: Sequence[Callable[[Block], NDArray[Any]]]) -> list[NDArray[Any]]:
        """Evaluate counting functions on every block in one pass, and add up each function's counts in 64 bits.

        Raises
        ------
        InputError
            If a function counts in a type that may wrap around or round off (see `count_width.in_64_bits`).
        """
        blocks = self.map(rows, functools.partial(count_block, functions))
        return [np.asarray(functools.reduce(np.add, one)) for one in zip(*blocks, strict=True)]

    def counts_of(
        self, asked: Sequence[tuple[Rows, Sequence[Callable[[Block], NDArray[Any]]]]]
    ) -> list[list[NDArray[Any]]]:
        """Evaluate counting functions on several sets of rows of one table (see `counts`), by default one by one."""
        return [self.counts(rows, functions) for rows, functions in asked]

    def tally(self, rows: Rows, function: Callable[[Block], Mapping[str, int]]) -> dict[str, int]:
        """Evaluate a function that counts texts on every block, and add up the counts of each text (private).

        Raises
        ------
        InputError
            If the engine has no `map` and does not define this method itself.
        """
        return add_counts(self.map(rows, function))

    def number(self, rows: Rows) -> int:
        """Return the number of rows (private)."""
        return int(self.sum(rows, rows_of).item())

    def cache_of(self, rows: Rows) -> dict[Hashable, Any]:
        """Return the cache of counts for some rows, so that nothing is counted twice (private).

        The cache is dropped with the rows. By default nothing is cached: each call returns a new, empty dictionary.
        """
        return {}

    def related_caches(self, rows: Rows) -> tuple[dict[Hashable, Any], list[dict[Hashable, Any]]] | None:
        """Return the cache of the whole that these rows are a part of, and the caches of its other parts (private).

        From these caches, counts of the last part are known without counting: the whole's counts minus the other parts'
        counts. Return None for rows that are no part, and if some row of the whole is in no part. By default, the
        result is always None.
        """
        return None

    def counting_order(self, rows: Sequence[Rows]) -> Sequence[int]:
        """Return the order in which to count several sets of rows one by one (private).

        The last of the parts of a whole needs no counting (see `related_caches`), so the largest part should be last.
        By default the order is the given one.
        """
        return range(len(rows))

    def drop(self, rows: Rows) -> None:  # noqa: B027 most engines have nothing to do
        """Drop rows and all their parts. Their handle is not used again. By default this does nothing."""

    def close(self) -> None:  # noqa: B027 most engines have nothing to do
        """Close processes and connections. By default there are none."""

    @abc.abstractmethod
    def split(self, rows: Rows, by: Cut) -> list[Rows]:
        """Return a handle for each part into which a cut divides rows (see `facts.row_partitions`)."""

    @abc.abstractmethod
    def derive(self, rows: Rows, attribute: Attribute, cases: Cases) -> Rows:
        """Return the same rows with one more attribute, whose codes are the numbers of the rows' cases."""

    def sample(self, rows: Rows, drawn: Callable[[int], NDArray[np.bool_]]) -> Rows:
        """Return a handle of a sample. Each call `drawn(n)` draws which of the next n rows are in the sample.

        By default samples are refused, since an engine whose rows are elsewhere must first bring private randomness
        there.

        Raises
        ------
        InputError
            If the engine draws no samples.
        """
        raise InputError(f"engine '{self.name}' draws no samples; run the study with another engine")

    def sample_units(self, rows: Rows, drawn: Callable[[int], NDArray[np.bool_]]) -> Rows:
        """Return a handle of a sample of whole units. The table's `unit_codes` say which rows form a unit.

        Either all rows of a unit are in the sample, or none, in whichever blocks they lie. `drawn` is called once, with
        the number of units that have a row among `rows`. By default samples of units are refused, as in `sample`.

        Raises
        ------
        InputError
            If the engine draws no samples of units.
        """
        raise InputError(f"engine '{self.name}' draws no samples of units; run the study with another engine")

    def sum(self, rows: Rows, count: Callable[[Block], NDArray[Any]]) -> NDArray[Any]:
        """Evaluate one counting function on every block, and add up its counts (see `counts`)."""
        (found,) = self.counts(rows, [count])
        return found


def count_block(functions: Sequence[Callable[[Block], NDArray[Any]]], block: Block) -> list[NDArray[Any]]:
    """Return the counts of functions on a block, in 64 bits."""
    return [in_64_bits(function(block)) for function in functions]


def rows_of(block: Block) -> NDArray[np.int64]:
    """Return the number of a block's rows."""
    return np.array([block.rows], dtype=np.int64)


@attrs.frozen(eq=False)
class RelatedCaches:
    """The caches around one part of a split table: the cache of the whole, and the caches of all its parts.

    All parts share one list, so that memory grows with the number of parts and not with the square of that number.

    Attributes
    ----------
    whole
        The cache of the rows that were split.
    parts
        The caches of all parts.
    position
        The index of this part's own cache in `parts`.
    """

    whole: dict[Hashable, Any]
    parts: list[dict[Hashable, Any]]
    position: int

    def of_others(self) -> tuple[dict[Hashable, Any], list[dict[Hashable, Any]]]:
        """Return the cache of the whole and the caches of the other parts, as for `Engine.related_caches`."""
        return self.whole, [*self.parts[: self.position], *self.parts[self.position + 1 :]]
