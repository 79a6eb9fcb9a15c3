"""What the everyday miner of keys releases for each key that was shown, and for all other rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframework as dpf
from dpframework.results import ByKey, Estimate, Frequencies, KeyTable

SCHEMA = dpf.Schema(
    [dpf.Open("town"), dpf.Boolean("ill"), dpf.Categorical("sex", ["F", "M"]), dpf.Numeric("age", 0, 100, bins=4)]
)
ROWS = {
    "town": ["oslo"] * 500 + ["bergen"] * 398 + ["rome", None],
    "ill": [True] * 300 + [False] * 600,
    "sex": ["F", "M"] * 450,
    "age": [30] * 500 + [60] * 400,
}
EXACT: dict[str, Any] = {
    "histogram": {"bergen": [398, 0], "oslo": [200, 300], None: [2, 0]},
    "crosstab": {"bergen": [[199, 199], [0, 0]], "oslo": [[100, 100], [150, 150]], None: [[1, 1], [0, 0]]},
}
EACH: dict[str, Any] = {"histogram": "ill", "crosstab": ["ill", "sex"], "mean": "age"}


def study(kind: str, **budget: Any) -> dpf.Study:
    made = dpf.Study(SCHEMA, epsilon=3, delta="2e-6")
    made.add("towns", dpf.miner("keys", attribute="town", each={kind: EACH[kind]}, delta="1e-6", **budget))
    return made


@pytest.mark.parametrize("budget", [{"epsilon": 2}, {"rho": "0.2"}], ids=["epsilon", "rho"])
@pytest.mark.parametrize("kind", EACH)
def test_each_key_and_all_others_have_a_result(kind: str, budget: dict[str, Any], tmp_path: Path) -> None:
    """Fails with a probability below 1e-7: a count is off by 40 rows, or a mean of 398 rows or more by 10."""
    made = study(kind, **budget)
    assert made.plan().refusals() == []
    table = made.run(dpf.table_from_columns(ROWS, SCHEMA), seed=1)["towns"]
    assert table.keys == ("bergen", "oslo")
    each = table.each
    assert isinstance(each, ByKey)
    if kind == "mean":
        assert [one.value for one in each.results[:2]] == pytest.approx([60, 30], abs=10)
        assert isinstance(each.other, Estimate)
    else:
        for key, one in each.items():
            assert isinstance(one, Frequencies)
            assert np.abs(one.counts - EXACT[kind][key]).max() < 40
    assert KeyTable.from_dict(json.loads(table.to_json())) == table
    frame = each.to_frame("town")
    assert frame["town"].unique().sort().to_list() == [None, "bergen", "oslo"]
    assert str(table).splitlines()[-1 if kind == "mean" else -2].startswith("all others")
    pl.DataFrame(ROWS).write_csv(tmp_path / "t.csv")
    mapped = dpf.read_table(tmp_path / "t.csv", SCHEMA, values=["age"], mapped=True)
    assert str(made.run(mapped, seed=1, engine=dpf.Mapped())["towns"]) == str(table)


@pytest.mark.parametrize("relation", list(dpf.Relation))
def test_half_of_the_budget_shows_keys_and_noise_is_planned_before_any_is_known(relation: dpf.Relation) -> None:
    schema = dpf.Schema(SCHEMA.attributes, rows=900 if relation is dpf.Relation.REPLACE_ONE else None)
    made = dpf.Study(schema, epsilon=2, delta="1e-6", relation=relation)
    made.add("towns", dpf.miner("keys", attribute="town", each={"mean": "age"}, epsilon=2, delta="1e-6"))
    plan = made.plan()
    (_, keys, _), (path, mean, calibration) = plan.calibrated_steps()
    assert (keys.mechanism.epsilon, mean.mechanism.epsilon) == (1, 1)
    assert path.endswith("distances")  # the number of rows of a part is not public, also where the table's is
    assert calibration.losses.pure.under(relation) == 1
    assert plan.total() == dpf.PrivacyLoss(2, delta="1e-6")


@pytest.mark.parametrize(
    ("each", "why"),
    [
        ({"median": "age"}, "each is {'median': 'age'}; one of { histogram"),
        ({"histogram": "ill", "mean": "age"}, "one of { histogram"),
        ("ill", "each is 'ill'; one of"),
        ({"crosstab": ["ill"]}, "attributes has 1 names"),
    ],
)
def test_what_each_refuses(each: Any, why: str) -> None:
    with pytest.raises(dpf.InputError, match=why):
        dpf.miner("keys", attribute="town", each=each, epsilon=1, delta="1e-6")


def test_results_are_one_more_than_keys_and_of_one_kind() -> None:
    mean = Estimate("mean of age", 1, 0, 2)
    table = Frequencies(["ill"], [["no", "yes"]], [1, 2], 1)
    assert ByKey(("a",), [mean, mean])["a"] is mean
    assert list(ByKey(("a", "b"), [mean] * 3)) == ["a", "b"]
    with pytest.raises(dpf.InputError, match="2 keys have 2 results; one more result than keys is needed"):
        ByKey(("a", "b"), [mean, mean])
    with pytest.raises(dpf.InputError, match="the results of keys are of different classes"):
        ByKey(("a",), [mean, table])
    with pytest.raises(KeyError):
        ByKey(("a",), [mean, mean])["b"]
    wide = Frequencies(["n"], [[str(k) for k in range(9)]], range(9), 1)
    assert "and more, in to_frame and to_json" in ByKey((), [wide]).lines("town")
