"""The operation that looks cells up in a public table: each cell gets its own entry, and the domain is the entries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpframework.facts import InputError
from dpframework.facts.derived_column_domains_and_cells import look_up
from dpframework.facts.expression_operands_and_domains import Labels, Numbers, Operand, Truths
from dpframework.facts.public_lookup_tables import PublicTable

KEYS = ("a", "b", "c", "d")
LABEL = Operand(Labels(KEYS, missing=True), lambda rows: rows["x"])
VALUES: list[tuple[Any, type]] = [
    (st.text("xyz", min_size=1), Labels),
    (st.integers(-9, 9).map(float), Numbers),
    (st.booleans(), Truths),
]


@pytest.mark.parametrize(("values", "kind"), VALUES, ids=["texts", "numbers", "truths"])
@given(st.data())
def test_each_cell_gets_the_entry_of_its_own_key(values: Any, kind: type, data: st.DataObject) -> None:
    entries = data.draw(st.dictionaries(st.sampled_from(KEYS), values, min_size=1))
    part = look_up(LABEL, PublicTable(entries))
    assert isinstance(part.domain, kind)
    found = part.cells({"x": np.array([0, 1, 2, 3, -1])}).tolist()
    if isinstance(part.domain, Labels):
        found = [None if place < 0 else part.domain.values[place] for place in found]
    elif isinstance(part.domain, Truths):
        found = [None if place < 0 else bool(place) for place in found]
    else:
        found = [None if math.isnan(number) else number for number in found]
    assert found == [*(entries.get(key) for key in KEYS), None]


@given(st.dictionaries(st.sampled_from(KEYS), st.integers(-9, 9).map(float), min_size=1))
def test_the_domain_holds_no_value_that_no_cell_leads_to(entries: dict[str, float]) -> None:
    part = look_up(LABEL, PublicTable({**entries, "no cell's": 1000.0}))
    assert part.domain == Numbers(min(entries.values()), max(entries.values()), whole=True, missing=True)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (LABEL, "finds none of the cells' values, such as 'a'"),
        (Operand(Numbers(0, 3), lambda rows: rows["x"]), "may not be whole"),
    ],
)
def test_a_table_that_no_cell_leads_into_is_refused(part: Operand, message: str) -> None:
    with pytest.raises(InputError, match=message):
        look_up(part, PublicTable({"e": 1.0}))
