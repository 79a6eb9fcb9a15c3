"""The synthetic clinic: deterministic, on its public schema, with the relations that it says it plants."""

import hashlib
import json

import numpy as np
import pytest

import dpframework as dpf
from dpframework.lab.clinic import DIAGNOSES, LABS, PLANTED, clinic_schema, clinic_table, clinic_visits
from dpframework.tables.in_process_engines import InMemory


@pytest.fixture(scope="module")
def columns():
    return InMemory().load(clinic_table())[0]


def test_the_schema_is_public_and_has_two_views():
    schema = clinic_schema()
    assert len(DIAGNOSES) == 24
    assert len(LABS) == 16
    assert [a.name for a in schema.view("right")] == list(LABS)
    assert {a.kind for a in schema.view("left")} == {"boolean", "categorical"}
    assert schema.inferred == ()
    assert schema.rows is None
    assert dpf.Schema.loads(schema.dumps()) == schema


def test_equal_seeds_give_equal_tables():
    first, again, other = clinic_table(500), clinic_table(500), clinic_table(500, seed=1)
    assert np.array_equal(first.codes, again.codes)
    assert all(np.array_equal(first.values[name], again.values[name]) for name in LABS)
    assert not np.array_equal(first.codes, other.codes)


def digest(*parts):
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def test_it_is_the_clinic_of_which_the_pages_tell():
    """Tutorials and experiments quote figures of it: whoever changes a number here looks for them."""
    table, visits = clinic_table(3000), clinic_visits(300)
    assert digest(clinic_schema().dumps()) == "d922e411e01afbc3"
    assert digest(table.codes.tolist()) == "f8a267f9fd276466"
    assert digest({name: table.values[name].tolist() for name in LABS}) == "30340fdfd14656bf"
    assert digest(visits.columns, visits.rows()) == "81655540150dd251"
    assert digest([[str(planted.left), str(planted.right)] for planted in PLANTED]) == "2a81e467eb118803"


def test_the_default_size(columns):
    assert len(columns.index) == 20_000


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_planted_relations_hold(columns, planted):
    left, right = planted.left.holds(columns), planted.right.holds(columns)
    both = (left & right).sum()
    assert both / (left | right).sum() > 0.6
    assert both / len(left) > 3 * left.mean() * right.mean()


def test_relations_are_noisy_and_comorbidity_is_there(columns):
    for planted in PLANTED:
        left, right = planted.left.holds(columns), planted.right.holds(columns)
        assert (left & ~right).any()
        assert (right & ~left).any()
    diabetes, kidneys = (columns.codes(name) == 1 for name in ("type 2 diabetes", "chronic kidney disease"))
    assert kidneys[diabetes].mean() > 1.5 * kidneys[~diabetes].mean()


def test_prevalences_and_values_are_plausible(columns):
    shares = {name: columns.codes(name).mean() for name in DIAGNOSES}
    assert all(0.01 < share < 0.4 for share in shares.values())
    assert shares["hypertension"] > shares["type 2 diabetes"] > shares["cirrhosis"]
    medians = {name: np.median(columns.values(name)) for name in LABS}
    assert 5 < medians["HbA1c"] < 6
    assert 80 < medians["eGFR"] < 100
    assert 0.6 < medians["creatinine"] < 1.1
    assert np.corrcoef(np.log(columns.values("creatinine")), columns.values("eGFR"))[0, 1] < -0.7


@pytest.mark.parametrize("patients", [0, -1, 1.5, True, 10**7])
def test_bad_sizes(patients):
    with pytest.raises(dpf.InputError, match="patients"):
        clinic_table(patients)


@pytest.mark.parametrize("seed", [-1, 0.5, True])
def test_bad_seeds(seed):
    with pytest.raises(dpf.InputError, match="seed"):
        clinic_table(10, seed=seed)
