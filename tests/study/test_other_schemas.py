"""Redescriptions of one table under schemas that say the same in another way: the same ones are found.

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


def found(
    miner: str,
    *,
    mirrored: bool = False,
    order: str = "abcdef",
    prefix: str = "",
    scale: float = 1.0,
    offset: float = 0.0,
) -> set[tuple[Any, ...]]:
    """The redescriptions of the rows, as sentences in plain names and units, with their numbers of rows."""
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
    frame = rows().select(
        (pl.col(name) * scale + offset if name in "cf" else pl.col(name)).alias(prefix + name) for name in order
    )
    name, parameters = MINERS[miner]
    study = dpf.Study(schema, epsilon=EXACT)
    study.add("it", dpf.miner(name, epsilon=EXACT, **parameters))
    result = study.run(dpf.table_from_frame(frame, schema), seed=1)["it"]

    def text(side: Any) -> str:
        said = str(side).replace(prefix, "") if prefix else str(side)
        for cut in CUTS:
            said = said.replace(f"{offset + scale * cut:g}", f"{cut:g}") if scale != 1 else said
        return said

    sides = [(text(one.left), text(one.right), one.left_support, one.right_support, one) for one in result]
    if mirrored:
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
    assert found(miner, order="fedcba", prefix="column_", scale=16.0, offset=1024.0) == plain


def test_what_is_found_has_its_numbers_of_rows() -> None:
    holds = {"a": pl.col("a"), "d": pl.col("d")}
    both, left, right = (rows().filter(of).height for of in (holds["a"] & holds["d"], holds["a"], holds["d"]))
    for miner in ("matches", "client"):
        assert ("a = true", "d = true", both, left, right) in found(miner)
