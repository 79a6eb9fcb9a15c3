"""Steps and cuts as JSON: what is read again is what was written, but for the query's function."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.facts.privacy_losses import NOTHING
from dpframework.mechanisms import DiscreteLaplace, Exponential, Gaussian, PartitionSelection, PermuteAndFlip
from dpframework.mechanisms.base import Mechanism
from dpframework.plan import FromRelease, Step
from dpframework.plan.node_json import read_cut, read_step, write_cut, write_losses, write_step

SCHEMA = dpf.Schema([dpf.Boolean("a"), dpf.Categorical("c", ["x", "y", "z"]), dpf.Numeric("n", 0, 9, cuts=[3])])
ADD = dpf.Relation.ADD_OR_REMOVE_ONE
QUERIES = [
    dpf.queries.Count(),
    dpf.queries.Histogram(SCHEMA["c"]),
    dpf.queries.BoundedSum(SCHEMA["n"]),
    dpf.queries.Marginals([SCHEMA["a"], SCHEMA["c"]]),
]
MECHANISMS = [DiscreteLaplace("1/3"), Gaussian("0.1"), Exponential(2), PermuteAndFlip(1), PartitionSelection(1, "1e-6")]
KINDS: dict[str, type[Mechanism]] = {one.name: type(one) for one in MECHANISMS}
NAMES = st.lists(st.sampled_from("pqr"), max_size=2, unique=True)
STEPS = st.builds(
    dpf.step,
    st.sampled_from("xyz"),
    st.sampled_from(QUERIES),
    st.sampled_from(MECHANISMS),
    uses=NAMES,
    assumptions=NAMES,
    threshold=st.none() | st.fractions(0, 9),
)


def through_json(form: Any) -> Any:
    return json.loads(json.dumps(form))


@given(STEPS, st.integers(1, 3))
def test_a_step_that_is_read_has_the_facts_of_the_one_that_was_written(step: Step, rows: int) -> None:
    calibration = step.mechanism.calibrate(step.facts, ADD)
    form = through_json(write_step(step, calibration, rows))
    read = read_step(form, KINDS)
    assert (read.name, read.mechanism, read.facts) == (step.name, step.mechanism, step.facts)
    assert (read.uses, read.assumptions, read.threshold) == (step.uses, step.assumptions, step.threshold)
    assert through_json(write_step(read, calibration, rows)) == form
    assert tuple(read.query.for_rows(rows)) == (tuple(step.query.for_rows(rows)) if rows > 1 else ())


@given(STEPS)
def test_a_step_without_a_claim_has_no_losses(step: Step) -> None:
    assert write_step(step, None, 1)["losses"] is None
    if calibration := step.mechanism.calibrate(step.facts, ADD):
        form = write_losses(calibration.losses)
        assert form.keys() == {"epsilon", "rho"} | ({"delta"} if calibration.losses.delta != NOTHING else set())


def test_a_mechanism_that_is_not_installed_is_named() -> None:
    form = write_step(dpf.step("n", QUERIES[0], MECHANISMS[0]), None, 1)
    with pytest.raises(dpf.InputError, match=r"'discrete-laplace', which no installed plugin provides"):
        read_step(form, {"gaussian": Gaussian})


@pytest.mark.parametrize(
    "cut",
    [
        None,
        *SCHEMA.attributes,
        FromRelease("best"),
        FromRelease("best", attributes=["a", "c"]),
        dpf.Cases([dpf.Equals("a", "true"), dpf.Below("n", 3)]),
        (dpf.Equals("a", "true"), dpf.And([dpf.Equals("a", "false"), dpf.Equals("c", "x")])),
    ],
    ids=str,
)
def test_a_cut_that_is_read_is_the_one_that_was_written(cut: Any) -> None:
    assert read_cut(through_json(write_cut(cut))) == cut
