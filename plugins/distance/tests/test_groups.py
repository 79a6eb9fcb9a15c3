"""The embedding is told whose each row is: `groups`, as scikit-learn says it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from dpframework_distance import ValueEmbedding

import dpframework as dpf

SCHEMA = dpf.Schema([dpf.Categorical(name, ["u", "v", "w"]) for name in "abc"])
CODES = np.array([[k % 3, k % 3, k // 3 % 3] for k in range(90)])
FRAME = pl.DataFrame({name: [SCHEMA[name].labels[c] for c in CODES[:, k]] for k, name in enumerate("abc")})
GROUPS = [k // 9 for k in range(90)]


@pytest.mark.parametrize(
    "rows", [CODES, FRAME, {name: FRAME[name] for name in "abc"}], ids=["codes", "frame", "columns"]
)
def test_a_fit_protects_the_groups_that_it_is_given(rows, monkeypatch) -> None:
    tables = []
    run = dpf.Study.run
    monkeypatch.setattr(
        dpf.Study, "run", lambda study, table, **how: tables.append((study, table)) or run(study, table, **how)
    )
    embedding = ValueEmbedding(context_size=2, schema=SCHEMA, epsilon=100, rows_per_unit=4).fit(rows, groups=GROUPS)
    assert embedding.transform(CODES).shape[0] == 90
    ((study, table),) = tables
    assert study.unit == table.unit == dpf.PrivacyUnit("the groups of the fit", 4)
    assert table.codes.shape[1] == 40


def test_groups_that_cannot_be_are_one_sentence() -> None:
    with pytest.raises(dpf.InputError, match="X has 90 rows and groups has 3; give one group for each row"):
        ValueEmbedding(context_size=2, schema=SCHEMA).fit(CODES, groups=[1, 2, 3])
    with pytest.raises(dpf.InputError, match="rows_per_unit is 4, and nothing says to which unit a row belongs"):
        ValueEmbedding(context_size=2, schema=SCHEMA, rows_per_unit=4).fit(CODES)
    with pytest.raises(dpf.InputError, match="the table already has its unit"):
        ValueEmbedding(context_size=2, schema=SCHEMA).fit(dpf.Table.from_codes(SCHEMA, CODES.T), groups=GROUPS)


def test_a_table_says_whom_it_protects() -> None:
    unit = dpf.PrivacyUnit("person", 2)
    embedding = ValueEmbedding(context_size=2, schema=SCHEMA, epsilon=100).fit(
        dpf.Table.from_codes(SCHEMA, CODES.T, unit=unit)
    )
    assert embedding.transform(CODES).shape[0] == 90


ODD = [3, 255, 256, -1, 2**31, 2**70, -(2**70), 0.5, float("nan"), float("inf"), None, "w", [0], b"0", 1 + 1j]


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("missing", [False, True], ids=["no cell for it", "missing"])
def test_a_code_outside_its_domain_stops_no_fit_and_is_read_by_itself(odd, missing, monkeypatch) -> None:
    """A fit that a row's code could stop would tell of it, at no cost."""
    tables = []
    run = dpf.Study.run
    monkeypatch.setattr(dpf.Study, "run", lambda study, table, **how: tables.append(table) or run(study, table, **how))
    schema = dpf.Schema([dpf.Categorical(name, ["u", "v", "w"], missing=missing) for name in "abc"])
    rows = [[*row] for row in CODES[:20].tolist()] + [[0, 1, odd]]
    array = np.empty((21, 3), dtype=object)
    for k, row in enumerate(rows):
        array[k] = row
    given = [array]
    if not isinstance(odd, list):
        given.append(rows)
    if isinstance(odd, int | float) and abs(odd) < 2**63:
        given.append(np.array(rows))  # of floats if it is one
    for x in given:
        ValueEmbedding(context_size=2, schema=schema, epsilon=1).fit(x)
        ValueEmbedding(context_size=2, schema=schema, epsilon=1).fit(x, groups=list(range(21)))
    outside = 3 if missing else 0
    assert {str(table.codes.T.tolist()) for table in tables} == {str([*CODES[:20].tolist(), [0, 1, outside]])}


@pytest.mark.parametrize("rows", [[], np.empty((0, 3)), {name: [] for name in "abc"}, CODES[:1]], ids=str)
def test_a_table_without_rows_is_fitted(rows) -> None:
    """A refusal would tell that somebody's row is the only one, or is none."""
    assert ValueEmbedding(context_size=2, schema=SCHEMA).fit(rows).transform(CODES).shape[0] == len(CODES)


def test_an_array_of_another_shape_is_refused_by_its_shape() -> None:
    for given in (CODES[:, :2], CODES[0], np.zeros((3, 3, 3))):
        with pytest.raises(dpf.InputError, match=r"codes must be whole numbers of shape \(rows, 3\)"):
            ValueEmbedding(context_size=2, schema=SCHEMA).fit(given)
