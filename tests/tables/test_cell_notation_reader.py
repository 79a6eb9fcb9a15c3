"""Cells as tables write them: each is read by itself, in every container and by every engine alike."""

from __future__ import annotations

import datetime
import functools
import gzip
import itertools
import json
import math
import tomllib

import attrs
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import dpframework as dpf
from dpframework.cli import main
from dpframework.facts.column_read_options import ColumnOptions
from dpframework.facts.errors import InputError
from dpframework.facts.read_options import MOST_SKIPPED, ReadOptions
from dpframework.tables.cell_notation_reader import read_cells
from dpframework.tables.date_reader import date_number, numbers_of_times, times_of_texts
from dpframework.tables.prediction_rows import NewRows
from dpframework.tables.reading import read_table, table_from_columns, table_from_frame
from dpframework.tables.schema_draft import ColumnNote
from dpframework.tables.schema_fit import check_fit
from dpframework.tables.schema_inference import draft_schema, infer_schema
from dpframework.tables.unread_table_files import TableFiles

from .messy import COLUMNS, LEFT_OUT, write_messy

READ = {
    "separator": ";",
    "null": ["NULL", "-99"],
    "decimal": ",",
    "thousands": ".",
    "columns": {
        "visit": {"date": ["%d.%m.%Y", "%d.%m.%Y %H:%M", "iso", "%Y%m%d"]},
        "sex": {"labels": {"female": ["f", "w"], "male": ["m", "1"]}, "other": "other"},
        "age": {"ranges": {"child": [0, 18], "adult": [18, 120]}},
        "pid": {"null": "none"},
    },
}
SCHEMA = dpf.Schema(
    [
        dpf.Numeric("visit", 2000, 2030, bins=30, missing=True),
        dpf.Categorical("sex", ["female", "male", "other"], missing=True),
        dpf.Categorical("age", ["child", "adult"], missing=True),
        dpf.Numeric("cost", -1e4, 1e4, bins=8, missing=True),
    ],
    read=READ,
)
TEXTS = [
    *("1,5", "1.234,5", "1.234", "1.5", "12.34", "-99", "-99,0", "-0099", "NULL", " NULL ", "null", "", " ", "x", "+7"),
    *("01.02.2024", "1.2.2024", "31.02.2024", "2024-02-29", "2024-02-29T12:00Z", "20240131", "01.02.2024 13:05"),
    *("f", "w ", "m", "1", "1.0", "true", "female", "Other", "17,99", "18", "nan", "inf", "1e3", ",5", "5,", "1 000"),
]
OBJECTS = [None, 1, 1.5, -99, -99.0, 20240131, 17.99, True, False, math.nan, math.inf, 2020.5, np.float32(0.1)]
OBJECTS += [datetime.date(2024, 2, 1), datetime.datetime(2024, 2, 1, 13, 5), datetime.time(9, 30), [1]]
NAMES = ("visit", "sex", "age", "cost")


def read_alone(cell) -> dict[str, tuple[int, float]]:
    table = table_from_columns({name: [cell] for name in NAMES}, SCHEMA)
    return {name: (int(table.codes[k][0]), float(table.values.get(name, [0.0])[0])) for k, name in enumerate(NAMES)}


@functools.cache
def alone() -> dict[int, dict[str, tuple[int, float]]]:
    """Return what each cell is when it is read by itself."""
    return {id(cell): read_alone(cell) for cell in (*TEXTS, *OBJECTS)}


def require_alike(table, cells) -> None:
    for k, name in enumerate(NAMES):
        expected = [alone()[id(cell)][name] for cell in cells]
        assert table.codes[k].tolist() == [code for code, _ in expected], name
        if name in table.values:
            np.testing.assert_array_equal(table.values[name], [value for _, value in expected])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([*TEXTS, *OBJECTS]), min_size=1, max_size=12))
def test_a_cell_is_read_alike_whatever_stands_beside_it(cells) -> None:
    require_alike(table_from_columns(dict.fromkeys(NAMES, cells), SCHEMA), cells)
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name in NAMES})
    require_alike(table_from_frame(frame, SCHEMA), cells)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=12))
def test_texts_are_read_alike_in_files_and_frames(tmp_path_factory, cells) -> None:
    frame = pl.DataFrame(dict.fromkeys(NAMES, cells))
    require_alike(table_from_frame(frame, SCHEMA), cells)
    folder = tmp_path_factory.mktemp("cells")
    frame.write_csv(folder / "t.csv", separator=";")
    frame.write_parquet(folder / "t.parquet")
    for path in (folder / "t.csv", folder / "t.parquet"):
        require_alike(read_table(path, SCHEMA), cells)


def test_what_cells_mean() -> None:
    table = table_from_columns(
        {
            "visit": ["02.07.2023", "2024-01-01", "20240101", datetime.date(2024, 1, 1), "soon"],
            "sex": ["f", " W", "1", "female", "NULL"],
            "age": ["17,99", 18, "3", "-99", "130"],
            "cost": ["1.234,5", "1.5", "-99,0", "7", 7.25],
        },
        SCHEMA,
    )
    np.testing.assert_array_equal(table.values["visit"], [2023 + 182 / 365, 2024, 2024, 2024, np.nan])
    assert [SCHEMA["sex"].labels[code] for code in table.codes[1]] == ["female", "other", "male", "female", "missing"]
    assert [SCHEMA["age"].labels[code] for code in table.codes[2]] == ["child", "adult", "child", "missing", "missing"]
    np.testing.assert_array_equal(table.values["cost"], [1234.5, np.nan, np.nan, 7, 7.25])


@pytest.mark.parametrize(
    ("options", "cell", "number"),
    [
        ({"date": "%H:%M"}, "09:30", 9.5),
        ({"date": "%H:%M"}, datetime.time(9, 30), 9.5),
        ({"date": "%m/%Y"}, "02/2024", 2024 + 31 / 366),
        ({"date": "%m/%Y %H:%M", "date_unit": "hours"}, "02/2024 06:00", 6),
        ({"date": "%d %b %y"}, "2 Jan 24", 2024 + 1 / 366),
        ({"date_unit": "days"}, "1970-01-02T12:00:00.5+02:00", 1.5 + 0.5 / 86400),
        ({"date": "%I:%M %p"}, "1:15 PM", 13.25),
        ({"decimal": ",", "thousands": "'"}, "1'234,5", 1234.5),
        ({"decimal": ".", "thousands": " "}, "1\u202f234.5", 1234.5),
        ({"decimal": ".", "thousands": ","}, "1,23", math.nan),
        ({"decimal": ",", "null": ["0"]}, "0,0", math.nan),
        ({"symbols": ["EUR", "E"]}, "EUR -12.5", -12.5),
        ({"symbols": ["E", "EUR"]}, "12EUR", 12),
        ({"symbols": "%", "decimal": ",", "thousands": "."}, "1.084,1 %", 1084.1),
        ({"symbols": "%"}, "7", 7),
        ({"symbols": "%"}, "7 EUR", math.nan),
        ({"symbols": "%"}, "%", math.nan),
        ({"symbols": "%", "null": ["0"]}, "0 %", math.nan),
    ],
)
def test_one_number(options, cell, number) -> None:
    attribute, options = dpf.Numeric("x", 0, 1, bins=1), ColumnOptions(**options)
    for cells in ([cell], pl.Series([cell]), [cell, "beside"], [cell, 5], np.array([cell], dtype=object)):
        found = read_cells(attribute, options, cells, "x").series[0]
        assert found == pytest.approx(number, abs=0) if not math.isnan(number) else found is None


@pytest.mark.parametrize(
    ("own", "other", "found"),
    [
        ({}, {"table": "visits"}, {"table": "visits"}),
        ({"decimal": ","}, {"query": "select 1"}, {"decimal": ",", "query": "select 1"}),
        ({"table": "ours"}, {"table": "visits"}, {"table": "ours"}),
        ({"table": "ours"}, {"query": "select 1"}, {"table": "ours"}),
        (
            {"query": "select 2", "skip": 1},
            {"table": "visits", "sheet": "a"},
            {"query": "select 2", "skip": 1, "sheet": "a"},
        ),
        ({"null": ["-"]}, {"null": ["?"], "separator": ";"}, {"null": ["-"], "separator": ";"}),
        (
            {"columns": {"a": {"null": "-"}, "b": {"decimal": ","}}},
            {"columns": {"a": {"null": "?", "decimal": "."}, "c": {"null": "0"}}},
            {"columns": {"a": {"null": "-", "decimal": "."}, "c": {"null": "0"}, "b": {"decimal": ","}}},
        ),
    ],
)
def test_options_over_others_leave_what_they_do_not_say(own, other, found) -> None:
    assert ReadOptions.of(own).over(ReadOptions.of(other)) == ReadOptions.of(found)


@pytest.mark.parametrize(
    ("formats", "unit"),
    [
        ([], "years"),
        (["iso"], "years"),
        *(([form], "years") for form in ("%d.%m.%Y", "%m/%y", "%b %Y", "%d %B %y", "%Y-%j", "%d.%m.%Y %H:%M")),
        *(([form], "hours") for form in ("%H:%M", "%H:%M:%S", "%I:%M %p", "%p %I.%M.%S", "%H:%M %%Y")),
        (["%H:%M", "%I:%M %p"], "hours"),
        (["%H:%M", "%Y-%m-%d"], "years"),
        (["%Y-%m-%d", "%H:%M"], "years"),
        (["%H:%M", "iso"], "years"),
    ],
)
def test_formats_of_which_one_holds_a_date_become_years_and_times_of_day_hours(formats: list[str], unit: str) -> None:
    assert ColumnOptions(date=formats).unit == dpf.facts.DateUnit(unit)
    for wanted in dpf.facts.DateUnit:
        assert ColumnOptions(date=formats, date_unit=wanted).unit == wanted


@pytest.mark.parametrize(
    "clock", ["", *map("".join, itertools.product(["", "H", "I", "HI"], ["", "M"], ["", "S"], ["", "p"]))]
)
def test_a_format_names_a_day_of_a_year_or_a_time_of_day_and_whole_ones(clock: str) -> None:
    """Each format that is accepted is one that texts can be read by."""
    texts = pl.Series(["2024 02", "2024 2 29 13 45", "1 2 3"])
    for day in ("", "Y", "y", "m", "d", "b", "B", "j", "Yd", "dm", "Ym", "yb", "dBY", "jY"):
        form = " ".join(f"%{one}" for one in (*day, *clock))
        is_time = clock.replace("S", "") in ("HM", "IMp")
        is_day = bool(set(day) & set("Yy") and set(day) & set("mbBj"))
        if clock and not is_time:
            with pytest.raises(InputError, match="names no time of day; write one such as '%H:%M' or '%I:%M %p'"):
                ColumnOptions(date=form)
        elif form and (is_day or not day):
            assert ColumnOptions(date=form).date == (form,)
            for unit in dpf.facts.DateUnit:
                assert len(times_of_texts(texts, [form], unit)) == 3
        elif form:
            with pytest.raises(InputError, match=r"names no day of a year; write one such as '%d\.%m\.%Y'"):
                ColumnOptions(date=form)


@pytest.mark.parametrize("unit", dpf.facts.DateUnit)
def test_a_text_is_read_by_the_first_format_that_fits_whichever_were_tried_before(unit: dpf.facts.DateUnit) -> None:
    formats = [
        "iso",
        "%d.%m.%Y",
        "%m/%Y",
        "%Y %b",
        "%d.%m.%Y %H:%M",
        "%m/%Y %H:%M",
        "%Y-%j",
        "%H:%M",
        "%Y%m%d",
        "%y%d%m",
    ]
    cells = [
        "2024-02-29",
        "29.02.2024",
        "02/2024",
        "2024 Feb",
        "29.02.2024 13:45",
        "02/2024 13:45",
        "2024-060",
        "13:45",
    ]
    texts = pl.Series([*cells, "20240229", "242902", "2024-02-29T13:45", "soon", None])
    alone = {one: times_of_texts(texts, [one], unit).to_list() for one in formats}
    assert all(any(number is not None for number in numbers) for one, numbers in alone.items() if one != "%H:%M")
    for several in itertools.permutations(formats, 3):
        numbers = zip(*(alone[one] for one in several), strict=True)
        first = [next((number for number in each if number is not None), None) for each in numbers]
        assert times_of_texts(texts, several, unit).to_list() == first, several


def test_a_date_is_one_number_as_text_as_cell_and_as_object() -> None:
    day = datetime.datetime(2024, 2, 29, 13, 45, 59, 250000)
    assert date_number(day.replace(tzinfo=datetime.timezone.max), dpf.facts.DateUnit.DAYS) == date_number(
        day, dpf.facts.DateUnit.DAYS
    )
    for unit in dpf.facts.DateUnit:
        options = ColumnOptions(date_unit=unit)
        found = read_cells(dpf.Numeric("x", 0, 1, bins=1), options, pl.Series([day]), "x").series[0]
        assert found == date_number(day, unit)
        assert found == read_cells(dpf.Numeric("x", 0, 1, bins=1), options, [str(day)], "x").series[0]


@pytest.mark.parametrize("unit", dpf.facts.DateUnit)
def test_no_time_differs_in_its_last_digit_as_text_as_cell_and_as_object(unit: dpf.facts.DateUnit) -> None:
    """One row more may make a column one of objects, so a digit would move the other rows over a cut."""
    first, second = datetime.datetime(1969, 12, 1, 0, 0, 3, 249), datetime.timedelta(seconds=5483, microseconds=4507)
    times = [first + k * second for k in range(1500)]
    expected = [date_number(time, unit) for time in times]
    assert numbers_of_times(pl.Series(times), unit).to_list() == expected
    assert times_of_texts(pl.Series([time.isoformat() for time in times]), ["iso"], unit).to_list() == expected
    if unit is dpf.facts.DateUnit.HOURS:
        clock = [time.time() for time in times]
        assert numbers_of_times(pl.Series(clock), unit).to_list() == [date_number(one, unit) for one in clock]


def test_ids_and_the_dates_of_periods_are_read_as_written(tmp_path) -> None:
    (tmp_path / "t.csv").write_text(
        "pid;visit;sex;age;cost;day\n1;;f;3;1;01.02.2024\n1;;f;3;2;02.02.2024\n"
        "none;;f;3;3;01.02.2024\n-99;;f;3;4;01.02.2024\n2;;f;3;5;01.03.2024\n"
    )
    read = dpf.PrivacyUnit("pid", 1)
    assert read_table(tmp_path / "t.csv", SCHEMA, unit=read).rows == 2
    schema = dpf.Schema(SCHEMA.attributes, read={**READ, "columns": {**READ["columns"], "day": {"date": "%d.%m.%Y"}}})
    unit = dpf.PrivacyUnit("pid", 2, period="month", date="day").during("2024-02")
    assert sorted(read_table(tmp_path / "t.csv", schema, unit=unit).values["cost"]) == [1, 2]
    found = check_fit(tmp_path / "t.csv", SCHEMA, unit=read)
    assert [misfit.rows for misfit in found if misfit.bounded] == [1]
    assert any("no id" in misfit.what and misfit.rows == 2 for misfit in found)


def test_every_engine_reads_a_messy_file_alike(tmp_path) -> None:
    path = write_messy(tmp_path / "messy.csv")
    schema = draft_schema(path, exclude=["pid"]).schema
    whole = read_table(path, schema)
    mapped = read_table(path, schema, mapped=True)
    (piece,) = TableFiles(path, schema).pieces(1)  # what a worker of a cluster reads
    for other in (mapped, piece.read()[0]):
        np.testing.assert_array_equal(other.codes, whole.codes)
        for name, values in whole.values.items():
            np.testing.assert_array_equal(other.values[name], values)
    rows = pl.read_csv(path, separator=";", infer_schema=False, encoding="windows-1252")
    np.testing.assert_array_equal(
        NewRows.read(rows, schema, out_of_domain="clamp").block.codes("visit"), whole.codes[0]
    )


@pytest.mark.parametrize(
    ("cells", "symbols", "values"),
    [
        (["84,1 %", "7,5 %", "100 %"], ["%"], [84.1, 7.5, 100]),
        (["EUR 1.028,94", "EUR 3,00"], ["EUR"], [1028.94, 3]),
        (["$10", "$ 12.5", "$-3"], ["$"], [10, 12.5, -3]),
        (["3 kg", "400 g", "n/a"], ["g", "kg"], [3, 400, None]),
    ],
)
def test_numbers_beside_a_usual_symbol_are_drafted_as_numbers(cells, symbols, values) -> None:
    draft = draft_schema(pl.DataFrame({"x": cells * 4}))
    assert list(draft.schema.read.of_column("x").symbols) == symbols
    assert isinstance(draft.schema["x"], dpf.Numeric)
    (note,) = draft.notes
    assert f"are numbers with {' or '.join(symbols)}, such as {cells[0]}" in note.found
    assert note.proposal.endswith(f", without {' or '.join(symbols)}")
    table = dpf.table_from_frame(pl.DataFrame({"x": cells}), draft.schema)
    read = [None if math.isnan(value) else value for value in table.values["x"].tolist()]
    assert read == values
    assert dpf.Schema.loads(draft.dumps()).read == draft.schema.read


@pytest.mark.parametrize(
    "cells", [["St. 6", "St. 17"], ["P01", "P02"], ["12 kg", "heavy"], ["1-2 kg", "3 kg"], ["%", "5 %"]]
)
def test_labels_that_hold_numbers_stay_labels(cells) -> None:
    draft = draft_schema(pl.DataFrame({"x": cells * 4}))
    assert isinstance(draft.schema["x"], dpf.Categorical)


def test_a_column_without_values_is_left_out_and_nothing_else_is_advised() -> None:
    draft = draft_schema(pl.DataFrame({"a": ["x", "y"] * 3, "empty": ["", None, " ", "nan", "", ""]}))
    (note,) = draft.notes
    assert str(note) == "empty: has no values at all; left out; nothing can be asked of it"
    assert "# column empty is left out. It has no values at all.\n" in draft.dumps()


def test_a_messy_file_is_drafted_with_all_its_columns_or_a_reason(tmp_path) -> None:
    path = write_messy(tmp_path / "messy.csv")
    draft = draft_schema(path, exclude=["pid"])
    schema = draft.schema
    assert tuple(note.column for note in draft.notes if note.left_out) == LEFT_OUT
    assert {*schema.names, *LEFT_OUT, "pid"} == set(COLUMNS)
    assert (schema.read.separator, schema.read.encoding) == (";", "windows-1252")
    assert (schema.read.decimal, schema.read.null) == (",", ("NULL", "n/a"))
    kinds = {name: schema[name].kind for name in schema.names}
    numeric = {"visit", "arrived", "born", "discharged", "cost", "income", "weight", "height", "temp", "pulse", "stay",
               "distance", "score", "pain", "month"}  # fmt: skip
    assert {name for name, kind in kinds.items() if kind == "numeric"} == numeric
    assert {name for name, kind in kinds.items() if kind == "boolean"} == {"insured", "consent"}
    assert schema["postcode"].values == ("01067", "04109", "10115", "20095", "80331")
    assert schema["ward"].values == ("Köln", "Nord", "Süd")
    assert schema["marital"].labels == ("married", "single", "missing")
    assert schema["country"].values == ("AT", "CH", "DE", "NA")
    notes = {note.column: note for note in draft.notes}
    assert "28 of 300 cells are not numbers: -" in str(notes["cost"])
    assert notes["discharged"].found.endswith("and 43 of 300 cells are not: NULL")
    assert "not taken" in str(notes["pulse"])
    assert notes["sex"].lines[-1] == 'labels = { F = ["f"], M = ["m"] }'
    assert check_fit(path, schema) == ()
    assert dpf.Schema.loads(draft.dumps()) == schema
    assert all(word not in draft.dumps() for word in ("L-1", "felt", "300"))
    table = read_table(path, schema)
    assert 1000 / 100 <= np.nanmin(table.values["cost"]) < np.nanmax(table.values["cost"]) <= 25_000
    assert np.nanmax(table.values["income"]) >= 1.5


def test_a_guess_is_kept_from_what_is_said(tmp_path) -> None:
    path = write_messy(tmp_path / "messy.csv")
    read = {"separator": ";", "encoding": "latin-1", "columns": {"sex": {"labels": {"f": ["F"], "m": ["M"]}}}}
    schema = infer_schema(path, exclude=["pid", *LEFT_OUT], read=read)
    assert schema["sex"].values == ("f", "m")
    assert schema.read.encoding == "latin-1"
    assert "how cells are written: observed" in schema.inferred
    with pytest.raises(InputError, match=r"2 columns give no attribute.*'letter'.*'notes'"):
        infer_schema(path, exclude=["pid"])
    with pytest.raises(InputError, match="there is no column 'sx'; did you mean 'sex'"):
        infer_schema(path, read={"separator": ";", "columns": {"sx": {"null": "-"}}})


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a\tb\n1\t2\n", "\t"),
        ("a;b\n1,5;2,5\n", ";"),
        ("a,b\n1;5,2\n", ","),
        ('a|b\n"1|2"|3\n', "|"),
        ("a\n1\n", ","),
        ("a;b;c\n1;2\n", ";"),
    ],
)
def test_the_separator_is_guessed(tmp_path, text, separator) -> None:
    (tmp_path / "t.csv").write_text(text)
    schema = draft_schema(tmp_path / "t.csv").schema if text.count("\n") < 3 and "c" not in text else None
    assert dpf.tables.guess_file(tmp_path / "t.csv").separator == separator
    assert schema is None or schema.read.separator == separator


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "windows-1252", "shift_jis"])
def test_encodings(tmp_path, monkeypatch, encoding) -> None:
    from dpframework.tables import csv_file

    word = "日本" if encoding == "shift_jis" else "Köln"
    (tmp_path / "t.csv").write_bytes(f'a;b\n{word};x\n"{word}\n;";y\n'.encode(encoding))
    schema = dpf.Schema([dpf.Categorical("a", [word, f"{word}\n;"])], read={"separator": ";", "encoding": encoding})
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 3)
    assert read_table(tmp_path / "t.csv", schema).codes.tolist() == [[0, 1]]
    if encoding in ("utf-8", "utf-16", "windows-1252"):
        assert dpf.tables.guess_file(tmp_path / "t.csv").encoding == encoding


EVERY = {
    "separator": ";",
    "encoding": "windows-1252",
    "skip": 2,
    "sheet": "visits",
    "query": "SELECT * FROM visits",
    "null": ["-", "?"],
    "decimal": ",",
    "thousands": ".",
    "date": ["%d.%m.%Y"],
    "columns": {
        "cost": {"null": ["0"], "decimal": ".", "thousands": ",", "symbols": ["EUR"]},
        "seen": {"date": ["%H:%M"], "date_unit": "hours"},
        "sex": {"labels": {"male": ["m"], "female": ["f", "w"]}, "other": "other"},
        "age": {"ranges": {"child": [0, 18], "adult": [18, 65.5]}},
    },
}


def test_every_option_is_in_its_form_and_read_back() -> None:
    """And said line by line, as the hash of a plan has it: rows that are read otherwise are other data."""
    options = ReadOptions.of(EVERY)
    assert options.to_dict() == EVERY
    assert ReadOptions.of(options.to_dict()) == options
    assert ReadOptions.of(tomllib.loads(options.dumps())["read"]) == options
    said = list(options.option_lines())
    assert said[0] == 'separator = ";"'
    assert "skip = 2" in said
    assert [line for line in said if line.startswith("seen: ")] == [
        'seen: date = ["%H:%M"]',
        'seen: date_unit = "hours"',
    ]
    assert "age: ranges = { child = [0, 18], adult = [18, 65.5] }" in said
    assert len(said) == sum(1 for name in EVERY if name != "columns") + sum(
        len(own) for own in EVERY["columns"].values()
    )
    for name in EVERY:
        less = {key: value for key, value in EVERY.items() if key != name}
        assert list(ReadOptions.of(less).option_lines()) != said
    assert ReadOptions.of({}).to_dict() == {}
    assert ReadOptions.of({}).is_plain
    assert ReadOptions.of({"columns": {"cost": {}}}).to_dict() == {"columns": {"cost": {}}}


def test_a_column_has_the_files_options_where_it_has_none_of_its_own() -> None:
    options = ReadOptions.of(EVERY)
    cost, seen, sex, beside = (options.of_column(name) for name in ("cost", "seen", "sex", "beside"))
    assert (cost.null, cost.decimal, cost.thousands, cost.date) == (("-", "?", "0"), ".", ",", ())
    assert (seen.date, seen.decimal) == (("%H:%M",), ",")
    assert (beside.null, beside.decimal, beside.thousands, beside.date, beside.is_date) == (
        ("-", "?"),
        ",",
        ".",
        (),
        False,
    )
    dated = ReadOptions.of({"date": ["%d.%m.%Y"], "columns": {"on": {"date_unit": "days"}}}).of_column("on")
    assert (dated.date, dated.unit.value) == (("%d.%m.%Y",), "days")
    assert sex.targets == ("male", "female", "other")
    assert (sex.is_recoded, cost.is_recoded) == (True, False)
    # a column's decimal sign takes the place of a file's sign between thousands
    swapped = ReadOptions.of({"thousands": ",", "columns": {"cost": {"decimal": ","}}}).of_column("cost")
    assert (swapped.decimal, swapped.thousands) == (",", None)
    assert ReadOptions.of(EVERY).without(["cost", "age"]) == ReadOptions.of(
        EVERY | {"columns": {name: own for name, own in EVERY["columns"].items() if name in ("seen", "sex")}}
    )
    assert options.without(["beside"]) is options
    assert ReadOptions.of(options) is options
    assert ReadOptions.of(None) == ReadOptions()


def test_options_of_a_column_that_is_not_there_are_refused_with_the_nearest() -> None:
    options = ReadOptions.of(EVERY)
    options.require_columns(["cost", "seen", "sex"], others=["age", "id"])
    with pytest.raises(InputError, match=r"\[read.columns\] there is no column 'age'; did you mean 'ages'"):
        options.require_columns(["cost", "seen", "sex", "ages"], others=["id"])


@pytest.mark.parametrize("skip", [-1, 1.0, True, MOST_SKIPPED + 1, "1"])
def test_as_many_lines_are_skipped_as_a_whole_number_says(skip) -> None:
    assert [ReadOptions(skip=few).skip for few in (0, MOST_SKIPPED)] == [0, MOST_SKIPPED]
    with pytest.raises(InputError, match="write how many lines stand above the names"):
        ReadOptions(skip=skip)


def test_ranges_may_touch_and_are_in_their_order() -> None:
    ranges = {"old": (65, 100), "child": (0, 18), "adult": [18, 65]}
    assert [label for label, _ in ColumnOptions(ranges=ranges).ranges] == ["child", "adult", "old"]
    for wrong, why in (
        ({"a": [0, 0]}, "must begin below"),
        ({"a": [0]}, "pairs"),
        ({"a": [0, 1, 2]}, "pairs"),
        (5, "table"),
    ):
        with pytest.raises(InputError, match=why):
            ColumnOptions(ranges=wrong)


def test_options_are_part_of_plan_hash_and_report() -> None:
    def plan_of(schema):
        study = dpf.Study(schema, epsilon=1)
        study.add("n", dpf.miner("count", epsilon=1))
        return study.plan()

    plain = dpf.Schema(SCHEMA.attributes)
    read = dpf.Schema(SCHEMA.attributes, read={"null": ["NULL"]})
    other = dpf.Schema(SCHEMA.attributes, read={"null": ["-"]})
    assert len({plan_of(schema).hash for schema in (plain, read, other)}) == 3
    assert plan_of(read).content()["schema"]["read"] == ['null = ["NULL"]']
    assert "read" not in plan_of(plain).content()["schema"]
    assert "NULL" in dpf.reports.markdown_report(plan_of(read))
    with pytest.raises(InputError, match="there is no column 'pid'"):
        plan_of(SCHEMA)


@pytest.mark.parametrize(
    ("read", "sentence"),
    [
        ({"seperator": ";"}, "unknown key 'seperator'; did you mean 'separator'"),
        ({"separator": "::"}, "separator '::' is unknown; accepted are ','"),
        ({"encoding": "ascii2"}, "encoding 'ascii2' is unknown"),
        ({"decimal": ";"}, "decimal ';' is unknown; accepted are '.', ','"),
        ({"decimal": ",", "thousands": ","}, "decimal and thousands are both ','; they must differ"),
        ({"null": 5}, "null must be a text or a list of texts, not int"),
        ({"columns": {"cost": {"symbols": "1x"}}}, "symbol '1x' could be a part of a number"),
        ({"columns": {"cost": {"symbols": ["-"]}}}, "symbol '-' could be a part of a number"),
        ({"date": "%Q"}, "date format '%Q' has '%Q', which is not known; accepted are %Y"),
        ({"date": "%Y"}, "date format '%Y' names no day of a year; write one"),
        ({"columns": {"sex": {"date": "iso"}}}, "holds dates, which become numbers; declare it numeric"),
        ({"columns": {"cost": {"labels": {"a": "b"}}}}, "becomes labels, and is declared numeric"),
        (
            {"columns": {"sex": {"labels": {"femal": "f"}}}},
            "becomes 'femal', which its values do not list; did you mean",
        ),
        ({"columns": {"sex": {"labels": {"male": "x", "female": "x"}}}}, "text 'x' stands for two labels"),
        ({"columns": {"age": {"ranges": {"child": [0, 9], "adult": [8, 9]}}}}, "ranges 'child' and 'adult' overlap"),
        ({"columns": {"age": {"ranges": {"child": [9, 0]}}}}, "range 'child' must begin below its end"),
        ({"columns": {"age": {"ranges": {"child": 9}}}}, "ranges must be a table of pairs of numbers"),
        ({"columns": {"cost": {"nul": "-"}}}, "unknown key 'nul'; did you mean 'null'"),
        ({"columns": {"cost": {"date_unit": "weeks"}}}, "date_unit 'weeks' is unknown"),
    ],
)
def test_refused_options(read, sentence) -> None:
    with pytest.raises(InputError) as caught:
        dpf.Schema(SCHEMA.attributes, read=read)
    assert sentence in str(caught.value)


def test_a_study_file_says_how_its_table_is_written(tmp_path) -> None:
    dpf.Schema(SCHEMA.attributes, read={"decimal": ",", "columns": {"cost": {"null": "-"}}}).dump(tmp_path / "s.toml")
    (tmp_path / "study.toml").write_text(
        '[data]\npath = "t.csv"\nschema = "s.toml"\n[read]\nseparator = ";"\n[read.columns.cost]\nthousands = "."\n'
        '[privacy]\nepsilon = 1\n[[step]]\nname = "n"\nminer = "count"\nepsilon = 1\n'
    )
    (tmp_path / "t.csv").write_text("visit;sex;age;cost\n;;;1.000,5\n;;;-\n")
    file = dpf.study.load_study(tmp_path / "study.toml")
    assert file.study.schema.read == ReadOptions(
        separator=";", decimal=",", columns={"cost": {"null": "-", "thousands": "."}}
    )
    assert file.read().codes[3].tolist() == [4, 8]


def test_a_note_is_one_line() -> None:
    note = ColumnNote(
        "cost", "1 of 2 cells are not numbers: -", "read as missing", ("[read.columns.cost]", 'null = ["-"]')
    )
    assert str(note) == 'cost: 1 of 2 cells are not numbers: -; read as missing; [read.columns.cost] null = ["-"]'


STUDY = """
[data]
path = "messy.csv"
schema = "messy.schema.toml"
[privacy]
epsilon = 8
unit = "pid"
rows_per_unit = 3
allow = ["schema-inferred-from-data"]
"""


def test_a_messy_file_in_three_commands(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_messy(tmp_path / "messy.csv")
    assert main(["schema", "infer", "messy.csv", "--exclude", "pid", "--out", "messy.schema.toml"]) == 0
    out, err = capsys.readouterr()
    assert "27 attributes; left out: letter, notes" in out
    assert "cost: 272 of 300 cells are written like" in err
    steps = (
        f'[[step]]\nname = "{n}"\nminer = "mean"\nparams = {{ attribute = "{n}" }}\nshare = 0.5\n'
        for n in ("cost", "visit")
    )
    (tmp_path / "study.toml").write_text(STUDY + "".join(steps))
    assert main(["plan", "study.toml"]) == 0
    assert main(["run", "study.toml", "--out", "out"]) == 0
    releases = json.loads((tmp_path / "out" / "results.json").read_text())
    assert 'decimal = ","' in json.loads((tmp_path / "out" / "plan.json").read_text())["schema"]["read"]
    assert releases
    capsys.readouterr()
    assert main(["schema", "check", "messy.csv", "messy.schema.toml", "--unit", "pid", "--rows-per-unit", "2"]) == 0
    out, _ = capsys.readouterr()
    assert "more than rows_per_unit = 2" in out
    assert out.endswith("the data fits the schema\n")


NAMED = "Nr;Raucher;Kosten\n(EUR);Rhesus\n"
ROWS_BELOW = "".join(f"{k};{('ja', 'Nein', 'J', 'nein')[k % 4]};{k},5;{'+-'[k % 2]}\n" for k in range(40))


@pytest.mark.parametrize(
    ("above", "skip"),
    [
        ("", 0),
        ("Export vom 27.11.2026\n", 1),
        ("Export;;;\n;;;\nStation 3;;;\n", 3),  # as a spreadsheet writes it
        ("Export\r\n\r\n\r\nStation 3\r\n", 2),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_lines_above_the_names_are_skipped_and_names_stand_in_one_line(tmp_path, above, skip, ending):
    file = tmp_path / f"t.{ending}"
    text = (above + NAMED.replace("Kosten\n(EUR)", '"Kosten\n(EUR)"') + ROWS_BELOW).encode()
    file.write_bytes(gzip.compress(text) if ending == "csv.gz" else text)
    draft = dpf.draft_schema(file)
    schema = draft.schema
    assert (schema.read.skip, schema.read.separator) == (skip, ";")
    assert schema.names == ("Nr", "Raucher", "Kosten (EUR)", "Rhesus")
    assert dpf.Schema.loads(schema.dumps()) == schema
    table = dpf.read_table(file, schema)
    assert table.values["Kosten (EUR)"].tolist() == [k + 0.5 for k in range(40)]
    assert table.values["Nr"].tolist() == list(range(40))
    told = str(draft)
    assert "Raucher: labels say yes or no in several ways: ja, J; nein, Nein" in told or "nein, Nein; ja, J" in told
    assert 'Raucher] labels = { ja = ["J"], nein = ["Nein"] }' in told
    rhesus = "Rhesus: 20 of 40 cells hold -; read as a label; where it means a missing value, write: [read.columns"
    assert rhesus in told
    with pytest.raises(dpf.InputError, match="no line below the 90 lines that"):
        dpf.read_table(file, attrs.evolve(schema, read=attrs.evolve(schema.read, skip=90)))


def test_a_first_column_without_a_name_is_no_line_above_the_names(tmp_path):
    (tmp_path / "t.csv").write_text(",a,b\n" + "".join(f"{k},{k % 3},{k % 5}\n" for k in range(9)))
    schema = dpf.draft_schema(tmp_path / "t.csv", exclude=[""]).schema
    assert (schema.read.skip, schema.names) == (0, ("a", "b"))
    for wrong in (-1, 1001, "2", True):
        with pytest.raises(dpf.InputError, match="write how many lines stand above the names, from 0 to 1,000"):
            dpf.Schema(schema.attributes, read={"skip": wrong})


def test_a_cell_that_is_no_key_is_named_as_such():
    """An open attribute has no list that a cell could be missing from."""
    schema = dpf.Schema([dpf.Open("town")])
    (misfit,) = check_fit(pd.DataFrame({"town": pd.Series(["A", datetime.date(2026, 3, 1)], dtype=object)}), schema)
    assert (misfit.what, misfit.rows) == ("values that are neither texts nor numbers", 1)
