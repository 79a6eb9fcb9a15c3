"""Parameters of Serenade on a schema: supports that fit it, a plan that spends all, and what a result leaves out."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from dpframework_greedy.parameters import SCORES, Serenade
from dpframework_greedy.serenade import SerenadeCS, SerenadeES
from hypothesis import given, settings, strategies as st

import dpframework as dpf
from dpframework.redescriptions import Redescription
from dpframework.results import Noisy

LEFT = [dpf.Boolean(name, view="left") for name in ("wolf", "bear")]
RIGHT = [dpf.Numeric("rain", 0, 8, cuts=[3, 5], view="right"), dpf.Boolean("cold", view="right")]
COUNTED = dpf.Schema([*LEFT, *RIGHT], rows=100)
BOUNDED = dpf.Schema([*LEFT, *RIGHT], max_rows=100)
KINDS = st.sampled_from([SerenadeES, SerenadeCS])


@settings(max_examples=30)
@given(KINDS, st.sampled_from(SCORES), st.integers(1, 4), st.sampled_from([COUNTED, BOUNDED]))
def test_a_plan_spends_all_of_the_budget(kind: type[Serenade], score: str, pairs: int, schema: dpf.Schema) -> None:
    miner = kind(epsilon=2, score=score, pairs=pairs, min_support=10)
    study = dpf.Study(schema, epsilon=2)
    study.add("found", miner)
    total = study.plan().smallest_epsilon()
    assert total is not None
    assert Fraction(199, 100) < total <= 2


@given(KINDS, st.none() | st.integers(1, 150), st.none() | st.integers(1, 150))
def test_supports_fit_the_schema_and_each_other(kind: type[Serenade], least: int | None, most: int | None) -> None:
    miner = kind(epsilon=1, min_support=least, max_support=most)
    wrong = (least or 0) > 100 or (least is not None and most is not None and most <= least)
    if wrong:
        with pytest.raises(dpf.InputError, match="_support is"):
            miner.check_supports(COUNTED)
    else:
        miner.check_supports(COUNTED)


def test_without_a_support_a_share_of_the_public_rows_is_meant() -> None:
    score = SerenadeES(epsilon=1, score="logistic").scored(COUNTED)
    assert (score.min_support, score.max_support) == (10, 70)
    of_more = SerenadeES(epsilon=1, score="logistic", min_support=5).scored(BOUNDED)
    assert (of_more.min_support, of_more.max_support) == (5, 35)
    with pytest.raises(dpf.InputError, match="min_support is needed"):
        SerenadeES(epsilon=1, score="logistic").scored(BOUNDED)


@pytest.mark.parametrize(
    ("given_parameters", "message"),
    [
        ({"count_share": "0.1"}, "count_share is given, but score = 'rows'"),
        ({"count_share": "0.1", "score": "logistic", "min_support": 3}, "give one"),
        ({"score": "cosine"}, "'cosine'"),
        ({"max_p_value": 2}, "max_p_value"),
        ({"target_jaccard": 1}, "target_jaccard"),
        ({"pairs": 0}, "pairs"),
    ],
)
@pytest.mark.parametrize("kind", [SerenadeES, SerenadeCS])
def test_parameters_that_mean_nothing_are_refused(kind: Any, given_parameters: Any, message: str) -> None:
    with pytest.raises(dpf.InputError, match=message):
        kind(epsilon=1, **given_parameters)


def found(both: float, apart: float) -> Redescription:
    part = Noisy(apart / 2, 1.0)
    supports = {"both": Noisy(both, 1.0), "left_only": part, "right_only": part, "rows": Noisy(100, 1.0)}
    return Redescription(dpf.Equals("wolf", "true"), dpf.Equals("cold", "true"), **supports)


@given(st.floats(0, 60), st.floats(0, 60))
def test_a_result_leaves_out_what_is_beyond_its_supports_by_more_than_the_noise(both: float, apart: float) -> None:
    miner = SerenadeES(epsilon=1, min_support=20, max_support=50)
    one = found(both, apart)
    kept = list(miner.finish([one], 1))
    assert kept == [one] * (one.both.interval()[1] >= 20 and (one.both + one.apart).interval()[0] <= 50)


def test_a_result_without_anything_says_what_could_be_found() -> None:
    miner = SerenadeES(epsilon=1)
    assert miner.counts_together
    assert str(miner.target_jaccard) == "1/2"
    assert miner.finish([], 3, 1.0, 100).reason
    assert not miner.finish([found(30, 1)], 3).reason


@pytest.mark.parametrize("kind", [SerenadeES, SerenadeCS])
def test_as_many_extensions_are_chosen_as_their_share_carries_unless_a_number_is_asked_for(kind: Any) -> None:
    """Also where the shares are given: only a number of extensions says that they are wanted whatever the noise."""
    number = "rounds" if kind is SerenadeES else "extensions"
    for budget in (None, [0.4, 0.3, 0.3]):
        given: dict[str, Any] = {"score": "logistic", "pairs": 2, "budget": budget}
        few, many = (kind(epsilon=epsilon, **given).resolve(COUNTED).choices for epsilon in ("0.1", 1000))
        assert (few, many) == (0, 8)
    assert kind(epsilon="0.1", **given, **{number: 3}).resolve(COUNTED).choices > 0
