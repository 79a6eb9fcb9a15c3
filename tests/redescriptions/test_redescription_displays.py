"""Redescriptions as a table, as lines, and drawn: every cell beside the numbers that it is made of."""

from __future__ import annotations

import csv
import io
import math
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from drawn import Axes

from dpframework.facts.logical_descriptions_of_rows import And, Equals, Not
from dpframework.redescriptions import Redescription, redescription_displays
from dpframework.results import Noisy

LEFT, RIGHT = Equals("ill", "true"), Equals("town", "A")
ONE = Redescription(LEFT, RIGHT, both=Noisy(60, 2), left_only=Noisy(20, 2), right_only=Noisy(10, 2), rows=Noisy(200, 0))


def redescription(both: float, left: float = 20, right: float = 10, rows: float = 200) -> Redescription:
    of = {"both": both, "left_only": left, "right_only": right}
    return Redescription(LEFT, RIGHT, **{name: Noisy(count, 2) for name, count in of.items()}, rows=Noisy(rows, 0))


def numbers(one: Redescription, trusted: bool = False, others: int = 0) -> tuple[str, ...]:
    return redescription_displays._cells(one, trusted, others)[2:]


def test_a_line_has_the_index_the_support_both_sides_the_lift_and_the_p_value() -> None:
    low, high = ONE.jaccard_interval()
    least, most = ONE.support_interval()
    assert ONE.jaccard == 60 / 90
    assert numbers(ONE) == (
        f"0.67\n[{low:.2f}, {high:.2f}]",
        f"60\n[{math.floor(least)}, {math.ceil(most)}]",
        "80\n70",
        f"{60 * 200 / (80 * 70):.1f}",
        f"{ONE.p_value:.1e}",
        "",
    )
    assert numbers(ONE, trusted=True)[-1] == "*"
    assert numbers(ONE, others=3)[-1] == "+3"
    assert numbers(ONE, trusted=True, others=3)[-1] == "* +3"


def test_no_support_is_negative_and_no_side_is_below_both() -> None:
    assert numbers(redescription(-5))[1].startswith("0\n")
    assert numbers(redescription(60, left=-20, right=-3))[2] == "60\n60"
    assert numbers(redescription(-5, left=3, right=9))[2] == "0\n4"


def test_what_is_not_known_is_a_dash_and_an_underflow_is_no_0() -> None:
    unknown = attrs.evolve(ONE, rows=None)
    assert numbers(unknown)[3:5] == ("-", "-")
    tiny = redescription(5_000, left=0, right=0, rows=10_000)
    assert tiny.p_value is not None
    assert tiny.p_value < 1e-99
    assert numbers(tiny)[4] == "<1e-99"


def test_a_table_wraps_descriptions_and_tells_what_has_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    long = attrs.evolve(ONE, left=And([Equals(f"attribute {k}", "true") for k in range(6)]))
    lines = redescription_displays.table([(long, True, 0), (ONE, False, 0)], 12).splitlines()
    assert lines[0].split() == ["left", "right", "Jaccard", "support", "sides", "lift", "p-value"]
    assert max(map(len, lines)) <= 104
    assert "12" in lines[-2] + lines[-1]
    assert not any(line.startswith(("and ", "+:")) for line in lines)
    monkeypatch.setattr(redescription_displays, "SHOWN", 2)
    three = [(ONE, False, 1), (ONE, False, 0), (ONE, False, 4)]
    text = redescription_displays.table(three, 3)
    assert "and 5 more, in to_csv and to_json" in text
    assert "+n: n others are about the same attributes; to_csv and to_json list them, and the attribute" in text
    assert "more, in" not in redescription_displays.table(three[:2], 3)
    assert "others are about" not in redescription_displays.table(three[1:2], 3)
    shown = redescription_displays.html(three, 3)
    assert "and 5 more, in to_frame, to_csv and to_json" in shown
    assert shown.count("<tr>") == 3
    assert ">trusted<" in shown


def test_lines_and_frames_have_a_field_for_each_number() -> None:
    unknown = attrs.evolve(ONE, right=Not(RIGHT), rows=None)
    read = list(csv.reader(io.StringIO(redescription_displays.lines([ONE, unknown], [True, False]))))
    assert tuple(read[0]) == redescription_displays._COLUMNS
    assert [read[1][k] for k in (2, 5, 8, 9, 10, 13)] == [str(60 / 90), "60.0", "80.0", "70.0", "200.0", "true"]
    assert read[2][10:] == ["", "", "", "false"]
    frame = redescription_displays.frame([ONE, unknown], [True, False])
    assert frame.columns == list(redescription_displays._COLUMNS)
    assert frame["trusted"].to_list() == [True, False]
    assert frame["rows"].to_list() == [200, None]
    assert frame["jaccard_low"].to_list() == [ONE.jaccard_interval()[0], unknown.jaccard_interval()[0]]


def test_indices_are_drawn_against_supports_with_their_intervals() -> None:
    axes = Axes()
    two = [ONE, redescription(30)]
    redescription_displays.draw(two, [True, False], 25, axes)
    open_, filled = axes.of("errorbar")
    assert (open_[0], filled[0]) == (([30.0], [two[1].jaccard]), ([60.0], [ONE.jaccard]))
    (low, high), (least, most) = ONE.jaccard_interval(), ONE.both.interval()
    assert filled[1]["xerr"] == [[60 - least], [most - 60]]
    assert filled[1]["yerr"] == [[ONE.jaccard - low], [high - ONE.jaccard]]
    assert axes.of("axvline")[0][0] == (25,)
    nothing = Axes()
    redescription_displays.draw([], [], 25, nothing)
    assert nothing.of("axvline") == nothing.of("errorbar") == nothing.of("legend") == []
    assert nothing.of("set")[0][1]["ylim"] == (-0.03, 1.03)


class Bars(Axes):
    """Axes whose labels can be coloured."""

    def __init__(self, labels: int) -> None:
        super().__init__()
        self.colours: list[str] = []
        self.labels = [SimpleNamespace(set_color=self.colours.append) for _ in range(labels)]
        self.spines = _Spines()

    def get_yticklabels(self) -> list[Any]:
        return self.labels


class _Spines:
    def __getitem__(self, names: list[str]) -> Any:
        return SimpleNamespace(set_visible=lambda _: None)


def test_sides_are_drawn_as_a_pair_of_bars_with_the_dark_part_in_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redescription_displays, "_BARS", 2)
    three = [ONE, redescription(30, left=-40, right=5), redescription(1)]
    axes = Bars(4)
    redescription_displays.draw_bars(three, [True, False, True], axes)
    bars = axes.of("barh")
    half = 0.36 / 2
    assert [of[0] for of, _ in bars] == pytest.approx(
        [-half, -half, half, half, 1 - half, 1 - half, 1 + half, 1 + half]
    )
    assert [of[1] for of, _ in bars] == [80, 60, 70, 60, 30, 30, 35, 30]
    assert [options["color"] in redescription_displays._DARK for _, options in bars] == [False, True] * 4
    assert axes.colours == [redescription_displays._DARK[0], redescription_displays._DARK[1]] * 2
    most = max(80, ONE.support_interval()[1])
    assert [of[2] for of, _ in axes.of("text")] == [f"{ONE.jaccard:.2f} *", f"{three[1].jaccard:.2f}"]
    assert axes.of("text")[0][0][:2] == (pytest.approx(most + 0.01 * most), 0)
    assert axes.of("set_xlim")[0][0] == (0, pytest.approx(1.15 * most))
    assert axes.of("set_ylim")[0][0] == (1.5, -0.5)
    assert axes.of("set_xlabel")[0][0][0].endswith("; the first 2 of 3")
    assert axes.of("errorbar")[0][1]["xerr"] == [
        [60 - ONE.support_interval()[0]],
        [ONE.support_interval()[1] - 60],
    ]
    empty = Bars(0)
    redescription_displays.draw_bars([], [], empty)
    assert empty.of("set_xlim")[0][0] == (0, 1.15)
    assert empty.of("set_ylim")[0][0] == (0.5, -0.5)
    assert not empty.of("set_xlabel")[0][0][0].endswith("of 0")
