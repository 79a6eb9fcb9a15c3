"""Results as a reader meets them: printed, in a notebook, as JSON, as a frame and drawn. This writes them anew.

python tests/printed_results.py

Each result is made by hand, with numbers below 0, unequal ends, more rows than a table shows, and what is not known. A
drawing is told by what stands where on its axes, in the units of the axes.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator
from printed_outputs import write_anew

from dpframework.facts.logical_descriptions_of_rows import And, Below, Equals, Not
from dpframework.redescriptions.redescription import Redescription
from dpframework.redescriptions.redescriptions import Redescriptions
from dpframework.results.class_prediction_patterns import Pattern
from dpframework.results.estimates import Estimate, QuantileEstimate
from dpframework.results.frequencies import Frequencies
from dpframework.results.grid_and_bounds_results import AdaptiveGrid, FoundBounds
from dpframework.results.groups import Groups
from dpframework.results.json_safe import json_text
from dpframework.results.keys import KeyTable, ReleasedKeys
from dpframework.results.marginal_tables import MarginalTable, MarginalTables
from dpframework.results.matrix import Matrix
from dpframework.results.noisy_count_with_interval import Noisy
from dpframework.results.released_row_cap_result import RowsPerUnit
from dpframework.results.results_by_key import ByKey

PRINTED = Path(__file__).parent / "results" / "printed"
SICK, YOUNG, NORTH, EAST = Equals("ill", "true"), Below("age", 18), Below("latitude", 53.5), Below("longitude", 10)
CELLS = [((0, 1), (0, 2)), ((1, 3), (0, 1)), ((1, 3), (1, 2))]


def redescriptions() -> list[Redescription]:
    """Redescriptions with all counts, with some and with none of them known, and with bootstrapped errors."""
    sides = {"left_only": Noisy(20, 2), "right_only": Noisy(10, 3), "rows": Noisy(1000, 0)}
    return [
        Redescription(SICK, YOUNG, both=Noisy(160, 2), **sides),
        Redescription(And([SICK, Not(YOUNG)]), NORTH, both=Noisy(60, 2), **sides | {"rows": None}),
        Redescription(And([NORTH, Not(EAST)]), YOUNG, both=Noisy(40, 8), apart=Noisy(12, 8)),
        Redescription(SICK, And([EAST, NORTH]), both=Noisy(-3, 2), **sides),
        Redescription(SICK, NORTH, both=Noisy(90, 4), **sides | {"right_only": None}, apart=Noisy(25, 4)),
        Redescription(YOUNG, EAST, both=Noisy(70, 4), **sides, shown_from=0.5, among=5),
        Redescription(YOUNG, NORTH, both=Noisy(300, 4), **sides, deviation=0.04),
        Redescription(Equals("price", "$5 or $6"), EAST, both=Noisy(300, 4), **sides, deviation=0.2),
    ]


def key_table(keys: int, each: ByKey | None = None, **options: Any) -> KeyTable:
    texts = each.keys if each is not None else [f"key {k:02}" for k in range(keys)]
    counts = [1 + (7 * k) % 5 * 9 for k in range(len(texts))]  # some are equal
    return KeyTable("town", ReleasedKeys(texts, counts), within=4.5, half=14, always=28, each=each, **options)


def results() -> Mapping[str, Any]:
    """Return the results, by the names of their files."""
    two = Frequencies(["ill", "town"], [["no", "yes"], ["N", "S", "W"]], [[40, -9, 12], [7, 30, 2]], 2)
    wide = Frequencies(["c", "k"], [["x"], [f"k{k}" for k in range(9)]], [list(range(9))], 0.5)
    three = Frequencies(["a", "b", "c"], [["x", "y"], ["p"], ["u", "v"]], [[[1.5, 2.5]], [[40.0, -60.0]]], 9)
    flat = Frequencies(["town"], [["N", "S", "W"]], [-20, 3, 55], 8, exact_total=True)
    means = [Estimate("mean of cost", 20.5, 19.25, 22.5), Estimate("mean of cost", -3, -4.5, -2)]
    halves = [QuantileEstimate("age", "0.25", 37 + k, rows=14.5, step=(k + 1) / 8) for k in range(3)]
    found = redescriptions()
    return {
        "grid": AdaptiveGrid(["x", "y"], [[0, 1, 4, 9], [-2, 0, 8]], CELLS, [6, -4, 30], 2),
        "grid-of-many": AdaptiveGrid(
            ["x", "y"],
            [range(8), range(3)],
            [((i, i + 1), (j, j + 1)) for i in range(7) for j in range(2)],
            range(14),
            0,
        ),
        "bounds": FoundBounds("age", 18, 65.5, 3, 900, -2, 2, looks=1),
        "frequencies-of-two": two,
        "frequencies-with-a-public-total": attrs.evolve(two, exact_total=True),
        "frequencies-of-nine-columns": wide,
        "frequencies-of-three": three,
        "frequencies-of-one": flat,
        "frequencies-of-many": Frequencies(["k"], [[str(k) for k in range(53)]], np.arange(53), 0),
        "groups": Groups(["value", "town"], "mean of cost", [["no", "N"], ["yes", "S"]], means, note="All hold."),
        "groups-of-quantiles": Groups(["town"], "quartile of age", [["N"], ["S"], ["W"]], halves),
        "groups-of-many": Groups(["k"], "mean", [[str(k)] for k in range(61)], [Estimate("mean", 1, 0, 2)] * 61),
        "keys": key_table(4, sure=0.999, unit="owners"),
        "keys-of-many": key_table(52),
        "keys-with-counts": key_table(0, ByKey(("A", "B"), [flat, attrs.evolve(flat, counts=[1, 2, 3]), flat])),
        "keys-with-many-counts": key_table(0, ByKey(tuple(f"k{k:02}" for k in range(51)), [wide] * 52)),
        "keys-with-means": key_table(0, ByKey(("A",), means)),
        "estimate": means[0],
        "quantile": halves[0],
        "marginal": MarginalTable(["ill", "town"], two.labels, two.counts, 5, [(["ill"], 2.5)]),
        "marginals": MarginalTables(
            [MarginalTable(["ill"], [["no", "yes"]], [44, 39.5], 3), MarginalTable(["k"], [["x"]], [-7], 12)],
            Noisy(83, 0),
        ),
        "rows-per-unit": RowsPerUnit("owner", 5, 40, "0.125", 30.5),
        "redescriptions": Redescriptions(found, candidates=40, min_support=50, max_share=0.75),
        "redescriptions-of-many": Redescriptions(
            [attrs.evolve(one, both=one.both + k) for one in found for k in range(8)], candidates=900
        ),
        "no-redescription": Redescriptions([], candidates=7, reason="Noise hides all."),
        "nothing-looked-at": Redescriptions([]),
    }


def number(value: float) -> str:
    return "0" if abs(value) < 1e-9 else f"{value:.6g}"


def points(of: Iterable[Iterable[float]]) -> str:
    return " ".join(f"({', '.join(map(number, point))})" for point in of)


def drawn(axes: Axes) -> Iterator[str]:
    """Yield what stands on axes, a line each."""
    yield f"across {axes.get_xlabel()!r} {points([axes.get_xlim()])}"
    yield f"up {axes.get_ylabel()!r} {points([axes.get_ylim()])}"
    yield f"titles {axes.get_title()!r} {axes.get_title('right')!r}"
    for where, axis in (("up", axes.yaxis), ("across", axes.xaxis)):
        if isinstance(axis.get_major_locator(), FixedLocator):  # others are numbers that matplotlib chooses
            for place, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True):
                yield f"name {where} {number(place)} {label.get_text()!r} {to_hex(label.get_color())}"
    for line in axes.lines:
        look = line.get_linestyle(), line.get_marker(), to_hex(line.get_color()), line.get_zorder()
        yield f"line {points(line.get_xydata())} {look} {line.get_label()!r}"
    for patch in axes.patches:
        corners = patch.get_path().transformed(patch.get_patch_transform()).vertices
        look = to_hex(patch.get_facecolor(), keep_alpha=True), patch.get_hatch(), patch.get_label()
        yield f"area {points(corners)} {look}"
    for some in axes.collections:
        yield from (f"shape {points(path.vertices)} {some.get_hatch()}" for path in some.get_paths())
    for image in axes.images:
        yield f"image {points(image.get_array().tolist())} {image.get_extent()} {image.get_cmap().name}"
    for text in axes.texts:
        yield f"text {points([text.get_position()])} {text.get_text()!r}"
    if (legend := axes.get_legend()) is not None:
        yield f"legend {[text.get_text() for text in legend.get_texts()]}"
    for other in axes.figure.axes:
        if other is not axes:
            yield f"beside it {other.get_ylabel()!r}"
    yield f"formulas: {any(text.get_parse_math() for text in axes.figure.findobj(Text))}"


def draw(by: Any) -> str:
    axes = Figure(figsize=(6, 4)).subplots()
    by(axes)
    return "\n".join(drawn(axes))


def views(result: Any, many: bool) -> Iterator[str]:
    """Yield all views of a result, of a large one those that show a part of it."""
    yield str(result)
    yield result._repr_html_()
    if many:
        yield draw(result.plot)
        return
    yield result.to_json().rstrip()
    frame = result.to_frame()
    yield str(dict(frame.schema))
    yield frame.write_csv(float_precision=4).rstrip()
    yield draw(result.plot)
    if isinstance(result, Redescriptions):
        yield repr(result)
        buffer = io.StringIO()
        result.to_csv(buffer)
        yield buffer.getvalue()
        yield draw(result.plot_supports)
        yield draw(lambda axes: result.plot_map("longitude", "latitude", axes))
        yield draw(lambda axes: result.plot_map("latitude", "longitude", axes))


def others() -> Iterator[str]:
    """Yield values that are no whole results."""
    for values in ([[0.5, -1]], [[2, 1]], [[-1, -2]], [[0, 20], [10, 9]], []):
        matrix = Matrix("it", [str(k) for k in range(len(values))], "ab" if values else "", values)
        yield f"{values}: {matrix.texts} {matrix.levels}"
    yield str(Pattern(SICK, Equals("ill", "no")).weight)
    odd = {1: math.inf, "a": [math.nan, True, None, 2, "x", (1.5,)], "b": np.array([1.0, math.inf]), "c": {2}}
    yield json_text({**odd, "noisy": Noisy(1, 2), "frame": {"deep": {"x": [Noisy(3, 0)]}}, "big": 10**400})


def printed() -> Iterator[tuple[str, str]]:
    """Yield the name of each file and what it should hold."""
    for name, result in results().items():
        text = "\n\n".join(views(result, many="many" in name))
        text = re.sub(r"\d+\.\d{9,}(e-\d+)?", lambda one: f"{float(one[0]):.9g}", text)  # the last digits are rounding
        yield f"{name}.txt", "\n".join([line.rstrip() for line in text.splitlines()] + [""])
    yield "others.txt", "\n".join(others()) + "\n"


if __name__ == "__main__":
    write_anew(PRINTED, printed())
