"""What every result that is kept has: a view in a notebook, JSON, and a reader that refuses other forms."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Self

import attrs
import pytest
from matplotlib.figure import Figure

import dpframework as dpf
from dpframework.facts.notebook_html import html_table, html_text
from dpframework.results.matrix import Matrix
from dpframework.results.result import StoredResult, axes_or_new


@attrs.frozen
class Found(StoredResult):
    """A plugin's result."""

    name_in_errors = "a finding"
    value: float
    shown: tuple[Matrix, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {"value": self.value, "shown": [one.to_dict() for one in self.shown]}

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Self:
        return cls(form["value"], tuple(Matrix(**one) for one in form["shown"]))

    def matrices(self) -> tuple[Matrix, ...]:
        return self.shown


ONE, OTHER = Matrix("one", ["a"], ["x", "y"], [[1, 20]]), Matrix("other", ["b"], ["z"], [[0.5]])


def test_a_notebook_shows_its_matrices_or_else_its_text() -> None:
    assert Found(1.5)._repr_html_() == html_text(str(Found(1.5)))
    assert Found(1.5, (ONE, OTHER))._repr_html_() == (
        html_table(["one", "x", "y"], [("a", "1", "20")]) + html_table(["other", "z"], [("b", "0.50")])
    )


def test_what_was_written_is_read_and_json_holds_no_other_numbers() -> None:
    found = Found(1.5, (ONE,))
    assert Found.from_dict(json.loads(found.to_json())) == found
    assert Found(1).to_json() == '{\n  "value": 1,\n  "shown": []\n}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        Found(math.nan).to_json()


class Unshowable(Found):
    """A result whose matrices cannot be had."""

    def matrices(self) -> tuple[Matrix, ...]:
        raise ArithmeticError("no matrix")


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        (Found, {}),
        (Found, {"value": math.inf, "shown": []}),
        (Found, {"value": 1, "shown": [{"title": "one"}]}),
        (Unshowable, {"value": 1, "shown": []}),
    ],
)
def test_what_cannot_be_read_written_printed_or_shown_is_refused(kind: type[Found], form: dict[str, Any]) -> None:
    with pytest.raises(dpf.InputError, match=r"^this is not a finding that dpframework wrote$"):
        kind.from_dict(form)


def test_axes_are_those_that_are_given_or_new_ones() -> None:
    given = Figure().subplots()
    assert axes_or_new(given) is given
    assert axes_or_new(None, figsize=(3, 2)).figure.get_size_inches().tolist() == [3, 2]
    with pytest.raises(dpf.InputError, match=r"plot takes matplotlib axes, not 'ages'; results\['ages'\]\.plot\(\)"):
        axes_or_new("ages")
