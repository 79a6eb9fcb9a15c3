"""Releases that a miner asks for as it goes: their paths, which end in the parameters that it chose."""

from __future__ import annotations

from fractions import Fraction

import pytest

import dpframework as dpf
from dpframework.mechanisms import DiscreteLaplace, Gaussian, PartitionSelection
from dpframework.plan.spend_block_requests import request_step, request_text, split_request

STEP = dpf.step("rows", dpf.queries.Count(), DiscreteLaplace("0.25"))


@pytest.mark.parametrize(
    ("path", "kind", "amounts"),
    [
        ("mine/rows (epsilon 1/4)", "mine/rows", {"epsilon": Fraction(1, 4)}),
        ("rows (epsilon 3)", "rows", {"epsilon": Fraction(3)}),
        ("rows (epsilon 12/5, delta 1/1000)", "rows", {"epsilon": Fraction(12, 5), "delta": Fraction(1, 1000)}),
        ("rows (rho 1/3)", "rows", {"rho": Fraction(1, 3)}),
        ("rows", "rows", {}),
        ("rows (many)", "rows (many)", {}),
        ("a (epsilon 1)/rows", "a (epsilon 1)/rows", {}),
    ],
)
def test_a_path_says_what_was_asked_for(path: str, kind: str, amounts: dict[str, Fraction]) -> None:
    assert split_request(path) == (kind, amounts)


@pytest.mark.parametrize("amount", ["0", "0/3", "3/0", "1/x", "x", "x/2", "1.5", "-1", "1/-2", "", "1 2", "1/2/3", "²"])
def test_what_is_asked_for_is_a_positive_ratio(amount: str) -> None:
    with pytest.raises(dpf.InputError) as error:
        split_request(f"rows (epsilon {amount})")
    assert str(error.value) == f"a release was requested with 'epsilon {amount}'; a positive ratio is needed"


@pytest.mark.parametrize("mechanism", [DiscreteLaplace("0.25"), Gaussian("1/3"), PartitionSelection("0.5", "1e-7")])
def test_what_is_written_is_read(mechanism: dpf.Mechanism) -> None:
    step = dpf.step("rows", dpf.queries.Count(), mechanism)
    kind, amounts = split_request(f"mine/rows{request_text(step)}")
    assert kind == "mine/rows"
    assert request_step(step, amounts) == step
    assert request_step(STEP, {"epsilon": Fraction(2)}) == dpf.step("rows", dpf.queries.Count(), DiscreteLaplace(2))
