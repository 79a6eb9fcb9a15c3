"""Tell the owner of a table where it does not fit a schema, apart from any run. The result is not private.

A run reads any rows, and does not say how it treated cells that do not fit the schema. So the owner adapts the schema
to the data beforehand, and learns here how many cells do not fit, and which.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.argument_type_checks import typechecked
from dpframework.facts.attributes import Attribute, Numeric
from dpframework.facts.attributes_by_side import attributes_of_views
from dpframework.facts.errors import nearest
from dpframework.facts.privacy_unit import ROW, PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.tables.cell_notation_reader import as_written, read_cells
from dpframework.tables.column_encoding import MISSING, OUTSIDE, VALUES_OUTSIDE, cells_of
from dpframework.tables.ids import Ids, ids_in
from dpframework.tables.output_suppression import silenced
from dpframework.tables.plain_cell_series import Column, as_column
from dpframework.tables.sources import Source, open_source

SHOWN = 5  # the most examples of a misfit


@final
@attrs.frozen
class Misfit:
    """A way in which a table does not fit its schema. It shows private values and is for the owner only.

    Attributes
    ----------
    where
        The attribute, or the table.
    what
        A text that describes the misfit, such as "values that are not numbers".
    rows
        The number of rows with this misfit, 0 for a misfit of a whole column or table.
    examples
        Some of the values.
    bounded
        Whether the rows fit, but the bound on a unit's rows leaves them out. Such a table fits the schema.
    """

    where: str
    what: str
    rows: int
    examples: tuple[str, ...] = ()
    bounded: bool = False

    def __str__(self) -> str:
        """Write the misfit as one line."""
        number = f"{self.rows:,} {'row' if self.rows == 1 else 'rows'}"
        rows = (f": {number}" if self.bounded else f" in {number}") if self.rows else ""
        examples = f", such as {', '.join(map(repr, self.examples))}" if self.examples else ""
        return f"{self.where}: {self.what}{rows}{examples}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe form."""
        form = attrs.asdict(self)
        return form if self.bounded else {key: value for key, value in form.items() if key != "bounded"}


@silenced(streams=True)
@typechecked
def check_fit(
    data: Any,
    schema: Schema,
    *,
    right: Any = None,
    id: str | None = None,  # noqa: A002
    unit: PrivacyUnit = ROW,
) -> tuple[Misfit, ...]:
    """Return the ways in which a table does not fit a schema. This reads private data and is **not** private.

    Parameters
    ----------
    data
        A path as for `read_table`, or a dataframe of polars, pandas or pyarrow. With `right`, the left view.
    schema
        The schema by which a run would read the data.
    right
        The right view.
    id
        The column that joins the two views.
    unit
        The privacy unit of such a run. Rows without the unit's id are left out, and so are rows beyond the number that
        a unit may have.

    Raises
    ------
    InputError
        If the data cannot be read, or the unit's column is not the one that joins the two views.

    Examples
    --------
    >>> import polars as pl
    >>> from dpframework.facts.attributes import Boolean, Numeric
    >>> frame = pl.DataFrame({"age": [17, 203], "ill": ["yes", None]})
    >>> for misfit in check_fit(frame, Schema([Numeric("age", 0, 120, bins=4), Boolean("ill")])):
    ...     print(misfit)
    age: numbers beyond its bounds 0 and 120 in 1 row, such as '203'
    ill: missing values (the schema does not set missing = true) in 1 row
    """
    found: list[Misfit] = []
    if right is None:
        files = schema.in_files
        source = open_source(data, read=files.read)
        files.read.require_columns(files.names, source.columns)
        rows = _examine(source, files.columns, files, found)
        if unit.id is not None:
            rows = _rows_of_units(as_written(source, files, unit), unit, found, bounded=files is schema)
    else:
        unit.require_joined_by(id)
        left, other = (open_source(one, read=schema.read) for one in (data, right))
        sides = [[a for a in side if a in schema.columns] for side in attributes_of_views(schema)]
        counts = [_examine(s, side, schema, found) for s, side in zip((left, other), sides, strict=True)]
        sources = as_written(left, schema), as_written(other, schema)
        rows = _count_joined_rows(sources, id, counts, found)
    for name, bound in (("rows", schema.rows), ("max_rows", schema.max_rows)):
        if bound is not None and (rows != bound if name == "rows" else rows > bound):
            found.append(Misfit("the table", f"{name} = {bound} in the schema, but the number of rows is {rows}", 0))
    return tuple(found)


def _examine(source: Source, attributes: Sequence[Attribute], schema: Schema, found: list[Misfit]) -> int:
    """Add the misfits of one source, and return its number of rows."""
    present = [attribute for attribute in attributes if attribute.name in source.columns]
    found += [Misfit(a.name, f"no such column in {source.name}", 0) for a in attributes if a not in present]
    names = [attribute.name for attribute in present]
    rows = 0
    for attribute, (name, values) in zip(present, source.take(names).items(), strict=True):
        where = f"{source.name}: column '{name}'"
        column = as_column(values, where)  # the cells as they are written, for examples
        rows = len(column)
        cells = cells_of(attribute, read_cells(attribute, schema.read.of_column(name), values, where))
        outside, missing = cells.codes == OUTSIDE, cells.codes == MISSING
        if bool(outside.any()):
            what = VALUES_OUTSIDE[attribute.kind]
            found.append(Misfit(name, what, int(outside.sum()), _examples(column, outside)))
        if isinstance(attribute, Numeric) and cells.beyond is not None and bool(cells.beyond.any()):
            what = f"numbers beyond its bounds {attribute.lower:g} and {attribute.upper:g}"
            found.append(Misfit(name, what, int(cells.beyond.sum()), _examples(column, cells.beyond)))
        if attribute.missing_code is None and bool(missing.any()):
            what = "missing values (the schema does not set missing = true)"
            found.append(Misfit(name, what, int(missing.sum())))
    return rows


def _examples(column: Column, which: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return some of the values, each once. Values of another type are mentioned but not shown."""
    import polars as pl

    values = column.series.filter(pl.Series(which)).drop_nulls().unique(maintain_order=True)
    shown = tuple(map(str, values.head(SHOWN).to_list()))
    foreign = column.foreign is not None and bool((column.foreign & which).any())
    return (*shown, "a value of another type") if foreign else shown


def _rows_of_units(source: Source, unit: PrivacyUnit, found: list[Misfit], *, bounded: bool) -> int:
    """Return how many rows are kept. Add misfits of rows without an id and, if `bounded`, of rows left out."""
    assert unit.id is not None  # the caller has checked this
    if unit.id not in source.columns:
        hint = nearest(unit.id, source.columns)
        found.append(Misfit(unit.id, f"no such column in {source.name}, which must name each row's unit; {hint}", 0))
        return 0
    ids = ids_in(source, unit.id)
    found += _without_id(ids, unit.id, "such rows are left out")
    counts = ids.series.drop_nulls().value_counts()["count"]
    kept = int(counts.clip(upper_bound=unit.rows).sum())
    if bounded and kept < int(counts.sum()):
        units = int((counts > unit.rows).sum())
        what = (
            f"{units:,} {'unit has' if units == 1 else 'units have'} more than rows_per_unit = {unit.rows} rows (up to "
            f"{int(cast(int, counts.max())):,}), so that rows are left out"
        )
        found.append(Misfit(unit.id, what, int(counts.sum()) - kept, bounded=True))
    return kept


def _without_id(ids: Ids, where: str, so: str) -> Iterator[Misfit]:
    """Yield the misfits of rows without an id. `so` says what happens to these rows."""
    unfit = int(ids.unfit.sum())
    if unfit:
        yield Misfit(where, f"a value of a type that cannot be an id ({so})", unfit)
    if ids.series.null_count() > unfit:
        yield Misfit(where, f"no id ({so})", ids.series.null_count() - unfit)


def _count_joined_rows(
    sources: tuple[Source, Source], key_name: str | None, counts: Sequence[int], found: list[Misfit]
) -> int:
    """Return the number of rows of two views after they are joined, and add misfits of their ids."""
    if key_name is None:
        if counts[0] != counts[1]:
            what = f"{counts[0]} and {counts[1]} rows, and no id that joins them"
            found.append(Misfit(f"{sources[0].name} and {sources[1].name}", what, 0))
        return min(counts)
    kept = []
    for source in sources:
        ids = ids_in(source, key_name)
        where = f"{source.name}: {key_name}"
        found += _without_id(ids, where, "such rows join nothing")
        known = ids.series.drop_nulls()
        twice = known.filter(known.is_duplicated())
        if len(twice):
            some = tuple(twice.unique(maintain_order=True).head(SHOWN).to_list())
            found.append(Misfit(where, "ids that occur more than once, and so join nothing", len(twice), some))
        kept.append(known.filter(known.is_unique()))
    return int(kept[0].is_in(kept[1].to_list()).sum())
