"""Engines, which hold the private rows and count them, block by block or in a database.

A miner never sees an engine. An engine needs only a few operations on opaque handles of rows, and the rows may be on
other machines. So a plugin can add an engine for a cluster without a change to any miner.
"""

from __future__ import annotations

import abc
import functools
import itertools
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.facts.parameter_checks import is_whole_number
from dpframework.facts.row_partitions import Cut
from dpframework.tables.count_width import in_64_bits
from dpframework.tables.encoded_row_blocks import Block, pack_index, slice_arrays
from dpframework.tables.open_attribute_keys import add_counts
from dpframework.tables.row_block_parts_by_attribute_values import parts_of

if TYPE_CHECKING:
    from dpframework.tables.coded_table import Table
    from dpframework.tables.unread_table_files import TableFiles

MOST_ROWS = 1 << 20  # the most rows of a block, so that kernels need little memory besides its codes
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
        """Evaluate a function that counts by text on every block, and add up the counts of each text (private).

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
        """Return a handle of a sample of whole units, by the table's `unit_codes`.

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


@final
class _Rows(list[Block]):
    """Blocks of rows with their cache and, if they are a part of a whole, with the caches around them."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        super().__init__(blocks)
        self.cache: dict[Hashable, Any] = {}
        self.around: RelatedCaches | None = None


class _Blocks(Engine):
    """An engine whose rows are a list of blocks in this process, in memory or in mapped files."""

    places_rows = True

    def __init__(self, blocks: int) -> None:
        if not is_whole_number(blocks):
            raise InputError(f"an engine needs a positive number of threads, not {blocks!r}")
        self._blocks = blocks

    def map(self, rows: Sequence[Block], function: Callable[[Block], Any]) -> list[Any]:
        """Evaluate the function on one block after another. A mapped table's blocks come into memory in turn."""
        return [function(block) for block in rows]

    def load(self, table: Table) -> _Rows:
        """Cut the table into blocks of consecutive rows. No release depends on where the blocks begin."""
        edges = np.linspace(0, table.rows, max(self._blocks, -(-table.rows // MOST_ROWS)) + 1).astype(int)
        whole = Block(
            table.schema,
            table.columns,
            table.values,
            unit_codes=table.unit_codes,
            unit_places=table.unit_places,
            key_columns=table.keys,
        )
        return _Rows(slice_arrays(whole, slice(low, high)) for low, high in itertools.pairwise(edges))

    def cache_of(self, rows: Sequence[Block]) -> dict[Hashable, Any]:
        """See `Engine`."""
        return rows.cache if isinstance(rows, _Rows) else {}

    def split(self, rows: Sequence[Block], by: Cut) -> list[_Rows]:
        """Split as `Engine` says, block by block, so that memory grows with the parts only."""
        blocks = self.map(rows, functools.partial(parts_of, by, packs=self.mapped))
        parts = [_Rows(part) for part in zip(*blocks, strict=True)]
        if isinstance(by, Attribute | Cases):  # each row is in exactly one part
            kept = [part.cache for part in parts]
            for k, part in enumerate(parts):
                part.around = RelatedCaches(self.cache_of(rows), kept, k)
        return parts

    def counting_order(self, rows: Sequence[Sequence[Block]]) -> Sequence[int]:
        """See `Engine`."""
        sizes = [sum(block.rows for block in some) for some in rows]
        return sorted(range(len(rows)), key=sizes.__getitem__)

    def related_caches(self, rows: Sequence[Block]) -> tuple[dict[Hashable, Any], list[dict[Hashable, Any]]] | None:
        """See `Engine`."""
        return rows.around.of_others() if isinstance(rows, _Rows) and rows.around is not None else None

    def sample(self, rows: Sequence[Block], drawn: Callable[[int], NDArray[np.bool_]]) -> list[Block]:
        """See `Engine`."""
        return _Rows(self._at(block, block.index[drawn(block.rows)]) for block in rows)

    def sample_units(self, rows: Sequence[Block], drawn: Callable[[int], NDArray[np.bool_]]) -> list[Block]:
        """See `Engine`."""
        codes = [block.unit_codes[block.index] for block in rows if block.unit_codes is not None]
        if len(codes) < len(rows):
            raise InputError("the table does not say which unit each row belongs to; read it with the unit's ids")
        present, unit_of = np.unique(np.concatenate(codes), return_inverse=True)
        kept = np.split(drawn(len(present))[unit_of], np.cumsum([len(own) for own in codes])[:-1])
        return _Rows(self._at(block, block.index[own]) for block, own in zip(rows, kept, strict=True))

    def _at(self, block: Block, index: NDArray[np.int32]) -> Block:
        """Return the part of a block with the rows at some positions, packed if the engine is `mapped`."""
        return block.at(pack_index(index, block.length) if self.mapped else index)

    def derive(self, rows: Sequence[Block], attribute: Attribute, cases: Cases) -> list[Block]:
        """See `Engine`."""
        return _Rows(self.map(rows, lambda block: block.with_derived(attribute, cases)))


@final
class InMemory(_Blocks):
    """All rows in memory, counted by one thread, in one block, or in several if there are more than `MOST_ROWS`."""

    name = "memory"

    def __init__(self) -> None:
        super().__init__(blocks=1)


@final
class Mapped(_Blocks):
    """An engine for tables larger than memory, whose codes are in nameless files that only this process can open.

    The files lie in the folder for temporary files (`$TMPDIR`) and are gone when the process ends. In memory, each part
    that a table is cut into takes at most one bit per row. Each attribute that a plan derives takes four bytes per row.
    Queries that gather values of rows (see `Query.gathers`) may need more.
    """

    name = "mapped"
    mapped = True

    def __init__(self) -> None:
        super().__init__(blocks=1)


@final
class Threads(_Blocks):
    """All rows in memory, in blocks that threads count. Kernels that release the interpreter lock run at the same time.

    Parameters
    ----------
    threads
        The number of threads, by default one for each processor. There are at least as many blocks of rows.
    """

    name = "threads"

    def __init__(self, threads: int | None = None) -> None:
        super().__init__(blocks=(os.cpu_count() or 1) if threads is None else threads)
        from concurrent.futures import ThreadPoolExecutor

        self._pool = ThreadPoolExecutor(self._blocks, thread_name_prefix="dpframework")

    def map(self, rows: Sequence[Block], function: Callable[[Block], Any]) -> list[Any]:
        """Evaluate the function on all blocks at the same time."""
        return list(self._pool.map(function, rows))
