"""How a draft guesses what a column and a file are: by how many cells, and in which words for the owner."""

from __future__ import annotations

import datetime
import gzip
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

import dpframework as dpf
from dpframework.facts.column_read_options import ColumnOptions
from dpframework.facts.errors import InputError
from dpframework.facts.read_options import ReadOptions
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
from dpframework.tables.distinct_column_texts import DistinctCells
from dpframework.tables.file_guess import _lines_above, _rows_above, _separator, guess_file, guess_skip


def cells(*texts: str) -> DistinctCells:
    return DistinctCells.of(pl.Series(texts, dtype=pl.String))


def guess(*texts: str) -> Guess:
    return guess_column(cells(*texts))


def whole(number: int) -> list[str]:
    return [str(k) for k in range(1, number + 1)]


DAYS = [datetime.date(2023, 1, 1) + datetime.timedelta(days=k) for k in range(500)]
WORDS = ["north", "east", "south", "west", "up", "down", "in", "out", "left", "right", "top", "low"]


@pytest.mark.parametrize(
    ("texts", "is_number", "options", "found"),
    [
        ([], False, {}, ""),
        (["1", "2.5", "1"], True, {}, ""),
        (["a", "b"], False, {}, ""),
        (["01067", "10115"], False, {}, "1 of 2 cells are digits that begin with a zero, such as 01067"),
        (["007", "NULL", "7"], False, {"null": ["NULL"]},
         "1 of 3 cells are digits that begin with a zero, such as 007"),
        (["20240131", "20231201"], True, {"date": "%Y%m%d"}, "all 2 cells are dates in digits, such as 20240131"),
        (["20240131", "20231301"], True, {}, ""),
        (["1", "2", "NA", "?", "NA"], True, {"null": ["NA", "?"]}, "3 of 5 cells are not numbers: NA, ?"),
        (["NULL", "a", "b", "a"], False, {"null": ["NULL"]}, "1 of 4 cells mean a missing value: NULL"),
        (["NULL", "NULL"], False, {}, ""),
        (["NA", "a", "b"], False, {}, ""),
        (["1,5", "2"], True, {"decimal": ","}, "1 of 2 cells are written like 1,5"),
        (["1.234,5", "2"], True, {"decimal": ",", "thousands": "."}, "1 of 2 cells are written like 1.234,5"),
        (["1 234,5", "2"], True, {"decimal": ",", "thousands": " "}, "1 of 2 cells are written like 1 234,5"),
        (["1,5", "-", "2"], True, {"decimal": ",", "null": ["-"]},
         "1 of 3 cells are written like 1,5, and 1 of 3 cells are not numbers: -"),
        (["3,5 kg", "2 kg"], True, {"decimal": ",", "symbols": ["kg"]},
         "2 of 2 cells are numbers with kg, such as 3,5 kg"),
        (["$ 10", "$ 20", "NA"], True, {"symbols": ["$"], "null": ["NA"]},
         "2 of 3 cells are numbers with $, such as $ 10, and 1 of 3 cells are not numbers: NA"),
        (["3 kg", "2 stones"], False, {}, ""),
        (["31.01.2024", "01.02.2024"], True, {"date": "%d.%m.%Y"},
         "2 of 2 cells are dates or times, such as 31.01.2024"),
        (["08:30", "17:05"], True, {"date": "%H:%M"}, "2 of 2 cells are dates or times, such as 08:30"),
        ([*["2024-01-31"] * 19, "soon"], True, {"date": "iso", "null": ["soon"]},
         "19 of 20 cells are dates or times, such as 2024-01-31, and 1 of 20 cells are not: soon"),
        ([*["2024-01-31"] * 18, "soon"], False, {}, ""),
    ],
    ids=repr,
)  # fmt: skip
def test_a_column_is_guessed(texts: Sequence[str], is_number: bool, options: dict[str, object], found: str) -> None:
    got = guess(*texts)
    assert got.options == ColumnOptions.of(options)
    assert (got.is_number, got.found) == (is_number, found)


@pytest.mark.parametrize(
    ("numbers", "words", "null"),
    [
        (whole(10), ["up"], None),  # more than ten numbers are needed to tell
        (whole(11), ["up"], {"up"}),
        ([*whole(20)] * 2, ["up"] * 10, {"up"}),  # a fifth
        ([*whole(39)], ["up"] * 10, None),
        (whole(100), WORDS[:10], set(WORDS[:10])),
        (whole(100), WORDS[:11], None),  # more kinds than are listed
        (whole(209), WORDS[:11], set()),  # which are a twentieth
        (whole(208), WORDS[:11], None),
    ],
    ids=lambda given: "" if given is None else str(len(given)),
)
def test_of_numbers_with_some_words_few_kinds_are_missing_and_many_are_left(
    numbers: list[str], words: list[str], null: set[str] | None
) -> None:
    got = guess(*numbers, *words)
    if null is None:
        assert got == Guess()
        return
    assert got.is_number
    assert set(got.options.null) == null
    assert got.found.startswith(f"{len(words)} of {len(numbers) + len(words)} cells are not numbers: ")


def test_commas_before_three_digits_are_doubtful() -> None:
    one = guess("1,234", "5")
    assert (one.options.decimal, one.options.thousands) == (",", None)
    assert one.proposal.endswith("; every comma is followed by three digits, so check whether it separates thousands")
    two = guess("10,000", "5")
    assert (two.options.decimal, two.options.thousands) == (".", ",")
    assert two.proposal.startswith("read as numbers with decimal sign '.', thousands ','; every comma")
    assert guess("1,234,567", "5").proposal == "read as numbers with decimal sign '.', thousands ','"
    three = guess("1,2345", "5")
    assert three.proposal == "read as numbers with decimal sign ','"


def test_a_date_that_fits_two_orders_says_so() -> None:
    both, one = guess("01/02/2024", "03/04/2024"), guess("01/02/2024", "13/04/2024")
    assert both.proposal == (
        "read as years, in the format '%d/%m/%Y'; they also fit '%m/%d/%Y', so check which of the two is right"
    )
    assert one.proposal == "read as years, in the format '%d/%m/%Y'"
    assert guess("08:30 PM", "09:05 AM").proposal == "read as hours, in the format '%I:%M %p'"
    many = [f"2024-01-{day:02}" for day in range(1, 29)] * 15
    unread = [f"x{k}" for k in range(11)]
    assert set(guess(*many, *unread[:10]).options.null) == set(unread[:10])
    assert guess(*many, *unread).options.null == ()
    assert set(guess(*many, *unread[:10], "NA").options.null) == {"NA"}


def test_a_column_of_dates_in_several_formats_is_read_by_each() -> None:
    german, iso, american = ([day.strftime(form) for day in DAYS] for form in ("%d.%m.%Y", "%Y-%m-%d", "%m/%d/%Y"))
    mixed = guess(*german, *german, *iso[:400], *american[:100])
    assert mixed.options.date == ("%d.%m.%Y", "iso", "%m/%d/%Y")
    assert mixed.is_number
    assert mixed.proposal == (
        "read as years, in the formats '%d.%m.%Y', 'iso', '%m/%d/%Y'; a date that fits several of them is read in the "
        "first"
    )
    assert mixed.found == "1,500 of 1,500 cells are dates or times, such as 01.01.2023"
    few = guess(*german, *iso[:20])
    assert few.options.date == ("%d.%m.%Y",)  # two in a hundred are left out
    assert guess(*german, *iso[:20], *["soon", "late"] * 40) == Guess()
    assert guess(*german[:50], *["08:30"] * 50) == Guess()  # a day and a time of day have no unit in common


def test_a_symbol_beside_few_of_the_numbers_is_found() -> None:
    few = guess(*(f"{k},50" for k in range(40)), "40,50 EUR", "-")
    assert few.options == ColumnOptions.of({"decimal": ",", "symbols": ["EUR"], "null": ["-"]})
    assert few.found.startswith("41 of 42 cells are numbers with EUR, such as 40,50 EUR, and 1 of 42")


def test_what_is_shown_of_texts_is_short() -> None:
    found = guess("1", "2", "#VALUE!", "NA", "na", "?", "--", "---", "NA").found
    assert found == "7 of 9 cells are not numbers: NA, #VALUE!, --, ---, ?, ..."
    assert guess("a", "NULL", "b").found.endswith("missing value: NULL")
    long = "x" * 41
    assert guess(*whole(60), "y" * 40, long).found.endswith(f"numbers: {long[:37]}..., {'y' * 40}")


def test_texts_of_all_columns_together() -> None:
    null = [ColumnOptions(null=["NULL", "-"]), ColumnOptions(null=["-", "N/A"]), ColumnOptions()]
    assert set(common_nulls(null)) <= {"NULL", "N/A"}
    assert "NULL" in common_nulls(null)
    comma, grouped = ColumnOptions(decimal=","), ColumnOptions(decimal=",", thousands=".")
    plain, pointed = pl.Series(["1", "2"]), pl.Series(["1.5"])
    assert common_style([comma, grouped], [plain]) == (",", ".")
    assert common_style([comma], [plain]) == (",", None)
    assert common_style([comma], []) == (",", None)
    assert common_style([comma], [pointed]) == (None, None)
    assert common_style([grouped], [pl.Series(["1.500"])]) == (None, None)
    assert common_style([comma, ColumnOptions(decimal=".", thousands=",")], [plain]) == (None, None)
    assert common_style([grouped, ColumnOptions(decimal=",", thousands=" ")], [plain]) == (None, None)
    assert common_style([ColumnOptions()], [plain]) == (None, None)


def test_spellings_of_labels() -> None:
    assert yes_and_no(["yes", "no"]) == {}
    assert yes_and_no(["yes", "Y", "no", "NA"]) == {"yes": ["Y"]}
    assert yes_and_no(["ja", "JA", "nein", "n"]) == {"ja": ["JA"], "nein": ["n"]}
    assert yes_and_no(["yes", "Y", "maybe"]) == {}
    assert case_twins(["a", "A", "b", "ß", "SS"]) == {"a": ["A"], "ß": ["SS"]}
    assert perhaps_missing(cells("-", "NULL", "none", "a", "-")).by_frequency() == ["-"]


def test_points_of_groups_are_told_by_other_columns() -> None:
    grouped, comma = cells("12.345", "7", "1.234.567"), cells("1,5")
    guesses = {"g": (guess_column(grouped), grouped), "c": (guess_column(comma), comma), "n": (Guess(), None)}
    found = with_groups(guesses)
    assert (found["g"][0].options.decimal, found["g"][0].options.thousands) == (",", ".")
    assert found["g"][0].found.startswith("2 of 3 cells are written like 12.345")
    assert (found["c"], found["n"]) == (guesses["c"], guesses["n"])
    assert with_groups({"g": guesses["g"]}) == {"g": guesses["g"]}
    for texts in (["12.34", "7"], ["12.345", "1.5"], ["7", "8"], ["0.345", "7"]):
        other = cells(*texts)
        alone = (guess_column(other), other)
        assert with_groups({"o": alone, "c": guesses["c"]})["o"] == alone


@pytest.mark.parametrize(
    ("rows", "above"),
    [
        ([], 0),
        ([["a", "b"], ["1", "2"]], 0),
        ([["t", ""], ["a", "b"]], 0),
        ([["title", "", ""], ["a", "b", "c"]], 1),
        ([["title", " ", "\t"], ["", "", ""], ["a", "b", "c"]], 2),
        ([["a", "b", "", ""], ["a", "b", "c", "d"]], 1),
        ([["a", "b", "c", ""], ["a", "b", "c", "d"]], 0),
        ([["", ""], ["", ""]], 0),
    ],
)
def test_rows_with_far_fewer_cells_stand_above_the_names(rows: list[list[str]], above: int) -> None:
    assert _rows_above(rows) == above


def test_lines_above_the_names_of_a_file() -> None:
    table = "a,b,c\n1,2,3\n"
    assert _lines_above(f"title\n\nof 2024\n{table}", ",") == 2
    assert _lines_above(f"\ufeff{table}", ",") == 0
    assert _lines_above(f'"two\nlines"\n{table}', ",") == 0
    assert _lines_above("note\n" * 29 + table, ",") == 29
    assert _lines_above("note\n" * 30 + table, ",") == 0
    assert _lines_above("note\n" + "x" * 140_000 + "\n" + table, ",") == 0  # a field that Python's reader refuses


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        (b"a,b\n1,2\n", ","),
        (b"a;b;c\n1;2;3\n", ";"),
        (b"a;b,c\n1;2,3\n", ","),
        (b"a;b;c,d\n1;2;3,4\n", ";"),
        (b"a\tb\n1\t2\n", "\t"),
        (b"a|b\n1|2", "|"),
        (b"a|b\n1|2\n3", "|"),
        (b"a\n1\n", ","),
        (b"title\na;b;c\n" + b"1;2;3\n" * 9, ";"),
        (b"title\na;b;c\n1;2;3\n", ","),
        (b"a;b\n1;2\n1\n", ";"),
        (b"a,b;c;d\n1\n", ";"),
        (b"a;b,c\n1;\n", ";"),  # by which the last line has two fields, too
        (b"a;b,c\n1;2\n3", ";"),  # the last line may be cut off
        (b"a,b;c\n1;2\n", ";"),
        (b"a,b;c\n\n1;2\n", ";"),  # blank lines have no fields
        (b"title\na;b\n" + b"1;2\n" * 9, ","),  # two fields are too few to tell
        (b"title\n" + b"1;2;3\n" * 4, ","),  # four fifths of the lines are too few
        (b"title\n" + b"1;2;3\n" * 5, ";"),
        (b"title\n" + b"1,2,3;4;5\n" * 9, ","),  # of two with as many fields the first
        (b"title\n" + b"1,2,3;4;5;6\n" * 9, ";"),
        (b"a;b;c,d,e,f\n" + b"1;2;3\n" * 10 + b"1;2\n", ","),  # nothing stands above, so that the first line decides
    ],
)
def test_the_separator_is_the_one_of_most_fields_by_which_lines_agree(text: bytes, separator: str) -> None:
    assert _separator(text) == separator


def test_rows_above_are_looked_for_in_sheets_of_which_nobody_says_how_many(tmp_path: Path) -> None:
    for data, read in (
        (pl.DataFrame({"a": [1]}), ReadOptions()),
        (tmp_path / "nowhere.csv", ReadOptions()),
        (tmp_path / "nowhere.xlsx", ReadOptions(skip=1)),
    ):
        assert guess_skip(data, read) is read
    with pytest.raises(InputError, match=r"nowhere\.xlsx"):
        guess_skip(tmp_path / "nowhere.xlsx", ReadOptions())


def test_of_several_files_the_first_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a;b\n1;2\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("a|b\n1|2\n", encoding="utf-8")
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress("a\tb\ngr\u00fcn\t2\n".encode("windows-1252")))
    (tmp_path / "d.txt").write_text("a;b\n", encoding="utf-8")
    assert guess_file(tmp_path / "[ac].csv*") == ReadOptions(separator=";")
    assert guess_file(tmp_path / "[bc].csv*") == ReadOptions(separator="|")
    assert guess_file(str(tmp_path / "c.csv.gz")) == ReadOptions(separator="\t", encoding="windows-1252")
    assert guess_file(tmp_path / "[ad].*") == ReadOptions(separator=";")
    assert guess_file(tmp_path / "d.txt") is None
    assert guess_file(pl.DataFrame({"a": [1]})) is None


def test_a_twentieth_of_a_long_column_may_be_no_dates() -> None:
    def column(words: int) -> Guess:
        first = datetime.date(1900, 1, 1)
        dates = [(first + datetime.timedelta(k)).strftime("%d.%m.%Y") for k in range(1000 - words)]
        return guess(*dates, *(f"word {chr(97 + k % 26)}{chr(97 + k // 26)}" for k in range(words)))

    assert column(50).options.date == ("%d.%m.%Y",)
    assert "and 50 of 1,000 cells are not" in column(50).found
    assert column(51) == Guess()


def test_columns_of_times_are_read_as_hours_and_those_of_dates_as_years() -> None:
    """Where a container's own types say which they are."""
    frame = pl.DataFrame(
        {
            "at": [datetime.time(8, 30), datetime.time(17, 5)],
            "on": [datetime.date(2024, 1, 31), datetime.date(2023, 12, 1)],
        }
    )
    notes = dpf.draft_schema(frame).notes
    assert [(note.column, note.proposal) for note in notes] == [("at", "read as hours"), ("on", "read as years")]
    assert [note.lines for note in notes] == [
        ("[read.columns.at]", 'date_unit = "hours"'),
        ("[read.columns.on]", 'date_unit = "years"'),
    ]
