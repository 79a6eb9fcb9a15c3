"""Tables with one row for each unit: which columns are of single rows, and which of units."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from dpframework.facts import InputError, Numeric, Schema, derive
from dpframework.facts.schema_with_derived_columns import UnitRows, extend, split_by_unit

A, B = Numeric("a", 0, 9, bins=3), Numeric("b", 0, 9, bins=3)
OF_ROW, OF_UNIT = derive("row", "a + 1"), derive("top", "max(a)", per="unit")
AFTER = derive("after", "top * 2")


def test_a_column_that_reads_columns_of_units_is_one_of_units() -> None:
    assert split_by_unit([OF_ROW, OF_UNIT, AFTER]) == ([OF_ROW], [OF_UNIT], [AFTER])


@given(st.permutations([OF_ROW, OF_UNIT, derive("least", "min(b)", per="unit"), derive("other", "b * 2")]))
def test_each_column_is_of_one_kind_in_its_order(derived: list) -> None:
    of_rows, of_units, after = split_by_unit(derived)
    assert after == []
    assert of_rows == [one for one in derived if not one.per_unit]
    assert of_units == [one for one in derived if one.per_unit]


def test_a_column_cannot_read_both_kinds_of_rows() -> None:
    with pytest.raises(InputError, match=r"reads 'b'.*'top'.*first\(b\)"):
        split_by_unit([OF_UNIT, derive("both", "b + top")])


def test_the_rows_of_a_selection_have_only_what_it_reads() -> None:
    rows = UnitRows(Schema([A, B]), (OF_UNIT, derive("least", "min(b)", per="unit")))
    of_top, of_least = rows.attributes()
    assert rows.select([of_least]).schema.names == ["b"] or tuple(rows.select([of_least]).schema.names) == ("b",)
    assert [one.name for one in rows.select([of_least, of_top]).columns] == ["least", "top"]


def test_columns_of_units_have_different_names() -> None:
    with pytest.raises(InputError, match="one name"):
        UnitRows(Schema([A]), (OF_UNIT, OF_UNIT)).attributes()


def test_a_name_of_single_rows_is_told_from_an_unknown_one() -> None:
    of_units = Schema([A, B], derive=[OF_UNIT])
    with pytest.raises(InputError, match=r"belongs to single rows.*first\(a\)"):
        of_units.index("a")
    with pytest.raises(InputError, match="did you mean 'top'"):
        of_units.index("tpo")


def test_a_schema_is_extended_in_its_rows_and_in_its_units() -> None:
    plain = extend(Schema([A, B]), None, [OF_ROW])
    assert plain == Schema([A, B], derive=[OF_ROW])
    assert extend(plain, None, [OF_UNIT, AFTER]) == Schema([A, B], derive=[OF_ROW, OF_UNIT, AFTER])
    of_units = Schema([A, B], derive=[OF_UNIT])
    assert extend(of_units, None, [AFTER]) == Schema([A, B], derive=[OF_UNIT, AFTER])
    assert extend(of_units, {"separator": ";"}, []).in_files.read.separator == ";"
