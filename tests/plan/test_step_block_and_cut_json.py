"""Steps and cuts as JSON: what is read again is what was written, but for the query's function."""

from __future__ import annotations

import functools
import json
from fractions import Fraction
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import NOTHING
from dpframework.mechanisms import (
    DiscreteLaplace,
    Exponential,
    Gaussian,
    PartitionSelection,
    PermuteAndFlip,
    PureMechanism,
)
from dpframework.mechanisms.base import Mechanism
from dpframework.plan import FromRelease, Step
from dpframework.plan.step_block_and_cut_json import read_cut, read_step, write_cut, write_losses, write_step

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


@attrs.frozen
class OwnFields(PureMechanism):
    """A mechanism with a field that it computes, a private one and one of any type."""

    name = "own-fields"
    norm = dpf.queries.Norm.L1
    release = log_density = preview = None
    ratio: Fraction = attrs.field(init=False)
    _factor: Fraction = attrs.field(default=Fraction(1, 2), converter=Fraction)
    other: Any = None

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "ratio", self.epsilon / 2)


def test_parameters_are_written_as_a_class_takes_them():
    step = dpf.step("n", dpf.queries.Count(), OwnFields(1, Fraction(1, 3), [{"weight": Fraction(2, 3)}, (True, None)]))
    form = through_json(write_step(step, None, 1))
    written = {"epsilon": "1", "factor": "1/3", "other": [{"weight": "2/3"}, [True, None]]}
    assert form["mechanism"] == {"name": "own-fields", **written}
    again = read_step(form, {"own-fields": OwnFields}).mechanism
    assert (again.ratio, again._factor) == (Fraction(1, 2), Fraction(1, 3))


def test_a_parameter_that_no_plan_file_holds_is_named():
    step = dpf.step("n", dpf.queries.Count(), OwnFields(1, other=[NOTHING, b"bytes"]))
    with pytest.raises(InputError, match="the parameter other of mechanism 'own-fields' contains a value of type"):
        write_step(step, None, 1)


def test_a_mechanism_that_keeps_something_beside_its_fields_is_refused():
    class Kept(OwnFields):
        """Has a dictionary, as its class is not decorated."""

        @functools.cached_property
        def twice(self) -> Fraction:
            return 2 * self.epsilon

    mechanism = Kept(1)
    assert mechanism.twice == 2  # what follows from the fields may be cached
    dpf.step("n", dpf.queries.Count(), mechanism)
    object.__setattr__(mechanism, "rounds", 3)
    with pytest.raises(InputError, match="step 'n': mechanism 'own-fields' keeps 'rounds' outside of its fields"):
        dpf.step("n", dpf.queries.Count(), mechanism)
