"""Two views in separate files, joined by an id and read in pieces.

A piece is a part of a view that one worker reads. A bucket stands for a group of ids, and hears of them from all pieces
(see `shuffle_by_id_hash`). Each piece sends how many rows have each of its ids. A piece of the right view also sends
the cells of one row of each id. This is enough, since a bucket joins only the ids that occur once in each view. The
bucket's answer to a piece of the left view holds cells of rows of the right view. With each such row comes the position
of the left row that it belongs to. So the joined rows are in the order of the left view, and pieces of the right view
get no rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np

from dpframework.facts.attributes_by_side import attributes_of_views
from dpframework.facts.errors import DoesNotFit
from dpframework.facts.hidden_fields import hide_fields
from dpframework.tables.contribution_bounding import number_units
from dpframework.tables.ids import exact_ids, ids_in
from dpframework.tables.plain_cell_series import Column, as_column
from dpframework.tables.shuffle_by_id_hash import (
    IdFinding,
    Shuffle,
    ShuffleFindings,
    SpreadPiece,
    findings_of,
    frames_of,
    numbers_by_hash,
    pack_frames,
)
from dpframework.tables.sources import rows_changed, whole_column
from dpframework.tables.two_view_reader import id_twice, no_common_id

if TYPE_CHECKING:
    import polars as pl

    from dpframework.tables.coded_table import Table
    from dpframework.tables.table_builder import RowFindings
    from dpframework.tables.unread_table_files import Piece

_LEFT, _RIGHT = 0, 1
_ID_COLUMNS = (
    "id",
    "rows",
    "row",
)  # the columns of a message besides cells: an id, its number of rows, and its first row


@final
@attrs.frozen(repr=False, field_transformer=hide_fields)
class JoinedRows(Shuffle[int]):
    """A shuffle that joins the rows of two views.

    Attributes
    ----------
    left
        The number of pieces of the left view, which come first.
    """

    left: int

    @property
    def id(self) -> str:
        """The name of the column that joins the views."""
        return self.how.id or ""

    def _names(self, side: int) -> list[str]:
        """Return the columns of a view that are read."""
        schema = self.how.schema
        return [one.name for one in attributes_of_views(schema)[side] if one.name in schema.column_names]

    def spread(self, piece: Piece, buckets: int) -> SpreadPiece[int]:
        """See `Shuffle`."""
        import polars as pl

        side = piece.side
        source = piece.source(self.name[side])
        source.require(list(dict.fromkeys([*self._names(side), self.id])))
        ids = ids_in(source, self.id)
        rows = pl.DataFrame({"id": ids.series, "row": np.arange(len(ids))}).drop_nulls("id")
        each = rows.group_by("id", maintain_order=True)
        listed = each.agg(rows=pl.len().cast(pl.Int64), row=pl.col("row").first())
        if side == _RIGHT:
            found: dict[str, Any] = {}
            for k, (name, values) in enumerate(source.take(self._names(side)).items()):
                column = as_column(values, f"{source.name}: column '{name}'")
                if len(column) != len(ids):
                    raise rows_changed(source.name)
                taken = column.take(listed["row"])
                found[f"cell{k}"] = taken.series
                if taken.foreign is not None:
                    found[f"foreign{k}"] = taken.foreign
            listed = pl.concat([listed, pl.DataFrame(found)], how="horizontal")
        to = numbers_by_hash(listed["id"], self.key, buckets, b"bucket")
        messages = [pack_frames(listed[np.flatnonzero(to == k)]) for k in range(buckets)]
        return SpreadPiece(messages, len(ids), ShuffleFindings(findings_of(ids, side)))

    def gather(self, messages: Sequence[bytes]) -> tuple[list[bytes], ShuffleFindings]:
        """See `Shuffle`."""
        import polars as pl

        frames = [frame for message in messages for frame in frames_of(message)]
        sizes = [frame.height for frame in frames]
        whole = pl.concat([frame.select(_ID_COLUMNS) for frame in frames])
        whose, number = number_units(exact_ids(whole["id"]))
        piece = np.repeat(np.arange(len(frames)), sizes)
        on_right = piece >= self.left
        counts = whole["rows"].to_numpy()
        times = [np.bincount(whose[side], counts[side], number) for side in (~on_right, on_right)]
        matched = (times[_LEFT] == 1) & (times[_RIGHT] == 1)
        of_left = np.full(number, -1)
        # For an id that occurs once in the left view, this is the position of its row in `whole`. Other ids are not
        # joined.
        of_left[whose[~on_right]] = np.flatnonzero(~on_right)
        starts = np.cumsum(sizes) - sizes
        answers: list[list[pl.DataFrame]] = [[] for _ in frames]
        for k in range(self.left, len(frames)):
            own = starts[k] + np.arange(sizes[k])
            own = own[matched[whose[own]]]
            partners = of_left[whose[own]]
            cells = frames[k][own - starts[k]].drop(_ID_COLUMNS).with_columns(whole["row"].gather(partners))
            for to in np.unique(piece[partners]).tolist():
                answers[to].append(cells[np.flatnonzero(piece[partners] == to)])
        found = {(IdFinding.TWICE, side) for side in (_LEFT, _RIGHT) if (times[side] > 1).any()}
        if matched.any():
            found.add((IdFinding.MATCHED, _LEFT))
        return [pack_frames(*own) for own in answers], ShuffleFindings(frozenset(found))

    def settle(self, piece: Piece, state: int, answers: Sequence[bytes]) -> tuple[Table, RowFindings]:
        """See `Shuffle`."""
        import polars as pl

        how, frames = self.how, [frame for answer in answers for frame in frames_of(answer)]
        builder = how.builder(self.name)
        if frames:
            rows = pl.concat([frame["row"] for frame in frames])
            order = rows.arg_sort()
            source = piece.source(self.name[_LEFT])
            columns = {name: (column, rows.gather(order)) for name, column in source.take(self._names(_LEFT)).items()}
            if any(len(column) != state for column, _ in columns.values()):
                raise rows_changed(source.name)
            for k, name in enumerate(self._names(_RIGHT)):
                parts = []
                for frame in frames:
                    foreign = frame[f"foreign{k}"].to_numpy() if f"foreign{k}" in frame.columns else None
                    parts.append(Column(frame[f"cell{k}"], foreign))
                columns[name] = whole_column(parts, f"{self.name[_RIGHT]}: '{name}'"), order
            builder.add({name: as_column(column, name).take(taken) for name, (column, taken) in columns.items()})
        else:
            builder.add({name: pl.Series([], dtype=pl.Null) for name in how.schema.column_names})
        return self._settle(builder)

    def _require(self, found: ShuffleFindings) -> None:
        for side, name in enumerate(self.name):
            what = f"{name}: the id column '{self.id}'"
            self._require_ids(found, side, what)
            if (IdFinding.TWICE, side) in found.ids:
                raise DoesNotFit(id_twice(what))
        if (IdFinding.MATCHED, _LEFT) not in found.ids:
            raise DoesNotFit(no_common_id(" and ".join(self.name), self.id))
