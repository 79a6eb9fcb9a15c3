"""A table whose units have several rows, read in pieces.

A piece is a part of the table that one worker reads. A bucket stands for a group of ids, and hears of them from all
pieces (see `shuffle_by_id_hash`). Each piece sends each bucket how many rows it has of each id.

Whether a row is kept depends on a hash of its unit's id and of its place among the unit's own rows (see
`contribution_bounding`). A bucket adds up, in the order of the table, how many rows of a unit the earlier pieces have.
So the bucket knows the place of each row, and which places are kept. Its answer to a piece has one bit for each row
with an id. Rows stay where they were read.

The schema lists no values of an open attribute. Its keys are the texts in its cells, and a unit counts once for each of
its keys. Which of a unit's rows is the first with a key depends on all rows of the unit. So a piece also sends the keys
of its rows, with their ids. For each open attribute, the answer has one more bit for each row with an id.

A piece sends each of its ids once, with a count. So without open attributes, a person with very many rows causes no
longer messages to buckets than another person.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.hidden_fields import hide_fields
from dpframework.facts.open_attribute import Open
from dpframework.tables.column_encoding import cells_of
from dpframework.tables.contribution_bounding import choose_places, number_units, ranges, unit_keys
from dpframework.tables.ids import exact_ids
from dpframework.tables.open_attribute_keys import NO_KEY, KeyBook, KeyColumn
from dpframework.tables.plain_cell_series import as_column
from dpframework.tables.reading import add_rows, with_ids
from dpframework.tables.shuffle_by_id_hash import (
    Shuffle,
    ShuffleFindings,
    SpreadPiece,
    findings_of,
    frames_of,
    numbers_by_hash,
    pack,
    pack_frames,
    unpack,
)
from dpframework.tables.sources import Source, rows_changed

if TYPE_CHECKING:
    import polars as pl

    from dpframework.tables.coded_table import Table
    from dpframework.tables.table_builder import RowFindings
    from dpframework.tables.unread_table_files import Piece

#: Units are taken in groups that have about this number of rows together, and the kept rows of a group are chosen at
#: once. This bounds the memory that the choice takes.
MOST_CHOSEN = 1 << 22


@attrs.frozen(eq=False, repr=False, field_transformer=hide_fields)
class IdRows:
    """The rows of a piece, sorted by their ids.

    Attributes
    ----------
    number
        The number of rows.
    rows
        The positions of the rows with an id, one id after another, in the order of the ids' first rows.
    counts
        How many rows each id has, shape (ids,).
    buckets
        The bucket of each id, shape (ids,).
    """

    number: int
    rows: NDArray[np.intp]
    counts: NDArray[np.int64]
    buckets: NDArray[np.intp]

    def of_bucket(self, bucket: int) -> NDArray[np.int64]:
        """Return the positions in `rows` of the rows whose ids are in a bucket."""
        here = np.flatnonzero(self.buckets == bucket)
        return ranges((np.cumsum(self.counts) - self.counts)[here], self.counts[here])

    def __repr__(self) -> str:
        """Show no row and no count."""
        return "IdRows(rows are private)"


@final
@attrs.frozen(repr=False, field_transformer=hide_fields)
class BoundedRows(Shuffle[IdRows]):
    """A shuffle that keeps at most k rows of each unit, and marks the first row with each key."""

    @property
    def _counted_once(self) -> list[Open]:
        """The open attributes if units may have several rows. A unit then counts once for each of its keys."""
        return [one for one in self.how.schema if isinstance(one, Open)] if self.how.unit.groups_rows else []

    def spread(self, piece: Piece, buckets: int) -> SpreadPiece[IdRows]:
        """See `Shuffle`."""
        import polars as pl

        how = self.how
        source, ids = with_ids(piece.source(self.name[0]), how.schema, how.unit, how.out_of_domain)
        whose, number = number_units(ids)
        names = ids.series.drop_nulls().unique(maintain_order=True)
        present = np.flatnonzero(whose >= 0)
        rows = present[np.argsort(whose[present], kind="stable")]
        counts = np.bincount(whose[present], minlength=number)
        own = IdRows(len(ids), rows, counts, numbers_by_hash(names, self.key, buckets, b"bucket"))
        listed = pl.DataFrame({"id": names, "rows": counts})
        keys, messages = _keys_in(source, self._counted_once, len(ids)), []
        for k in range(buckets):
            there = rows[own.of_bucket(k)]
            frames = [frame for column in keys for frame in _keys_as_frames(column.take(there))]
            messages.append(pack_frames(listed[np.flatnonzero(own.buckets == k)], *frames))
        return SpreadPiece(messages, own, ShuffleFindings(findings_of(ids)))

    def gather(self, messages: Sequence[bytes]) -> tuple[list[bytes], ShuffleFindings]:
        """See `Shuffle`."""
        import polars as pl

        frames = [frames_of(message) for message in messages]
        whole = pl.concat([listed for listed, *_ in frames])
        whose, number = number_units(exact_ids(whole["id"]))
        counts = whole["rows"].to_numpy().astype(np.int64)
        totals = np.bincount(whose, counts, number).astype(np.int64)  # exact, since a table has fewer than 2^53 rows
        starts = np.cumsum(totals) - totals
        # From here on, rows are sorted by unit. `kept` says which of them are kept.
        ids, most = whole["id"].unique(maintain_order=True), self.how.unit.rows
        kept = np.ones(int(totals.sum()), dtype=np.bool_)
        large = np.flatnonzero(totals > most)
        kept[ranges(starts[large], totals[large])] = False
        for some in _together(large, totals[large]):
            units, chosen = choose_places(unit_keys(self.key, ids.gather(some)), totals[some], most)
            kept[starts[some[units]] + chosen] = True
        places = []
        for here in np.split(np.arange(len(whose)), np.cumsum([listed.height for listed, *_ in frames])[:-1]):
            places.append(ranges(starts[whose[here]], counts[here]))
            starts[whose[here]] += counts[here]  # where the rows of the next piece begin
        told = [kept]
        for k in range(1, len(frames[0]), 2):
            # Codes and texts, as `_keys_as_frames` made them.
            columns = [KeyColumn(own[k]["key"].to_numpy(), KeyBook(own[k + 1]["text"])) for own in frames]
            told.append(firsts_of_units(list(zip(places, columns, strict=True)), kept, totals))
        answers = [pack([np.packbits(one[own]).tobytes() for one in told]) for own in places]
        return answers, ShuffleFindings()

    def settle(self, piece: Piece, state: IdRows, answers: Sequence[bytes]) -> tuple[Table, RowFindings]:
        """See `Shuffle`."""
        import polars as pl

        how, once = self.how, self._counted_once
        told = np.zeros((1 + len(once), len(state.rows)), dtype=np.bool_)
        for k, answer in enumerate(answers):
            here = state.of_bucket(k)
            for one, bits in zip(told, unpack(answer), strict=True):
                one[here] = np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=len(here))
        kept = np.flatnonzero(told[0])
        kept = kept[np.argsort(state.rows[kept])]
        builder = how.builder(self.name)
        add_rows(builder, piece.source(self.name[0]), how.schema, pl.Series(state.rows[kept]), state.number)
        table, found = self._settle(builder)
        firsts = {one.name: own[kept] for one, own in zip(once, told[1:], strict=True)}
        keys = {name: attrs.evolve(column, firsts=firsts.get(name)) for name, column in table.keys.items()}
        return attrs.evolve(table, keys=keys), found


def _together(units: NDArray[np.intp], sizes: NDArray[np.int64]) -> Iterator[NDArray[np.intp]]:
    """Yield units in groups whose rows together are about `MOST_CHOSEN`, or a single unit that has more."""
    groups = np.cumsum(sizes) // MOST_CHOSEN
    yield from np.split(units, np.flatnonzero(np.diff(groups)) + 1) if len(units) else ()


def _keys_in(source: Source, attributes: Sequence[Open], number: int) -> list[KeyColumn]:
    """Return the keys of all rows of a source, one column for each attribute.

    Raises
    ------
    InputError
        If the source cannot be read, or its number of rows is no longer `number`.
    """
    names = [attribute.name for attribute in attributes]
    books, parts = [KeyBook() for _ in names], [[np.zeros(0, dtype=np.uint32)] for _ in names]
    for block in source.blocks(names) if names else ():
        for attribute, book, codes in zip(attributes, books, parts, strict=True):
            where = f"{source.name}: attribute '{attribute.name}'"
            found = cells_of(attribute, as_column(block[attribute.name], where)).keys
            assert found is not None  # the cells of an open attribute have keys
            codes.append(book.codes(found))
    columns = [KeyColumn(np.concatenate(codes), book) for codes, book in zip(parts, books, strict=True)]
    if any(len(column) != number for column in columns):
        raise rows_changed(source.name)
    return columns


def _keys_as_frames(column: KeyColumn) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a frame with the number of each row's key, and a frame with the keys of these rows by number."""
    import polars as pl

    numbers, codes = np.unique(np.append(column.codes, NO_KEY), return_inverse=True)
    named = (None, *column.book.texts)
    texts = [named[number] for number in numbers.tolist() if number != NO_KEY]
    return pl.DataFrame({"key": codes[:-1].astype(np.uint32)}), pl.DataFrame({"text": texts}, {"text": pl.String})


def firsts_of_units(
    parts: Sequence[tuple[NDArray[np.int64], KeyColumn]], kept: NDArray[np.bool_], totals: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which of the kept rows are the first of their unit with their key, shape (rows,).

    Parameters
    ----------
    parts
        For each piece, the positions of its rows among all rows sorted by unit, and the keys of its rows.
    kept
        Which rows are kept, shape (rows,).
    totals
        How many rows each unit has.
    """
    book, codes = KeyBook(), np.zeros(len(kept), dtype=np.uint32)
    for places, column in parts:
        codes[places] = book.codes(column)
    rows, units = np.flatnonzero(kept), np.repeat(np.arange(len(totals)), totals)
    firsts, found = KeyColumn(codes[rows], book).of_units(units[rows]).firsts, np.zeros(len(kept), dtype=np.bool_)
    found[rows] = firsts
    return found
