"""Engines that hold the rows in this process, in memory or in mapped files, and count them block by block."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.facts.parameter_checks import is_whole_number
from dpframework.facts.row_partitions import Cut
from dpframework.tables.encoded_row_blocks import Block, pack_index, slice_arrays
from dpframework.tables.engine_base import Engine, RelatedCaches
from dpframework.tables.row_block_parts_by_attribute_values import parts_of

if TYPE_CHECKING:
    from dpframework.tables.coded_table import Table

MOST_ROWS = 1 << 20  # the most rows of a block, so that kernels need little memory besides its codes


@final
class BlockRows(list[Block]):
    """Blocks of rows with their cache and, if they are a part of a whole, with the caches around them."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        super().__init__(blocks)
        self.cache: dict[Hashable, Any] = {}
        self.around: RelatedCaches | None = None

    def __repr__(self) -> str:
        """Show nothing, since even the number of blocks depends on the number of rows."""
        return "BlockRows(rows are private)"


class BlockEngine(Engine):
    """An engine whose rows are a list of blocks in this process, in memory or in mapped files."""

    places_rows = True

    def __init__(self, blocks: int) -> None:
        if not is_whole_number(blocks):
            raise InputError(f"an engine needs a positive number of threads, not {blocks!r}")
        self._blocks = blocks

    def map(self, rows: Sequence[Block], function: Callable[[Block], Any]) -> list[Any]:
        """Evaluate the function on one block after another. A mapped table's blocks come into memory in turn."""
        return [function(block) for block in rows]

    def load(self, table: Table) -> BlockRows:
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
        return BlockRows(slice_arrays(whole, slice(low, high)) for low, high in itertools.pairwise(edges))

    def cache_of(self, rows: Sequence[Block]) -> dict[Hashable, Any]:
        """See `Engine`."""
        return rows.cache if isinstance(rows, BlockRows) else {}

    def split(self, rows: Sequence[Block], by: Cut) -> list[BlockRows]:
        """Split as `Engine` says, block by block, so that memory grows with the parts only."""
        blocks = self.map(rows, functools.partial(parts_of, by, packs=self.mapped))
        parts = [BlockRows(part) for part in zip(*blocks, strict=True)]
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
        return rows.around.of_others() if isinstance(rows, BlockRows) and rows.around is not None else None

    def sample(self, rows: Sequence[Block], drawn: Callable[[int], NDArray[np.bool_]]) -> list[Block]:
        """See `Engine`."""
        return BlockRows(self._at(block, block.index[drawn(block.rows)]) for block in rows)

    def sample_units(self, rows: Sequence[Block], drawn: Callable[[int], NDArray[np.bool_]]) -> list[Block]:
        """See `Engine`."""
        codes = [block.unit_codes[block.index] for block in rows if block.unit_codes is not None]
        if len(codes) < len(rows):
            raise InputError("the table does not say which unit each row belongs to; read it with the unit's ids")
        present, unit_of = np.unique(np.concatenate(codes), return_inverse=True)
        kept = np.split(drawn(len(present))[unit_of], np.cumsum([len(own) for own in codes])[:-1])
        return BlockRows(self._at(block, block.index[own]) for block, own in zip(rows, kept, strict=True))

    def _at(self, block: Block, index: NDArray[np.int32]) -> Block:
        """Return the part of a block with the rows at some positions, packed if the engine is `mapped`."""
        return block.at(pack_index(index, block.length) if self.mapped else index)

    def derive(self, rows: Sequence[Block], attribute: Attribute, cases: Cases) -> list[Block]:
        """See `Engine`."""
        return BlockRows(self.map(rows, lambda block: block.with_derived(attribute, cases)))


@final
class InMemory(BlockEngine):
    """All rows in memory, counted by one thread, in one block, or in several if there are more than `MOST_ROWS`."""

    name = "memory"

    def __init__(self) -> None:
        super().__init__(blocks=1)


@final
class Mapped(BlockEngine):
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
class Threads(BlockEngine):
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
