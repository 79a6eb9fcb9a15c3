"""Miners that are run on synthetic rows: kept as forms, nearly exact, and refused by their own names."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dpframework_tables.row_miners import EPSILON, mine, mined_forms, miner_of, study_on

import dpframework as dpf

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Categorical("town", ["A", "B"])], rows=5)
TABLE = dpf.Table.from_codes(SCHEMA, [[0, 1, 1, 0, 1], [0, 0, 1, 1, 1]])
GIVEN: dict[str, Any] = {
    "a miner": dpf.miner("histogram", attribute="ill", epsilon=EPSILON),
    "a form": {"miner": "histogram", "parameters": {"attribute": "ill", "epsilon": str(EPSILON)}},
    "as in a file": {"miner": "histogram", "attribute": "ill"},
    "with nothing for a parameter": {"miner": "histogram", "attribute": "ill", "rho": None},
}


@pytest.mark.parametrize("name", GIVEN)
def test_a_miner_is_kept_as_a_form_in_whichever_way_it_is_given(name: str) -> None:
    (form,) = mined_forms({name: GIVEN[name]}).values()
    assert json.loads(json.dumps(form)) == form
    assert miner_of(name, form) == GIVEN["a miner"]


def test_no_miners_are_no_forms() -> None:
    assert mined_forms(None) == mined_forms({}) == {}


@pytest.mark.parametrize("wrong", [1, {"attribute": "ill"}, {"miner": 3}])
def test_what_is_no_miner_is_refused_by_its_name(wrong: Any) -> None:
    with pytest.raises(dpf.InputError, match=r"miners\.found is .*; give a miner's name"):
        mined_forms({"found": wrong})


@pytest.mark.parametrize("wrong", [{"miner": "histogrm"}, {"miner": "histogram", "atribute": "ill"}])
def test_a_miner_that_refuses_its_parameters_is_named(wrong: Any) -> None:
    with pytest.raises(dpf.InputError, match=r"miners\.found: .*did you mean"):
        mined_forms({"found": wrong})
    with pytest.raises(dpf.InputError, match=r"miners\.found: "):
        study_on(SCHEMA, 5, "found", {"miner": "histogram", "parameters": {"attribute": "size"}})


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_mined_is_what_is_in_the_rows(seed: int) -> None:
    (form,) = mined_forms({"ill": GIVEN["as in a file"]}).values()
    found = mine(TABLE, "ill", form, seed)
    assert found.counts.tolist() == [2, 3]
