"""The two sides of redescriptions from trees, by the schema's views or by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from dpframework_trees.redescribe import AltExpM, AltMCMC, MatchedTrees, MCMCTreePair

import dpframework as dpf
from dpframework.study.study_file import load_study

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("wolf", view="left"),
        dpf.Categorical("zone", ["north", "middle", "south"], view="left", missing=True),
        dpf.Boolean("snow", view="right"),
        dpf.Numeric("rain", 0, 8, cuts=[3, 5], view="right"),
        dpf.Categorical("one", ["x"]),
    ]
)
SIDES = {"left": ["wolf", "zone"], "right": ["snow", "rain"]}
MINERS = (AltExpM, AltMCMC, MCMCTreePair, MatchedTrees)


def with_views(**views: str | None) -> dpf.Schema:
    """Return the schema with other views of some attributes."""
    return SCHEMA.replace(*(attrs.evolve(SCHEMA[name], view=view) for name, view in views.items()))


def planted() -> np.ndarray:
    """Return rows where wolf and zone are south tell whether rain is 3 or more, as codes."""
    rng = np.random.default_rng(5)
    wolf = rng.integers(0, 2, 600)
    zone = np.where(wolf, 2, rng.integers(0, 2, 600))
    rain = np.where(wolf, rng.integers(1, 3, 600), 0)
    return np.stack([wolf, zone, rng.integers(0, 2, 600), rain, 0 * wolf])


@pytest.mark.parametrize(
    ("same", "schema", "sides"),
    [
        (SCHEMA, with_views(wolf=None, zone="right", rain="left", snow=None), SIDES),
        (with_views(wolf=None), SCHEMA, {"left": ["zone"]}),
    ],
    ids=["both", "left"],
)
@pytest.mark.parametrize(
    ("miner", "settings"),
    [
        (AltExpM, {"max_depth": 1}),
        (AltMCMC, {"max_depth": 1, "starts": ["rain", "zone"]}),
        (MCMCTreePair, {"max_depth": 1, "starts": ["rain"]}),
        (MatchedTrees, {"trees": 1}),
    ],
)
def test_named_sides_are_planned_and_mined_as_views_are(
    miner: Any, settings: dict[str, Any], same: dpf.Schema, schema: dpf.Schema, sides: dict[str, list[str]]
) -> None:
    """The steps, their queries and their noise are the same, and so are the results of one seed."""
    seen = []
    for of, named in ((same, {}), (schema, sides)):
        study = dpf.Study(of, epsilon=20)
        study.add("found", miner(20, **settings, **named))
        found = study.run(dpf.Table.from_codes(of, planted()), seed=1)["found"]
        assert len(found)
        seen.append((study.plan().content()["root"], found.to_json()))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("miner", MINERS)
@pytest.mark.parametrize(
    ("sides", "sentence"),
    [
        ({"left": ["wof"]}, "attribute 'wof' is not in the schema; did you mean 'wolf'"),
        ({"right": ["snow", "snow"]}, "right names an attribute twice; name each once"),
        ({"left": []}, "left names no attribute"),
        ({"left": ["one"]}, "two values or a cut"),
        ({"left": ["wolf"], "right": ["rain", "wolf"]}, "attribute 'wolf' is on both sides and would match itself"),
        ({"right": ["rain", "zone"]}, "attribute 'zone' is on both sides"),
    ],
    ids=str,
)
def test_sides_that_cannot_be_are_refused_in_a_sentence(miner: Any, sides: dict[str, Any], sentence: str) -> None:
    with pytest.raises(dpf.InputError, match=sentence) as caught:
        dpf.Study(SCHEMA, epsilon=1).add("found", miner(1, **sides))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("miner", MINERS)
def test_a_side_is_a_list_of_names(miner: Any) -> None:
    with pytest.raises(dpf.InputError, match="'wolf' is one text; give a list of names"):
        miner(1, left="wolf")


def test_a_start_is_on_one_of_the_sides() -> None:
    with pytest.raises(dpf.InputError, match="'wolf' is on neither side; name it in left or right"):
        AltExpM(1, starts=["wolf"], left=["zone"]).plan(SCHEMA)


def test_a_study_file_names_the_attributes_of_either_side(tmp_path: Path) -> None:
    """No attribute of the schema has a view."""
    with_views(**dict.fromkeys(("wolf", "zone", "snow", "rain"))).dump(tmp_path / "schema.toml")
    steps = "".join(
        f'''
[[step]]
name = "{name}"
miner = "{name}"
epsilon = 1
params = {{ left = ["wolf", "zone"], right = ["snow", "rain"] }}
'''
        for name in ("alt-expm", "alt-mcmc", "mcmc-tree-pair", "matched-trees")
    )
    data = '[data]\npath = "rows.csv"\nschema = "schema.toml"\n[privacy]\nepsilon = 4\n'
    (tmp_path / "study.toml").write_text(data + steps)
    study = load_study(tmp_path / "study.toml").study
    by_view = dpf.Study(SCHEMA, epsilon=4)
    for name in study.miners:
        by_view.add(name, dpf.miner(name, epsilon=1))
    assert len(study.miners) == 4
    assert study.plan().content()["root"] == by_view.plan().content()["root"]
