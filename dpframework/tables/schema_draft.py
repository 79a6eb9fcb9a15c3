"""A draft of a schema from private columns, with notes on them, for the eyes of the data's owner only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, final

import attrs

from dpframework.facts.attributes import Attribute, Boolean, Categorical, Numeric
from dpframework.facts.column_read_options import ColumnOptions, DateUnit
from dpframework.facts.errors import InputError
from dpframework.facts.read_options import ReadOptions
from dpframework.facts.schema import Schema
from dpframework.facts.toml import toml_key, toml_lines
from dpframework.tables.attribute_kind_and_bounds_inference import NO_VALUES, Choices, CutMode, attribute_of
from dpframework.tables.cell_notation_reader import read_cells
from dpframework.tables.column_notation_guess import (
    Guess,
    case_twins,
    common_nulls,
    common_style,
    guess_column,
    perhaps_missing,
    with_groups,
    yes_and_no,
)
from dpframework.tables.distinct_column_texts import DistinctCells, distinct_cells
from dpframework.tables.plain_cell_series import Column, as_column, is_textual, plain_cells

if TYPE_CHECKING:
    import polars as pl

#: Modes whose cut points depend on which values occur, and not on how many cells hold each value.
_DISTINCT_MODES = (CutMode.EQUAL_WIDTH, CutMode.OBSERVED)
#: Stand-in attributes, for reading columns of numbers and columns of labels before their own attributes are known.
_NUMBER, _LABEL = Numeric("number", 0, 1, bins=1), Boolean("label")


@final
@attrs.frozen
class ColumnNote:
    """A note on the odd cells of a column and on how the draft treats them. It shows private cells and counts of them.

    Attributes
    ----------
    column
        The column's name.
    found
        A text that describes the cells, with examples.
    proposal
        A text that says how the draft treats these cells, or what you can do.
    lines
        The lines of a schema file that put the proposal into effect. Empty if there are none.
    left_out
        Whether the draft leaves out the column. If so, `lines` would make it an attribute.
    """

    column: str
    found: str
    proposal: str
    lines: tuple[str, ...] = ()
    left_out: bool = False

    def __str__(self) -> str:
        """Write the note as one line."""
        lines = f"{':' if self.proposal.endswith('write') else ';'} {' '.join(self.lines)}" if self.lines else ""
        return f"{self.column}: {self.found}; {self.proposal}{lines}"


@final
@attrs.frozen
class SchemaDraft:
    """A schema drafted from private data, with notes for the data's owner. Drafting is **not** private.

    Attributes
    ----------
    schema
        The schema, marked as inferred.
    notes
        Notes on columns that are left out, and on columns with cells that may be meant in another way. They are in the
        order of the columns. The notes show private cells, so keep them to yourself.
    """

    schema: Schema
    notes: tuple[ColumnNote, ...] = attrs.field(repr=False)

    def __str__(self) -> str:
        """Write one line for each note."""
        return "\n".join(map(str, self.notes))

    def dumps(self) -> str:
        """Return the schema as the text of a TOML file. Comments name columns that were left out, and show no cell."""
        texts = [self.schema.dumps()]
        for note in self.notes:
            if note.left_out:
                use = "To use it, say what it may hold, or declare it open:" if note.lines else f"It {note.found}."
                lines = [f"column {toml_key(note.column)} is left out. {use}", *note.lines]
                texts.append("".join(f"# {line}\n" for line in lines))
        return "\n".join(texts)


def draft_of(
    columns: Mapping[str, Any],
    wheres: Mapping[str, str],
    views: Mapping[str, str],
    choices: Choices,
    read: ReadOptions,
) -> tuple[SchemaDraft, list[InputError]]:
    """Return the draft of a schema, and the errors of the columns that were left out.

    Parameters
    ----------
    columns
        The whole columns by name, as their table holds them.
    wheres
        The words that begin an error's message about each column, by the column's name.
    views
        "left" or "right" for each column of two views, by the column's name.
    choices
        How columns are turned into attributes.
    read
        How the file is written, as far as that is known. Options that it states for a column are not guessed.
    """
    attributes: list[Attribute] = []
    notes, refused = list[ColumnNote](), list[InputError]()
    texts = {name: series for name, values in columns.items() if (series := _texts(values)) is not None}
    distinct = distinct_cells(texts)
    guesses = with_groups(
        {
            name: _guess_of(name, distinct.get(name), values, wheres[name], choices, read)
            for name, values in columns.items()
        }
    )
    drafted: dict[str, tuple[Guess, DistinctCells | None]] = {}
    for name, values in columns.items():
        guess, _ = guesses[name]
        cells = distinct.get(name) if choices.numeric in _DISTINCT_MODES else None
        try:
            column = _column_of(guess, cells, values, wheres[name])
            number = guess.options.is_date or guess.options.decimal is not None
            label = not guess.is_number and (bool(guess.found) or guesses[name][1] is not None)
            attribute = attribute_of(name, column, wheres[name], choices, number=number, label=label)
            if cells is not None and cells.missing:
                attribute = attrs.evolve(attribute, missing=True)
        except InputError as error:
            refused.append(error)
            notes.append(_left_out(name, values, str(error), wheres[name]))
            continue
        drafted[name] = guesses[name]
        attributes.append(attrs.evolve(attribute, view=views[name]) if name in views else attribute)
        notes += _notes(name, *guesses[name], attribute)
    if not attributes:
        require_all(refused)
    inferred, written = ["attribute kinds: observed", "missing allowed: observed"], _common(drafted, read)
    if any(isinstance(attribute, Categorical) for attribute in attributes):
        inferred.append("categorical values: observed")
    if any(isinstance(attribute, Numeric) for attribute in attributes):
        inferred += ["numeric bounds: observed", f"numeric cuts: {choices.numeric}"]
    if not written.is_plain:
        inferred.append("how cells are written: observed")
    return SchemaDraft(Schema(attributes, inferred=inferred, read=written), tuple(notes)), refused


def require_all(refused: list[InputError]) -> None:
    """Refuse columns that cannot become attributes, all in one error."""
    if len(refused) == 1:
        raise InputError(str(refused[0]))
    if refused:
        raise InputError(f"{len(refused)} columns give no attribute. " + ". ".join(map(str, refused)))


def _texts(values: Any) -> pl.Series | None:
    """Return a column if it is a polars series of texts, else None."""
    import narwhals as nw
    import polars as pl

    held = values.to_native() if isinstance(values, nw.Series) else values
    return held if isinstance(held, pl.Series) and held.dtype == pl.String else None


def _guess_of(
    name: str, found: DistinctCells | None, values: Any, where: str, choices: Choices, read: ReadOptions
) -> tuple[Guess, DistinctCells | None]:
    """Return how a column is written, and its distinct texts if the guess was made from them, else None."""
    import polars as pl

    known = read.of_column(name)
    if name in choices.open_columns or known.is_date or known.is_recoded:
        return Guess(known, known.is_date), None
    if found is None:
        cells, categories = (
            (values.series, values.categories) if isinstance(values, Column) else plain_cells(values, where)
        )
        if isinstance(cells, pl.Series) and cells.dtype.is_temporal() and not isinstance(cells.dtype, pl.Duration):
            unit = DateUnit.HOURS if cells.dtype == pl.Time else DateUnit.YEARS
            return Guess(ColumnOptions(date_unit=unit), True, "the cells are dates or times", f"read as {unit}"), None
        column = as_column(values, where)
        if categories or not is_textual(column.series):
            return Guess(known), None
        found = DistinctCells.of(column.series)
    if name in choices.categorical:
        return Guess(known), None
    found = found.without(known.null)
    guess = guess_column(found)
    given = {field: value for field, value in known.to_dict().items() if field != "null"}
    options = attrs.evolve(guess.options, null=[*known.null, *guess.options.null], **given)
    return attrs.evolve(guess, options=options), found


def _column_of(guess: Guess, cells: DistinctCells | None, values: Any, where: str) -> Column | DistinctCells:
    """Return the cells of a column, read with the guessed options. Texts in a column of numbers count as missing."""
    if guess.options == ColumnOptions():
        return as_column(values, where) if cells is None else cells
    if cells is not None:
        values = cells.texts
    column = read_cells(_NUMBER if guess.is_number else _LABEL, guess.options, values, where)
    return Column(column.series) if guess.is_number else column


def _common(drafted: Mapping[str, tuple[Guess, DistinctCells | None]], read: ReadOptions) -> ReadOptions:
    """Return the options of the file, where options that columns share are stated once."""
    numbers = [(g.options, cells) for g, cells in drafted.values() if g.is_number and not g.options.is_date]
    plain = [
        cells.without(options.null).texts for options, cells in numbers if cells is not None and options.decimal is None
    ]
    decimal, thousands = common_style([options for options, _ in numbers], plain)
    null = tuple(dict.fromkeys((*read.null, *common_nulls([guess.options for guess, _ in drafted.values()]))))
    columns = {}
    for name, (guess, _) in drafted.items():
        own = attrs.evolve(guess.options, null=[text for text in guess.options.null if text not in null])
        if decimal is not None and own.decimal is not None:
            own = attrs.evolve(own, decimal=None, thousands=None)
        if own != ColumnOptions():
            columns[name] = own
    read = attrs.evolve(read, null=null, columns=columns)
    return read if decimal is None else attrs.evolve(read, decimal=decimal, thousands=thousands)


def _notes(name: str, guess: Guess, cells: DistinctCells | None, attribute: Attribute) -> Iterator[ColumnNote]:
    if guess.found:
        form = guess.options.to_dict()
        yield ColumnNote(name, guess.found, guess.proposal, _read_lines(name, form) if form else ())
    if not isinstance(attribute, Categorical):
        return
    answers = yes_and_no(attribute.values)
    twins = answers or case_twins(attribute.values)
    if twins:
        shown = "; ".join(", ".join([label, *others]) for label, others in twins.items())
        what = "labels say yes or no in several ways" if answers else "labels differ in case only"
        lines = _read_lines(name, {"labels": twins})
        yield ColumnNote(name, f"{what}: {shown}", "to make each of them one label, write", lines)
    doubtful = None if cells is None else perhaps_missing(cells.without(guess.options.null))
    if doubtful is not None and cells is not None and doubtful.cells:
        texts = doubtful.by_frequency()
        found = f"{doubtful.cells:,} of {cells.cells:,} cells hold {', '.join(texts)}"
        lines = _read_lines(name, {"null": texts})
        yield ColumnNote(name, found, "read as a label; where it means a missing value, write", lines)


def _read_lines(name: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the lines of a schema file that say how a column is written."""
    return (f"[read.columns.{toml_key(name)}]", *toml_lines(options).splitlines())


def _left_out(name: str, values: Any, error: str, where: str) -> ColumnNote:
    """Return the note on a column that cannot become an attribute."""
    reason = error.removeprefix(f"{where} ").split("; ")[0]
    column = as_column(values, where)
    cells = len(column) - column.series.null_count()
    if reason == NO_VALUES:
        return ColumnNote(name, reason, "left out; nothing can be asked of it", (), True)
    proposal = "to count its values that several people share, declare it open"
    if column.foreign is None and cells:
        different = column.series.drop_nulls().n_unique()
        reason += f": {different:,} in {cells:,} cells"
        if different < cells:
            proposal = f"if it says to whom a row belongs, name it as the study's unit; {proposal}"
    return ColumnNote(
        name,
        reason,
        f"left out; {proposal}",
        ("[[attribute]]", *toml_lines({"name": name, "kind": "open"}).splitlines()),
        True,
    )
