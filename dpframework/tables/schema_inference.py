"""Infer a schema from private data. This is not private, and the schema says so.

Bounds, cut points and values taken from the data can reveal a row, whatever noise is added later. Such a schema lists
in `inferred` what was taken from the data, and every plan made from it carries the assumption
`schema-inferred-from-data`. Use it for experiments, to reproduce published choices, or as a draft whose entries you
replace by public facts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dpframework.facts.argument_type_checks import typechecked
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.read_options import ReadOptions
from dpframework.facts.schema import Schema
from dpframework.tables.attribute_kind_and_bounds_inference import Choices, CutMode
from dpframework.tables.file_guess import guess_file, guess_skip
from dpframework.tables.output_suppression import silenced
from dpframework.tables.schema_draft import SchemaDraft, draft_of, require_all
from dpframework.tables.sources import open_source
from dpframework.tables.two_view_reader import join


@silenced(streams=True)
@typechecked
def infer_schema(
    data: Any,
    *,
    numeric: CutMode | str = CutMode.EQUAL_WIDTH,
    bins: int = 16,
    max_categories: int = 100,
    views: Mapping[str, str] | None = None,
    categorical: Collection[str] = (),
    exclude: Collection[str] = (),
    open_columns: Collection[str] = (),
    read: ReadOptions | Mapping[str, Any] | None = None,
) -> Schema:
    """Make a schema from a file or dataframe. This reads private data and is **not** private.

    A column of booleans, of only 0 and 1, or of only true and false becomes Boolean. A column of numbers, dates or
    times becomes Numeric between its observed bounds, even if they are written as texts. Any other column becomes
    Categorical with its observed values, sorted. An attribute allows missing values if one of its cells is missing. The
    notation of the file and of its cells is guessed (see `draft_schema`, which also gives reasons). The schema's
    `inferred` lists the facts that were taken from the data. The schema does not contain the number of rows.

    Parameters
    ----------
    data
        A path as for `read_table`, or a dataframe of polars, pandas or pyarrow.
    numeric
        How to take cut points: "equal-width", "quantile", "freedman-diaconis", "k-means" or "observed".
    bins
        The most bins of a numeric attribute, at least 1. "freedman-diaconis" and "observed" find their own number.
    max_categories
        The most values of a categorical attribute, at least 1.
    views
        "left" or "right" for each column that belongs to a view, by the column's name.
    categorical, exclude
        Columns to declare categorical although they may hold numbers, and columns to leave out.
    open_columns
        Columns to declare open. Nothing is taken from their cells, and the schema lists none of their values.
    read
        How the file is written, in place of a guess (see `ReadOptions`).

    Raises
    ------
    InputError
        If the data cannot be read, a name is unknown, or a column cannot become an attribute, such as one without
        values or with more texts than `max_categories`.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"age": [17, 40, 90], "sex": ["f", "m", None]})
    >>> schema = infer_schema(frame, bins=2)
    >>> schema["age"].labels, schema["sex"].labels
    (('[17, 53.5)', '[53.5, 90]'), ('f', 'm', 'missing'))
    >>> schema.inferred[-1]
    'numeric cuts: equal-width'
    """
    choices = Choices(CutMode.parse(numeric), bins, max_categories, categorical, open_columns)
    draft, refused = _draft(data, choices, exclude, views or {}, read)
    require_all(refused)
    return draft.schema


@silenced(streams=True)
@typechecked
def draft_schema(
    data: Any,
    *,
    numeric: CutMode | str = CutMode.EQUAL_WIDTH,
    bins: int = 16,
    max_categories: int = 100,
    views: Mapping[str, str] | None = None,
    categorical: Collection[str] = (),
    exclude: Collection[str] = (),
    open_columns: Collection[str] = (),
    read: ReadOptions | Mapping[str, Any] | None = None,
) -> SchemaDraft:
    """Draft a schema from a file or dataframe, with a note on each messy column. This is **not** private.

    This guesses the separator and the encoding of a CSV file. It finds texts that mean a missing value (NULL, -),
    decimal commas, thousands separators, dates and times. It takes digits as labels if some begin with a zero. A column
    that cannot become an attribute is left out. Each column with such cells gets a note, and so does each column that
    is left out. The note says what was found, with numbers of cells, examples, and the lines for the schema.

    Parameters
    ----------
    data, numeric, bins, max_categories, views, categorical, exclude, open_columns, read
        As for `infer_schema`.

    Raises
    ------
    InputError
        If the data cannot be read, a name is unknown, or no column can become an attribute.

    Examples
    --------
    >>> import polars as pl
    >>> draft = draft_schema(pl.DataFrame({"cost": ["3,5", "12,25"], "plz": ["01067", "10115"]}))
    >>> print(draft)
    cost: 2 of 2 cells are written like 3,5; read as numbers with decimal sign ','; [read.columns.cost] decimal = ","
    plz: 1 of 2 cells are digits that begin with a zero, such as 01067; read as labels, not as numbers
    >>> print(draft.schema.read.dumps(), end="")
    [read]
    decimal = ","
    """
    choices = Choices(CutMode.parse(numeric), bins, max_categories, categorical, open_columns)
    return _draft(data, choices, exclude, views or {}, read)[0]


def _draft(
    data: Any,
    choices: Choices,
    exclude: Collection[str],
    views: Mapping[str, str],
    read: ReadOptions | Mapping[str, Any] | None,
) -> tuple[SchemaDraft, list[InputError]]:
    written = ReadOptions.of(guess_file(data) if read is None else read)
    source = open_source(data, read=written)
    # A column without a name may mean that lines stand above the names of the columns.
    if "" in source.columns and (skipping := guess_skip(data, written)) != written:
        written, source = skipping, open_source(data, read=skipping)
    _refuse_unknown_choices(choices, source.columns, f"{source.name}: ")
    _refuse_unknown(exclude, source.columns, f"{source.name}: column to exclude")
    names = [name for name in source.columns if name not in exclude]
    if not names:
        raise InputError(f"{source.name}: has no column left for an attribute; exclude fewer columns")
    _refuse_unknown(views, names, f"{source.name}: column with a view")
    written.require_columns(source.columns)
    return draft_of(
        source.take(names), {name: f"{source.name}: column '{name}'" for name in names}, views, choices, written
    )


@silenced(streams=True)
@typechecked
def infer_two_view_schema(
    left: Any,
    right: Any,
    *,
    id: str | None = None,  # noqa: A002
    numeric: CutMode | str = CutMode.EQUAL_WIDTH,
    bins: int = 16,
    max_categories: int = 100,
    categorical: Collection[str] = (),
    exclude: Collection[str] = (),
    open_columns: Collection[str] = (),
) -> Schema:
    """Make a two-view schema from two files or dataframes. This reads private data and is **not** private.

    Parameters
    ----------
    left, right
        Paths or dataframes. Their columns become the left and the right view.
    id
        A column of both sides that joins their rows and is left out of the schema. Only the joined rows are read.
        Without `id`, rows are matched by position.
    numeric, bins, max_categories, categorical, exclude, open_columns
        As for `infer_schema`. Names may belong to either side.

    Raises
    ------
    InputError
        Where `infer_schema` and `read_two_views` raise it, or if both sides have a column of the same name.

    Examples
    --------
    >>> import polars as pl
    >>> left = pl.DataFrame({"site": [1, 2], "puma": [0, 1]})
    >>> right = pl.DataFrame({"site": [2, 1], "rain": [310.5, 42.0]})
    >>> [str(a.view) for a in infer_two_view_schema(left, right, id="site")]
    ['left', 'right']
    """
    choices = Choices(CutMode.parse(numeric), bins, max_categories, categorical, open_columns)
    written, other = guess_file(left), guess_file(right)
    if written is not None and other is not None and written != other:
        raise InputError("the two files differ in separator, encoding or skipped lines; write both in the same way")
    read = written or other or ReadOptions()
    sources = open_source(left, read=read), open_source(right, read=read)
    known = [name for source in sources for name in source.columns]
    _refuse_unknown_choices(choices, known)
    _refuse_unknown(exclude, known, "column to exclude")
    sides = [(source, [name for name in source.columns if name not in (*exclude, id)]) for source in sources]
    for source, names in sides:
        if not names:
            raise InputError(f"{source.name}: has no column left for an attribute; exclude fewer columns")
    left_names, right_names = (names for _, names in sides)
    for name in left_names:
        if name in right_names:
            raise InputError(f"column '{name}' is on both sides; name it in exclude, or rename one")
    columns = join(sides[0], sides[1], id, strict=True)
    views = dict.fromkeys(left_names, "left") | dict.fromkeys(right_names, "right")
    wheres = {name: f"{source.name}: column '{name}'" for source, names in sides for name in names}
    draft, refused = draft_of(columns, wheres, views, choices, read)
    require_all(refused)
    return draft.schema


def _refuse_unknown_choices(choices: Choices, known: Collection[str], where: str = "") -> None:
    """Refuse choices that name unknown columns."""
    _refuse_unknown(choices.categorical, known, f"{where}column to declare categorical")
    _refuse_unknown(choices.open_columns, known, f"{where}column to declare open")


def _refuse_unknown(names: Collection[str], known: Collection[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"{what}: there is no '{name}'; {nearest(name, known)}")
