"""The common base of additive models: parts by name and rank, and a row for each cell of each part."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from dpframework_trees.additive import Term
from dpframework_trees.additive.additive_base import SHOWN, AdditiveSum
from dpframework_trees.additive.model import AdditiveModel
from dpframework_trees.additive.term_drawing import BAND
from hypothesis import given, strategies as st
from matplotlib.text import Text

import dpframework as dpf

ILL = dpf.Boolean("ill")
VALUE = st.floats(-5, 5, allow_subnormal=False)


def term(name: str, values: list[float]) -> Term:
    attribute = dpf.Categorical(name, [str(k) for k in range(len(values))])
    noise = np.arange(1.0, len(values) + 1)
    return Term(attribute, tuple(range(len(values))), np.array(values)[:, None], noise, 2 * noise)


TERMS = st.lists(st.lists(VALUE, min_size=2, max_size=4), min_size=1, max_size=8).map(
    lambda lists: tuple(term(f"a{k}", values) for k, values in enumerate(lists))
)


def model(terms: tuple[Term, ...]) -> AdditiveSum:
    return AdditiveModel(ILL, np.array([0.25]), terms)


@given(TERMS)
def test_parts_are_ranked_by_the_largest_difference_that_they_make(terms: tuple[Term, ...]) -> None:
    one = model(terms)
    ranked = one.most_important
    assert {id(part) for part in ranked} == {id(part) for part in one.shown_terms}
    sizes = [float(np.ptp(part.values)) for part in ranked]
    assert sizes == sorted(sizes, reverse=True)
    assert one.schema.names == tuple(part.attribute.name for part in terms)


@given(TERMS)
def test_the_dataframe_has_a_row_for_each_cell_of_each_part(terms: tuple[Term, ...]) -> None:
    one = model(terms)
    frame = one.to_frame()
    assert frame.rows(named=True) == [
        {
            "attribute": part.attribute.name,
            "cell": label,
            f"added to {one.outputs[0]}": part.values[k, 0],
            "noise_even": BAND * part.deviations[k],
            "noise_most": BAND * part.most_deviations[k],
        }
        for part in one.most_important
        for k, label in enumerate(part.labels)
    ]


def test_a_part_is_found_by_its_name_and_an_unknown_name_is_refused() -> None:
    one = model((term("age", [0.0, 1.0]), term("town", [1.0, 0.0])))
    assert one.term("town").attribute.name == "town"
    with pytest.raises(dpf.InputError, match="attribute 'twon' is not in the model; it has age, town"):
        one.term("twon")


def test_only_the_most_important_parts_are_drawn() -> None:
    one: Any = model(tuple(term(f"a{k}", [0.0, float(k)]) for k in range(SHOWN + 2)))
    texts = " ".join(text.get_text() for text in one.plot().figure.findobj(Text)).split()
    assert {name for name in texts if re.fullmatch(r"a\d", name)} == {f"a{k}" for k in range(2, SHOWN + 2)}
