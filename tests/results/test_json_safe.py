"""JSON of whatever a plugin's miner returns: nothing that was paid for is lost to its last line."""

from __future__ import annotations

import json
import math
from typing import Any

import attrs
import numpy as np

from dpframework.results.json_safe import json_text, to_json_safe


@attrs.frozen
class Found:
    """A result of a plugin, in whose form anything may stand."""

    form: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return self.form


def test_what_stands_in_a_form_of_a_form_is_made_finite_too() -> None:
    inner = Found({"mean": math.nan, "low": -math.inf, "more": Found({"of": np.array([1.5, math.inf])})})
    text = json_text({"a": inner, "b": [Found({}), {1}]})
    assert json.loads(text) == {
        "a": {"mean": None, "low": None, "more": {"of": [1.5, None]}},
        "b": [{}, "{1}"],
    }


def test_values_that_json_has_stay_as_they_are() -> None:
    kept = {"n": 10**400, "t": "nan", "f": 0.1, "no": None, "yes": True, "l": [1, [2.5]]}
    assert to_json_safe(kept) == json.loads(json_text(kept)) == kept
    assert to_json_safe((1, np.float64(2))) == [1, 2.0]
    assert to_json_safe({3: Found({"x": 1})}) == {"3": {"x": 1}}
    assert to_json_safe(2j) == "2j"
    assert json_text({"a": [1]}) == '{\n  "a": [\n    1\n  ]\n}'
