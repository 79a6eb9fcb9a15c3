"""Maps of redescriptions: where a side holds that is about two numeric attributes alone."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dpframework.facts import And, Below, Equals, InputError, Not, Or
from dpframework.facts.logical_descriptions_of_rows import Description
from dpframework.redescriptions import Redescription, Redescriptions
from dpframework.redescriptions.map_over_two_attributes import MOST_REGIONS, _Points, region
from dpframework.results import Noisy

NAMES = ("lon", "lat")
NORTH, EAST = Not(Below("lat", 50)), Not(Below("lon", 10))
MOOSE = Equals("moose $x$", "true")
EDGES = ([5.0, 10.0, 20.0, 30.0], [40.0, 50.0, 60.0])


def found(*sides: tuple[Description, Description]) -> Redescriptions:
    return Redescriptions(
        [Redescription(a, b, both=Noisy(400 - k, 1), apart=Noisy(50, 2)) for k, (a, b) in enumerate(sides)]
    )


def drawn(result: Redescriptions, x: str = "lon", y: str = "lat") -> tuple[list[str], list[tuple[float, ...]], Figure]:
    """Return the legend, the bounds of each rectangle, and the figure."""
    figure = Figure()
    canvas = FigureCanvasAgg(figure)
    axes = figure.subplots()
    assert result.plot_map(x, y, axes) is axes
    canvas.draw()
    boxes = [path.get_extents().extents for bars in axes.collections for path in bars.get_paths()]
    return axes.get_legend_handles_labels()[1], [tuple(box.round(6).tolist()) for box in boxes], figure


@pytest.mark.parametrize(
    ("side", "expected"),
    [
        (NORTH, [[0, 1], [0, 1], [0, 1]]),
        (And([NORTH, EAST]), [[0, 0], [0, 1], [0, 1]]),
        (Or([NORTH, EAST]), [[0, 1], [1, 1], [1, 1]]),
        (And([EAST, Below("lon", 20)]), [[0, 0], [1, 1], [0, 0]]),
        (Not(And([EAST, Below("lat", 50)])), [[1, 1], [0, 1], [0, 1]]),
    ],
)
def test_a_region_is_where_its_description_holds(side: Description, expected: list[list[int]]) -> None:
    assert region(side, NAMES, EDGES).tolist() == np.array(expected, dtype=bool).tolist()


def test_a_map_has_the_sides_that_are_about_its_two_attributes_alone() -> None:
    mixed = And([NORTH, Equals("moose $x$", "true")])
    result = found((MOOSE, And([NORTH, EAST])), (NORTH, MOOSE), (mixed, EAST), (MOOSE, Below("rain", 3)))
    labels, boxes, figure = drawn(result)
    assert [label.rpartition(":")[0] for label in labels] == ["moose $x$"] * 2 + ["lat >= 50 and moose $x$"]
    assert all(label.endswith((": 0.89 *", ": 0.89")) for label in labels)
    # thresholds 10 and 50, and ends a tenth of them away
    assert boxes == [(10, 50, 11, 55), (9, 50, 10, 55), (10, 50, 11, 55), (10, 45, 11, 50), (10, 50, 11, 55)]
    axes = figure.axes[0]
    assert (axes.get_xlim(), axes.get_ylim()) == ((9, 11), (45, 55))
    assert (axes.get_xlabel(), axes.get_ylabel()) == NAMES
    assert not any(text.get_parse_math() for text in axes.get_legend().get_texts())


def test_a_map_goes_a_tenth_beyond_the_outermost_thresholds() -> None:
    band = And([NORTH, Below("lat", 70), Not(Below("lon", -5)), Below("lon", 5)])
    axes = drawn(found((MOOSE, band)))[2].axes[0]
    assert (axes.get_xlim(), axes.get_ylim()) == ((-6, 6), (48, 72))


def test_a_map_with_nothing_to_show_says_so() -> None:
    for result in (found((MOOSE, Below("rain", 3))), Redescriptions([])):
        labels, boxes, figure = drawn(result)
        assert (labels, boxes) == ([], [])
        assert [text.get_text() for text in figure.axes[0].texts] == ["no side tests only these two attributes"]
        assert (figure.axes[0].get_xlim(), figure.axes[0].get_ylim()) == ((-0.1, 0.1), (-0.1, 0.1))


def test_a_map_draws_the_first_regions_and_names_how_many_there_are() -> None:
    sides = [(Equals(f"animal {k}", "true"), Below("lat", k)) for k in range(1, MOST_REGIONS + 3)]
    labels, _, figure = drawn(found(*sides))
    assert len(labels) == MOST_REGIONS
    assert f"the first {MOST_REGIONS} of {MOST_REGIONS + 2}" in figure.axes[0].get_title()
    labels, _, figure = drawn(found(*sides[:MOST_REGIONS]))
    assert "the first" not in figure.axes[0].get_title()


def test_of_those_about_the_same_attributes_a_map_has_the_best() -> None:
    labels, _, _ = drawn(found((MOOSE, NORTH), (Not(MOOSE), Not(NORTH)), (EAST, MOOSE)))
    assert [label.rpartition(":")[0] for label in labels] == ["moose $x$", "moose $x$"]


def test_thresholds_that_are_no_cuts_are_compared_as_values_and_keys_are_refused() -> None:
    assert region(Below("lat", 44), NAMES, EDGES).tolist() == [[False, False]] * 3
    assert region(Below("lat", 46), NAMES, EDGES).tolist() == [[True, False]] * 3
    with pytest.raises(InputError, match="a map is of two numeric attributes"):
        _Points({}, {}).keys("lat")
