"""Guess how the texts of columns are written. This reads private cells, and is for the data owner only.

Each guess says what was found, with numbers of cells and examples, for the owner to see. Cells in the notation of
programs need no guess: there, a number has a decimal point and no thousands separators, and a missing cell is empty.
All other notations are guessed.
"""

from __future__ import annotations

import collections
import functools
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.column_read_options import ISO, ColumnOptions
from dpframework.facts.phrases import first_of
from dpframework.tables.cell_notation_reader import styled_numbers, without_symbols
from dpframework.tables.date_reader import parse_times
from dpframework.tables.distinct_column_texts import DistinctCells
from dpframework.tables.plain_cell_series import as_numbers

if TYPE_CHECKING:
    import polars as pl

#: Texts that mean a missing value in any column. `_NULLS` also has texts that mean a missing value among numbers and
#: dates, but may be labels elsewhere.
SURE_NULLS = ("NULL", "null", "Null", "\\N", "#N/A", "#NA", "N/A", "n/a", "<NA>", "<null>", "(null)")
_NULLS = frozenset((*SURE_NULLS, "NA", "na", "None", "none", "NONE", "-", "--", "---", ".", "..", "?",
                    "k.A.", "k. A.", "keine Angabe", "missing", "Missing", "unknown", "Unknown", "unbekannt", "NaT",
                    "#VALUE!", "#DIV/0!", "#REF!"))  # fmt: skip
#: Decimal signs with thousands separators, in the order in which they are tried.
_STYLES = ((",", None), (",", "."), (".", ","), (",", " "), (".", " "), (".", "'"), (",", "'"))
_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d %b %Y",
         "%d-%b-%Y", "%d %B %Y", "%B %d, %Y", "%b %d, %Y", "%m/%Y", "%Y-%m")  # fmt: skip
_CLOCKS = ("%H:%M:%S", "%H:%M", "%I:%M %p")
_FORMATS = (ISO, *(f"{day}{time}" for time in ("", " %H:%M:%S", " %H:%M") for day in _DAYS), *_CLOCKS)
#: For each part of a date's format, the pattern of its shape (see `_shape_pattern`).
_SHAPES = {
    **dict.fromkeys(("%d", "%m", "%y", "%H", "%M", "%S", "%I"), "0"), "%Y": "[+-]?0",
    **dict.fromkeys(("%b", "%B", "%p"), "a"),
}  # fmt: skip
_AMBIGUOUS = {"%d/%m": "%m/%d"}
#: Texts of `_NULLS` that are labels in many columns.
_COMMON_LABELS = frozenset(("None", "none", "NONE", "unknown", "Unknown", "unbekannt"))
_YES, _NO = frozenset(("yes", "y", "ja", "j", "oui", "si", "s\u00ed", "s\u00ec")), frozenset(("no", "n", "nein", "non"))
_SYMBOLS = frozenset((
    "%", "\u2030", "\u20ac", "$", "\u00a3", "\u00a5", "EUR", "USD", "GBP", "CHF", "JPY", "SEK", "NOK", "DKK", "PLN",
    "mg", "g", "kg", "t", "mm", "cm", "m", "km", "ml", "l", "h", "min", "s", "ms", "\u00b0C", "\u00b0F", "mmHg", "bpm",
    "kcal", "kJ", "kWh", "W", "kW", "Hz",
))  # fmt: skip
_AROUND_NUMBER = re.compile(r"([^0-9+.,-]*)[+-]?[0-9][0-9.,' \u00a0\u202f]*?([^0-9.,'-]*)")
_PADDED = r"^0[0-9]+$"
_DAY_IN_DIGITS = r"^(19|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])$"
_WHOLE, _GROUPED = r"^[+-]?[0-9]+$", r"^[+-]?[1-9][0-9]{0,2}([.][0-9]{3})+$"
_DIGITS, _LETTERS = re.compile("[0-9]+"), re.compile("[A-Za-z]+")
_SHOWN = 5  # the most texts that are shown as examples
_FEW = 10  # the most texts that mean a missing value in one column; also how many texts are tried first
_RARE = 0.05  # the least share of all cells that a format of dates must read, beyond those that earlier formats read
_MOST_FORMATS = 4
_SAMPLE = 500  # how many texts are tried before all of them


@final
@attrs.frozen
class Guess:
    """A guess of how a column is written.

    Attributes
    ----------
    options
        The options by which the cells are read.
    is_number
        Whether the cells are numbers or dates, and not labels.
    found
        A text for the owner only. It names cells that are not in the notation of programs, and those that look like
        numbers but may be something else, such as dates in digits. Empty if there are none.
    proposal
        A text that says how the drafted schema reads the cells that `found` names.
    """

    options: ColumnOptions = attrs.field(factory=ColumnOptions)
    is_number: bool = False
    found: str = ""
    proposal: str = ""


def guess_column(cells: DistinctCells) -> Guess:
    """Return how a column of texts is written.

    Parameters
    ----------
    cells
        The distinct texts of the column.
    """
    number, strange = cells.cells, cells.strange
    if not number:
        return Guess()
    padded = np.zeros(len(strange), dtype=np.bool_) if strange.all() else cells.matching(_PADDED)
    if padded.any():
        nulls = cells.only(cells.among(SURE_NULLS))
        zeros = cells.only(padded)
        found = f"{_share_of(zeros.cells, number)} are digits that begin with a zero, such as {zeros.texts[0]}"
        return Guess(ColumnOptions(null=nulls.by_frequency()), False, found, "read as labels, not as numbers")
    if not strange.any():
        # The first text is tried before all others, since most columns of numbers are no dates.
        if re.search(_DAY_IN_DIGITS, cells.texts[0]) and cells.matching(_DAY_IN_DIGITS).all():
            found = f"all {number:,} cells are dates in digits, such as {cells.texts[0]}"
            return Guess(ColumnOptions(date="%Y%m%d"), True, found, "read as years")
        return Guess(is_number=True)
    rest = cells.only(strange)
    empty = rest.among(_NULLS)
    nulls = rest.only(empty)
    plain = not strange.all()
    if plain and empty.all():
        return _with_nulls(ColumnOptions(null=nulls.by_frequency()), rest, number)
    others = cells.without(nulls.texts.to_list())
    guess = (
        _guess_styled(others, nulls, number)
        or _guess_dates(others, nulls, number)
        or _guess_with_symbols(others, nulls, number)
    )
    if guess is not None:
        return guess
    # In a column of numbers, more than `_FEW` texts are numbers, and at most a fifth of the cells hold other texts. If
    # there are many such other texts, only a twentieth of the cells may hold them.
    if plain and 5 * rest.cells <= number and len(strange) - len(empty) > _FEW:
        few = len(empty) <= _FEW
        if few or 20 * rest.cells <= number:
            options = ColumnOptions(null=rest.by_frequency()) if few else ColumnOptions()
            return _with_nulls(options, rest, number)
    sure = rest.among(SURE_NULLS)
    if sure.any() and not sure.all():
        stand = rest.only(sure)
        found = f"{_share_of(stand.cells, number)} mean a missing value: {_list_texts(stand.by_frequency())}"
        return Guess(ColumnOptions(null=stand.by_frequency()), False, found, "read as missing")
    return Guess()


def _share_of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} cells"


def _list_texts(texts: Sequence[str]) -> str:
    return first_of([text if len(text) <= 40 else f"{text[:37]}..." for text in texts[: _SHOWN + 1]], _SHOWN)


def _with_nulls(options: ColumnOptions, rest: DistinctCells, cells: int) -> Guess:
    """Return the guess for a column whose cells are numbers, except those in `rest`."""
    found = f"{_share_of(rest.cells, cells)} are not numbers: {_list_texts(rest.by_frequency())}"
    return Guess(options, True, found, "read as missing")


def _guess_styled(cells: DistinctCells, nulls: DistinctCells, number: int) -> Guess | None:
    """Return the guess for numbers with a decimal comma or thousands separators, None for other cells."""
    texts = cells.texts
    if not len(texts):
        return None
    sample = texts.head(_SAMPLE)
    # The sample is tried first, since most styles do not fit even there.
    fitting = [style for style in _STYLES if _fits(style, sample) and _fits(style, texts)]
    if not fitting:
        return None
    decimal, thousands = fitting[0]
    grouped = bool(texts.str.contains(r"^[+-]?[0-9]{1,3}(,[0-9]{3})+$|^[+-]?[0-9]+$").all())
    doubt = ""
    if (decimal, thousands) == (",", None) and grouped:
        # Nobody writes a fraction as ,000, so these commas separate thousands.
        if bool(texts.str.contains(r"^[1-9][0-9]{0,2},000$").any()):
            decimal, thousands = ".", ","
        doubt = "; every comma is followed by three digits, so check whether it separates thousands"
    marked = cells.only(texts.str.contains(r"[^0-9+-]").to_numpy())
    found = f"{_share_of(marked.cells, number)} are written like {marked.texts[0]}"
    if nulls.cells:
        found += f", and {_share_of(nulls.cells, number)} are not numbers: {_list_texts(nulls.by_frequency())}"
    signs = f"decimal sign '{decimal}'" + (f", thousands '{thousands}'" if thousands else "")
    options = ColumnOptions(decimal=decimal, thousands=thousands, null=nulls.by_frequency())
    return Guess(options, True, found, f"read as numbers with {signs}{doubt}")


def _guess_with_symbols(cells: DistinctCells, nulls: DistinctCells, number: int) -> Guess | None:
    """Return the guess for numbers with a usual symbol, such as 3,5 kg or $ 10, None for other cells."""
    symbols: set[str] = set()
    for text in cells.head(_SAMPLE).texts.to_list():
        match = _AROUND_NUMBER.fullmatch(text)
        symbols |= {beside.strip() for beside in match.groups() if beside.strip()} if match else set()
        if not match or not symbols <= _SYMBOLS:
            return None
    if not symbols:
        return None
    texts = without_symbols(cells.texts, sorted(symbols))
    alone = DistinctCells(texts, cells.counts, *as_numbers(texts), cells.missing)
    inner = (
        _guess_styled(alone, nulls, number)
        if alone.strange.any()
        else Guess(ColumnOptions(null=nulls.by_frequency()), True)
    )
    if inner is None:
        return None
    beside, shown = " or ".join(sorted(symbols)), cells.only((cells.texts != texts).to_numpy()).texts[0]
    found = f"{_share_of(number - nulls.cells, number)} are numbers with {beside}, such as {shown}"
    if nulls.cells:
        found += f", and {_share_of(nulls.cells, number)} are not numbers: {_list_texts(nulls.by_frequency())}"
    proposal = f"{inner.proposal or 'read as numbers'}, without {beside}"
    return Guess(attrs.evolve(inner.options, symbols=sorted(symbols)), True, found, proposal)


def _fits(style: tuple[str, str | None], texts: pl.Series) -> bool:
    return not bool(styled_numbers(ColumnOptions(decimal=style[0], thousands=style[1]), texts)[1].any())


def _guess_dates(cells: DistinctCells, nulls: DistinctCells, number: int) -> Guess | None:
    """Return the guess for dates or times. Return None if the formats found leave out more than 5 % of the cells."""
    # First look for one format of nearly all cells, by trying the most frequent texts. Then look for several formats of
    # days, by trying texts of every frequency, since the most frequent texts may all be in one format.
    spread = cells.only(np.arange(len(cells.texts)) % max(len(cells.texts) // _SAMPLE, 1) == 0)
    days = [form for form in _FORMATS if form not in _CLOCKS]
    for sample, given, share, number_of in (
        (cells.head(_SAMPLE), _FORMATS, 0.95, 1),
        (spread, days, 0.01, _MOST_FORMATS),
    ):
        shapes: dict[str, int] = collections.defaultdict(int)
        for text, count in zip(sample.texts.to_list(), sample.counts.tolist(), strict=True):
            shapes[_LETTERS.sub("a", _DIGITS.sub("0", text))] += count
        least = share * sample.cells
        looks = {form: sum(n for shape, n in shapes.items() if _shape_pattern(form).match(shape)) for form in given}
        likely = [form for form in given if looks[form] >= least > 0]
        fits = [form for form in likely if sample.number(_parse(form, sample)) >= least]
        parsed = {form: _parse(form, cells) for form in fits}
        forms, unfit = _cover(cells, parsed, number_of)
        if forms and cells.number(unfit) * 20 <= cells.cells:
            return _dates_by(forms, parsed, cells, unfit, nulls, number)
    return None


def _cover(
    cells: DistinctCells, parsed: Mapping[str, NDArray[np.bool_]], most: int
) -> tuple[list[str], NDArray[np.bool_]]:
    """Return up to `most` formats, each of many cells that no earlier one reads, and which texts are in none."""
    forms, left = list[str](), np.ones(len(cells.texts), dtype=np.bool_)
    while parsed and len(forms) < most:
        best = max(parsed, key=lambda form: cells.number(parsed[form] & left))
        if cells.number(parsed[best] & left) < _RARE * cells.cells:
            break
        forms.append(best)
        left &= ~parsed[best]
    return forms, left


def _dates_by(
    forms: Sequence[str],
    parsed: Mapping[str, NDArray[np.bool_]],
    cells: DistinctCells,
    unfit: NDArray[np.bool_],
    nulls: DistinctCells,
    number: int,
) -> Guess:
    """Return the guess for dates in some formats, where `unfit` says which texts are in none of them."""
    unread, dates = cells.only(unfit), cells.only(~unfit)
    found = f"{_share_of(dates.cells, number)} are dates or times, such as {dates.texts[0]}"
    gone = [*nulls.by_frequency(), *unread.by_frequency()]
    if gone:
        found += f", and {_share_of(nulls.cells + unread.cells, number)} are not: {_list_texts(gone)}"
    doubt = "; a date that fits several of them is read in the first" if len(forms) > 1 else ""
    for one, other in _AMBIGUOUS.items():
        for form in forms:
            twin = form.replace(one, other)
            if form.startswith(one) and twin in parsed and cells.number(parsed[twin]) == cells.number(parsed[form]):
                doubt = f"; they also fit '{twin}', so check which of the two is right"
    listed = gone if len(gone) <= _FEW else nulls.by_frequency()
    options = ColumnOptions(date=forms, null=listed)
    by = f"format '{forms[0]}'" if len(forms) == 1 else f"formats {', '.join(map(repr, forms))}"
    return Guess(options, True, found, f"read as {options.unit}, in the {by}{doubt}")


@functools.cache
def _shape_pattern(form: str) -> re.Pattern[str]:
    """Return a pattern that matches the shape of every text in a format.

    In the shape of a text, each run of digits is written as 0, and each run of letters as a. Texts in other formats may
    have the same shape, so this quick test can only exclude a format.
    """
    if form == ISO:
        return re.compile("0-")
    parts = re.split(r"(%.)", form.replace(" ", ""))
    return re.compile(r"\s*".join(_SHAPES.get(part, re.escape(part)) for part in parts))


def _parse(form: str, cells: DistinctCells) -> NDArray[np.bool_]:
    """Return which texts are dates or times in a format, shape (texts,)."""
    return next(parse_times(cells.texts, (form,))).is_not_null().to_numpy()


def common_nulls(options: Sequence[ColumnOptions]) -> tuple[str, ...]:
    """Return the texts that some column's options read as missing, and that mean a missing value in any column."""
    found = dict.fromkeys(text for own in options for text in own.null)
    return tuple(text for text in found if text in SURE_NULLS)


def common_style(options: Sequence[ColumnOptions], numbers: Sequence[pl.Series]) -> tuple[str | None, str | None]:
    """Return the decimal sign and the thousands separator that all columns of numbers can share, or None for both.

    Parameters
    ----------
    options
        The options of all columns of numbers.
    numbers
        The texts of each column whose numbers are in the notation of programs.
    """
    import polars as pl

    styles = {(own.decimal, own.thousands) for own in options if own.decimal is not None}
    decimals, groups = {one for one, _ in styles}, {one for _, one in styles if one is not None}
    if len(decimals) != 1 or len(groups) > 1:
        return None, None
    decimal, thousands = next(iter(decimals)), next(iter(groups), None)
    shared = ColumnOptions(decimal=decimal, thousands=thousands)
    # A few texts of each column are tried first, since they usually decide.
    for parts in ([texts.head(_FEW) for texts in numbers], numbers):
        texts = pl.concat(parts) if parts else pl.Series(dtype=pl.String)
        if styled_numbers(shared, texts)[1].any():
            return None, None
    if thousands is not None and bool(texts.str.contains(thousands, literal=True).any()):
        return None, None
    return decimal, thousands


def yes_and_no(labels: Sequence[str]) -> dict[str, list[str]]:
    """Return one spelling of yes and one of no, each with the other spellings of the same word.

    A word that has one spelling only is left out. The result is empty if a label means anything other than yes, no or a
    missing value.

    Examples
    --------
    >>> yes_and_no(["N", "Yes", "no", "yes"])
    {'no': ['N'], 'yes': ['Yes']}
    >>> yes_and_no(["no", "yes", "perhaps"])
    {}
    """
    said: dict[bool, list[str]] = {}
    for label in labels:
        word = label.casefold()
        if word in _NULLS or label in _NULLS:
            continue
        if word not in _YES and word not in _NO:
            return {}
        said.setdefault(word in _YES, []).append(label)
    found = {}
    for spellings in said.values():
        one = max(spellings, key=lambda label: (len(label), label.islower()))
        if len(spellings) > 1:
            found[one] = [label for label in spellings if label != one]
    return found


def perhaps_missing(cells: DistinctCells) -> DistinctCells:
    """Return the labels that mean a missing value in many tables, such as a dash, but may be labels in this one."""
    return cells.only(cells.among(_NULLS.difference(SURE_NULLS, _COMMON_LABELS)))


def case_twins(labels: Sequence[str]) -> dict[str, list[str]]:
    """Return labels that differ in case only, as a dictionary from the first of them to the later ones."""
    alike: dict[str, list[str]] = {}
    for label in labels:
        alike.setdefault(label.casefold(), []).append(label)
    return {first: others for first, *others in alike.values() if others}


def with_groups(
    guesses: Mapping[str, tuple[Guess, DistinctCells | None]],
) -> dict[str, tuple[Guess, DistinctCells | None]]:
    """Return the guesses for columns, corrected where points separate thousands.

    The points in numbers such as 12.345 separate thousands if every point is followed by three digits, and if some
    other column has decimal commas.
    """
    found = dict(guesses)
    if not any(guess.options.decimal == "," for guess, _ in guesses.values()):
        return found
    for name, (guess, cells) in guesses.items():
        if cells is None or not guess.is_number or guess.options.is_date or guess.options.decimal is not None:
            continue
        numbers = cells.without(guess.options.null)
        if not all(re.search(f"{_WHOLE}|{_GROUPED}", text) for text in numbers.texts.head(_FEW)):
            continue  # a few texts are enough to recognise most columns of fractions
        marked = numbers.matching(_GROUPED)
        if marked.any() and (marked | numbers.matching(_WHOLE)).all():
            grouped = numbers.only(marked)
            more = f", and {guess.found}" if guess.found else ""
            told = f"{_share_of(grouped.cells, cells.cells)} are written like {grouped.texts[0]}{more}"
            proposal = "read as numbers with thousands '.', since other columns have decimal commas"
            options = attrs.evolve(guess.options, decimal=",", thousands=".")
            found[name] = Guess(options, True, told, proposal), cells
    return found
