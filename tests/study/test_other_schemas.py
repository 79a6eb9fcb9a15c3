"""One table under schemas that say the same in another way: the same is found.

With hardly any noise, what is found depends on the rows alone. Exchanging the two views exchanges the sides; the order
of attributes, their names and the units of numbers change nothing else.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframework as dpf

EXACT = 10**7
VIEWS = {"a": "left", "b": "left", "c": "left", "d": "right", "e": "right", "f": "right"}
OTHER = {"left": "right", "right": "left"}
CUTS = (3, 5, 7)

MINERS: dict[str, tuple[str, dict[str, Any]]] = {
    "matches": ("serenade-es", {}),
    "client": ("serenade-cs", {}),
    "logistic": ("serenade-es", {"score": "logistic", "min_support": 60}),
    "extended": ("serenade-cs", {"score": "logistic", "min_support": 60, "pairs": 3, "extensions": 2}),
    "matched trees": ("matched-trees", {}),
    "alternating": ("alt-expm", {"max_depth": 2, "starts": 2}),
}


@functools.cache
def rows() -> pl.DataFrame:
    """Six attributes, of which d follows a, e follows b, and f grows with both a and c."""
    rng, number = np.random.default_rng(1), 600
    a, b = rng.random(number) < 0.4, rng.choice(["p", "q", "r"], number)
    c = np.clip(rng.normal(5, 2, number), 0, 10)
    e = np.where((b == "p") & (rng.random(number) < 0.9), "u", rng.choice(["u", "v", "w"], number))
    f = np.clip(rng.normal(3, 1, number) + 3 * a + c / 4, 0, 10)
    return pl.DataFrame({"a": a, "b": b, "c": c, "d": a ^ (rng.random(number) < 0.1), "e": e, "f": f})


def mined(
    miner: str,
    parameters: dict[str, Any],
    *,
    mirrored: bool = False,
    order: str = "abcdef",
    prefix: str = "",
    scale: float = 1.0,
    offset: float = 0.0,
) -> tuple[Any, pl.DataFrame]:
    """What a miner finds in the rows under a schema, and the rows in its names and units."""
    values = {"b": ["p", "q", "r"], "e": ["u", "v", "w"]}

    def attribute(name: str) -> dpf.Attribute:
        view = OTHER[VIEWS[name]] if mirrored else VIEWS[name]
        if name in values:
            return dpf.Categorical(prefix + name, values[name], view=view)
        if name in "cf":
            cuts = [offset + scale * cut for cut in CUTS]
            return dpf.Numeric(prefix + name, offset, offset + 10 * scale, cuts=cuts, view=view)
        return dpf.Boolean(prefix + name, view=view)

    schema = dpf.Schema([attribute(name) for name in order], max_rows=1_000)
    cells = {name: pl.col(name) * scale + offset if name in "cf" else pl.col(name) for name in order}
    frame = rows().select(cell.alias(prefix + name) for name, cell in cells.items())
    if "target" in parameters:
        parameters = {**parameters, "target": prefix + parameters["target"]}
    study = dpf.Study(schema, epsilon=EXACT)
    study.add("it", dpf.miner(miner, epsilon=EXACT, **parameters))
    return study.run(dpf.table_from_frame(frame, schema), seed=1)["it"], frame


ANOTHER: dict[str, Any] = {"order": "fedcba", "prefix": "column_", "scale": 16.0, "offset": 1024.0}


def found(miner: str, **another: Any) -> set[tuple[Any, ...]]:
    """The redescriptions of the rows, as sentences in plain names and units, with their numbers of rows."""
    name, parameters = MINERS[miner]
    result, _ = mined(name, parameters, **another)

    def text(side: Any) -> str:
        said = str(side).replace("column_", "")
        for cut in CUTS:
            said = said.replace(f"{ANOTHER['offset'] + ANOTHER['scale'] * cut:g}", f"{cut:g}")
        return said

    sides = [(text(one.left), text(one.right), one.left_support, one.right_support, one) for one in result]
    if "mirrored" in another:
        sides = [(right, left, of_right, of_left, one) for left, right, of_left, of_right, one in sides]
    return {
        (left, right, round(one.both.value), *(None if of is None else round(of.value) for of in (of_left, of_right)))
        for left, right, of_left, of_right, one in sides
    }


@pytest.mark.parametrize("miner", MINERS)
def test_the_same_is_found_under_a_schema_that_says_the_same(miner: str) -> None:
    plain = found(miner)
    assert len(plain) >= 3
    assert found(miner, mirrored=True) == plain
    assert found(miner, **ANOTHER) == plain


def test_what_is_found_has_its_numbers_of_rows() -> None:
    holds = {"a": pl.col("a"), "d": pl.col("d")}
    both, left, right = (rows().filter(of).height for of in (holds["a"] & holds["d"], holds["a"], holds["d"]))
    for miner in ("matches", "client"):
        assert ("a = true", "d = true", both, left, right) in found(miner)


@pytest.mark.parametrize(
    ("miner", "parameters"),
    [
        ("dp-id3", {"target": "d", "max_depth": 3}),
        ("dp-id3", {"target": "e", "max_depth": 2, "criterion": "gini"}),
        ("dp-tree", {"target": "d", "max_depth": 2}),
        ("dp-classifier", {"target": "d"}),
        ("dp-additive", {"target": "e"}),
    ],
    ids=["levels", "gini", "whole", "classifier", "additive"],
)
def test_models_predict_the_same(miner: str, parameters: dict[str, Any]) -> None:
    predicted = []
    for another in ({}, ANOTHER):
        model, frame = mined(miner, parameters, **another)
        predicted.append(np.asarray(getattr(model, "tree", model).predict(frame)).astype(str).tolist())
    assert predicted[0] == predicted[1]
    truth = [str(cell).lower() for cell in rows()[parameters["target"]].to_list()]
    assert np.mean([one.lower() == cell for one, cell in zip(predicted[0], truth, strict=True)]) > 0.5


@pytest.mark.parametrize(
    "parameters", [{"context": "max-relevance", "context_size": 2}, {"context": "auto"}, {"context": "none"}]
)
def test_distances_between_values_are_the_same(parameters: dict[str, Any]) -> None:
    (one, _), (other, _) = (mined("dp-dilca", parameters, **another) for another in ({}, ANOTHER))
    assert len(one) == 6
    for name, distances in one.items():
        assert other[f"column_{name}"].matrix == pytest.approx(distances.matrix, abs=1e-3)
    e = one["e"]
    assert e.between("u", "v") > 2 * e.between("v", "w")  # u goes with p, and the others with all
