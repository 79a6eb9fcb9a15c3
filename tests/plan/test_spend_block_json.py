"""Blocks that a miner spends as it goes, as JSON: what is read again is what was written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Exponential, Gaussian
from dpframework.plan import Spend
from dpframework.plan.step_block_and_cut_json import read_spend, write_spend

COUNT = dpf.queries.Count()
LEAST = st.none() | st.sampled_from(["0.05", "1/3"])
KINDS = st.one_of(
    st.builds(dpf.kind, st.just("noise"), st.just(COUNT), st.just(DiscreteLaplace), least=LEAST),
    st.builds(dpf.kind, st.just("choice"), st.just(COUNT), st.just(Exponential), times=st.none() | st.integers(1, 9)),
)
CAPS = st.fixed_dictionaries({"epsilon": st.sampled_from(["0.5", "1/3"])}, optional={"rho": st.just("0.1")})


def forms_of(node: Spend) -> list[dict[str, Any]]:
    return [{"name": kind.name} for kind in node.children]


@given(st.lists(KINDS, min_size=1, max_size=2, unique_by=lambda kind: kind.name), CAPS)
def test_a_block_that_is_read_is_the_one_that_was_written(kinds: list[Any], caps: dict[str, str]) -> None:
    node = dpf.spend("rounds", *kinds, **caps)
    form = json.loads(json.dumps(write_spend(node, forms_of(node), None)))
    read = read_spend(form, node.children)
    assert (read.name, read.caps, read.bounds, read.children) == (node.name, node.caps, node.bounds, node.children)
    assert form["parts"] == forms_of(node)


def test_a_block_needs_a_step_with_bounds_for_each_kind() -> None:
    node = dpf.spend("rounds", dpf.kind("noise", COUNT, Gaussian), rho="0.1")
    form = write_spend(node, forms_of(node), None)
    for parts, bounds in ((node.children, []), ((dpf.post("p", []),), form["bounds"]), ((), form["bounds"])):
        with pytest.raises(dpf.InputError, match="'rounds' needs one step with bounds"):
            read_spend({**form, "bounds": bounds}, parts)
