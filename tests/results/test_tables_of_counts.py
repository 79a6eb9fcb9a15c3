"""Tables of counts, keys and groups: how much is printed and drawn, the ends of intervals, and what is kept."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from drawn import Axes

import dpframework as dpf
from dpframework.results import Noisy
from dpframework.results.estimates import Estimate, QuantileEstimate
from dpframework.results.frequencies import Frequencies
from dpframework.results.groups import Groups
from dpframework.results.keys import KeyTable, ReleasedKeys
from dpframework.results.marginal_tables import MarginalTable
from dpframework.results.matrix import Matrix, matrices_of
from dpframework.results.released_row_cap_result import RowsPerUnit
from dpframework.results.results_by_key import ByKey
from dpframework.results.table_text import TextTable, align_columns


def texts(number: int, begin: str = "t") -> list[str]:
    return [f"{begin}{k:03}" for k in range(number)]


def frequencies(*sizes: int, variance: float = 2.0, exact_total: bool = False) -> Frequencies:
    names = [f"a{k}" for k in range(len(sizes))]
    counts = np.arange(int(np.prod(sizes))).reshape(sizes) - 2
    return Frequencies(names, [texts(size) for size in sizes], counts, variance, exact_total=exact_total)


# Frequencies


@pytest.mark.parametrize("exact_total", [False, True])
def test_sums_of_counts_have_the_variance_of_their_noise(exact_total: bool) -> None:
    """Noise that adds up to 0 is that of n numbers of one variance and of one correlation."""
    found = frequencies(2, 3, exact_total=exact_total)
    covariance = -found.variance / 5 if exact_total else 0.0
    matrix = np.full((6, 6), covariance) + np.eye(6) * (found.variance - covariance)
    for cells in range(7):
        assert found.variance_of_sum(cells) == pytest.approx(matrix[:cells, :cells].sum(), abs=1e-12)
    assert found.total == Noisy(found.counts.sum(), found.variance_of_sum(6))
    assert frequencies(1, exact_total=True).variance_of_sum(1) == 0


def test_of_two_cells_with_an_exact_total_each_has_the_noise_of_the_other() -> None:
    two = Frequencies(["a"], [["x", "y"]], [3, 4], 5, exact_total=True)
    assert [two.variance_of_sum(cells) for cells in (0, 1, 2)] == [0, 5, 0]
    assert two["x"].variance == 5
    one = Frequencies(["a"], [["x"]], [3], 5, exact_total=True)
    assert [one.variance_of_sum(cells) for cells in (0, 1)] == [0, 0]


@pytest.mark.parametrize("wrong", [[1, math.nan], [math.inf, 1], ["a", "b"], [True, False], [1, 2, 3], [[1, 2]]])
def test_counts_are_finite_numbers_one_a_cell(wrong: Any) -> None:
    with pytest.raises(dpf.InputError, match=r"counts must be finite numbers|give one count for each cell"):
        Frequencies(["a"], [["x", "y"]], wrong, 5)


def test_released_counts_are_not_changed_in_place() -> None:
    table = frequencies(2, 2)
    with pytest.raises(ValueError, match="read-only"):
        table.counts[0, 0] = 9


def test_a_margin_adds_up_the_other_attributes_in_the_order_of_its_names() -> None:
    found = frequencies(2, 3, 4)
    for number in (1, 2, 3):
        for names in itertools.permutations(found.names, number):
            margin = found.margin(*names)
            letters = "".join("abc"[found.names.index(name)] for name in names)
            assert margin.counts.tolist() == np.einsum(f"abc->{letters}", found.counts).tolist()
            assert margin.labels == tuple(found.labels[found.names.index(name)] for name in names)
            assert margin.variance == found.variance * found.counts.size / margin.counts.size
            assert not margin.exact_total
    assert frequencies(2, 2, exact_total=True).margin("a0").exact_total
    for wrong in ((), ("a0", "a0")):
        with pytest.raises(dpf.InputError, match="each named once"):
            found.margin(*wrong)
    with pytest.raises(dpf.InputError, match="no attribute 'a9'"):
        found.margin("a9")


def test_cells_have_intervals_that_do_not_go_below_0() -> None:
    found, reach = frequencies(6), Noisy.margin_of(2.0)
    assert [(low, high) for _, _, low, high in found.cells()] == [
        (max(count - reach, 0), max(count + reach, 0)) for count in range(-2, 4)
    ]
    assert found["t000"] == Noisy(-2, 2)
    assert found.to_frame().columns == ["a0", "count", "low", "high"]
    assert found.to_dict()["within"] == reach
    with pytest.raises(dpf.InputError, match="one label for each of a0, not 2"):
        found["t000", "t001"]
    with pytest.raises(dpf.InputError, match="'a0' has no label 'x'"):
        found["x"]


def test_counts_that_are_not_negative_are_the_nearest_of_the_same_total() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        counts = rng.normal(1, 4, (3, 4)).round(1)
        near = attrs.evolve(frequencies(3, 4), counts=counts).nonnegative()
        if counts.sum() <= 0:
            assert not near.any()
            continue
        assert near.min() >= 0
        assert near.sum() == pytest.approx(counts.sum())
        taken = (counts - near)[near > 0]
        assert taken == pytest.approx(np.full(taken.size, taken[0]))  # one number is taken off all that are left
        assert (counts[near == 0] <= taken[0] + 1e-9).all()


@pytest.mark.parametrize(
    ("sizes", "crossed"), [((5,), False), ((9, 8), True), ((3, 9), False), ((2, 3, 8), True), ((2, 2, 9), False)]
)
def test_a_cross_table_has_up_to_eight_columns_of_counts(sizes: tuple[int, ...], crossed: bool) -> None:
    found = frequencies(*sizes)
    printed = found._text_table()
    heads = (*found.names[:-1], *found.labels[-1], "all") if crossed else (*found.names, "count", "95 %")
    assert printed.heads == heads
    lines = int(np.prod(sizes[:-1])) + 1 if crossed else int(np.prod(sizes))
    assert len(printed.rows) == min(lines, 50)
    assert max(printed.more, 0) == max(lines - 50, 0)
    if crossed:
        assert printed.rows[0][-1] == f"{found.counts.reshape(-1, sizes[-1])[0].sum()}"
        assert printed.rows[-1][0] == "all"
        assert printed.rows[-1][-1] == f"{found.counts.sum()}"
        down = found.counts.reshape(-1, sizes[-1]).sum(axis=0)
        assert printed.rows[-1][len(sizes) - 1 : -1] == tuple(map(str, down.tolist()))
    else:
        assert printed.rows[0] == (*["t000"] * len(sizes), "-2", "[0, 2]")


def test_a_cross_table_says_how_far_sums_may_be_off() -> None:
    told = frequencies(4, 3)._text_table().legend
    reaches = [-int(-Noisy.margin_of(2.0 * cells) // 1) for cells in (1, 3, 4, 12)]
    assert f"each count is within ±{reaches[0]} of" in told
    assert f"a row is within ±{reaches[1]}, of a column within ±{reaches[2]}, and the total is " in told
    assert told.endswith(f"within ±{reaches[3]}.")
    assert told.startswith("Columns: a1. ")
    assert frequencies(2, 2, exact_total=True)._text_table().legend.endswith("and the total is exact.")


def test_counts_are_drawn_as_bars_or_as_a_map() -> None:
    bars = Axes()
    frequencies(6).draw(bars)
    ((places, counts), options) = bars.of("barh")[0]
    assert ([*places], counts) == ([*range(6)], [-2, -1, 0, 1, 2, 3])
    reach = Noisy.margin_of(2.0)
    assert options["xerr"][0] == pytest.approx([max(n - max(n - reach, 0), 0) for n in counts])
    assert options["xerr"][1] == pytest.approx([max(max(n + reach, 0) - n, 0) for n in counts])
    assert bars.of("set") == [((), {"xlabel": "noisy count (rows)", "ylabel": "a0"})]
    assert bars.of("set_yticks")[0][0] == (range(6), tuple(texts(6)))
    drawn = Axes()
    frequencies(2, 2, 3).draw(drawn)
    assert drawn.of("imshow")[0][0][0].shape == (4, 3)
    assert [*drawn.of("set_yticks")[0][0][0]] == [0, 1, 2, 3]
    assert drawn.of("set_yticks")[0][0][1][1] == "t000, t001"
    assert [*drawn.of("set_xticks")[0][0][0]] == [0, 1, 2]
    assert drawn.of("set") == [((), {"xlabel": "a2", "ylabel": "a0, a1"})]


def test_a_label_is_a_text_also_where_it_is_not_printed() -> None:
    form = frequencies(60, 1).to_dict()
    assert Frequencies.from_dict(form) == frequencies(60, 1)
    form["attributes"][0]["labels"][-1] = 7  # of 60 rows 50 are printed
    with pytest.raises(dpf.InputError, match="a list of texts holds something else, of the type 'int'"):
        Frequencies.from_dict(form)


def test_two_attributes_are_a_matrix_too() -> None:
    assert [len(frequencies(*sizes).matrices()) for sizes in ((3,), (2, 3), (2, 2, 2))] == [0, 1, 0]
    (matrix,) = matrices_of(frequencies(2, 3))
    assert (matrix.title, matrix.rows, matrix.values[1]) == ("noisy counts of a0 by a1", ("t000", "t001"), (1, 2, 3))
    assert matrices_of("none") == ()
    assert matrix.levels == ((0, 0, 0), (3, 6, 9))
    assert matrix.texts == (("-2", "-1", "0"), ("1", "2", "3"))
    assert Matrix("m", ["a"], ["b"], [[1.0]]).texts == (("1.00",),)
    assert Matrix("m", ["a"], ["b"], [[-1.004]]).texts == (("-1",),)
    assert Matrix("m", ["a"], ["b"], [[-3]]).levels == ((0,),)
    assert Matrix("m", [], [], []).levels == ()
    assert Matrix.from_dict(matrix.to_dict()) == matrix
    for wrong in (
        {},
        {**matrix.to_dict(), "values": [[0, 0, 0], [0, 0, float("nan")]]},
        {**matrix.to_dict(), "rows": ["a"]},
    ):
        with pytest.raises(dpf.InputError):
            Matrix.from_dict(wrong)


# Groups and keys


def groups(number: int, kind: str = "estimates") -> Groups:
    rows: list[Any] = [
        Estimate("mean", k, k - 1, k + 2) if kind == "estimates" else QuantileEstimate("n", "0.5", k, 3, 0.25)
        for k in range(number)
    ]
    return Groups(["g"], "mean of n", [[text] for text in texts(number)], rows)


def test_groups_are_printed_and_drawn_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpframework.results.groups._PRINTED", 3)
    monkeypatch.setattr("dpframework.results.groups._DRAWN", 4)
    for number, more in ((2, 0), (3, 0), (4, 1), (9, 6)):
        text = str(groups(number)).splitlines()
        assert text[0].split() == ["g", "mean", "of", "n", "95", "%"]
        assert [line.startswith("t") for line in text].count(True) == min(number, 3)
        assert (f"and {more} more, in to_frame and to_json" in text) == (more > 0)
        axes = Axes()
        groups(number).draw(axes)
        assert len(axes.of("plot")) == 2 * min(number, 4)
        assert axes.of("plot")[1][0] == ([-1, 2], [0, 0])
        assert axes.of("set_yticks")[0][0] == (range(min(number, 4)), texts(min(number, 4)))
        assert axes.of("set") == [((), {"xlabel": "mean of n"})]
        assert len(axes.of("invert_yaxis")) == 1
    axes = Axes()
    groups(2, "quantiles").draw(axes)
    assert [of[:2] for of, _ in axes.of("plot")] == [([0], [0]), ([1], [1])]
    assert "off by at most" in str(groups(2, "quantiles"))
    assert "steps of 0.25" in str(groups(2, "quantiles"))


@pytest.mark.parametrize("kind", ["estimates", "quantiles"])
def test_groups_are_kept_and_looked_up(kind: str) -> None:
    found = groups(3, kind)
    assert Groups.read(found.to_dict()) == found
    assert found["t001"] == found["t001",] == found.results[1]
    assert [*found.items()][2] == (("t002",), found.results[2])
    columns = ["value", "low", "high"] if kind == "estimates" else ["value", "rows", "step"]
    assert found.to_frame().columns == ["g", *columns]
    assert attrs.evolve(found, names=["value"]).to_frame().columns == ["group value", *columns]
    with pytest.raises(dpf.InputError, match="there is no group 't01'; did you mean 't001'"):
        found["t01"]
    for wrong in (
        {"groups": []},
        {"groups": [["t0"], ["t0"], ["t1"]]},
        {"groups": [["t0", "x"], ["t1", "x"], ["t2", "x"]]},
        {"groups": [["t0"], ["t1", "x"], ["t2"]]},
        {"results": [*found.results[:2], *groups(1, "quantiles" if kind == "estimates" else "estimates").results]},
        {"results": found.results[:2]},
    ):
        with pytest.raises(dpf.InputError):
            attrs.evolve(found, **wrong)  # type: ignore[arg-type]


def keys(number: int, each: ByKey | None = None, **options: Any) -> KeyTable:
    return KeyTable("town", ReleasedKeys(texts(number), range(1, number + 1)), 2.5, 14, 28, each=each, **options)


def test_released_keys_are_sorted_and_looked_up() -> None:
    found = ReleasedKeys(texts(5), [3, 1, 4, 1, 5])
    assert [found[key] for key in texts(5)] == [3, 1, 4, 1, 5]
    assert [key in found for key in ("t000", "t0005", "", "u", "t004")] == [True, False, False, False, True]
    assert ReleasedKeys.shown(["a", "b", "c"], [0, 2, -1]) == ReleasedKeys(["b", "c"], [2, -1])
    for wrong in ((["b", "a"], [1, 2]), (["a", "a"], [1, 2]), (["a"], [])):
        with pytest.raises(dpf.InputError):
            ReleasedKeys(*wrong)


def test_keys_are_printed_and_drawn_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpframework.results.keys._SHOWN", 3)
    monkeypatch.setattr("dpframework.results.keys._DRAWN", 4)
    for number, more in ((2, 0), (3, 0), (4, 1)):
        text = str(keys(number))
        assert text.count("\nt0") == min(number, 3)
        assert (f"and {more} more" in text) == (more > 0)
        axes = Axes()
        keys(number).draw(axes)
        ((places, counts), options) = axes.of("barh")[0]
        assert ([*places], counts, options["xerr"]) == ([*range(number)], [*range(number, 0, -1)], 2.5)
        assert axes.of("set_yticks")[0][0] == (range(number), texts(number)[::-1])
        assert axes.of("set") == [((), {"xlabel": "noisy count (rows)", "ylabel": "town"})]
        assert len(axes.of("invert_yaxis")) == 1
    assert keys(5).rows()[0] == ("t000", 1, 1.0, 3.5)
    assert keys(5).rows()[3] == ("t003", 4, 1.5, 6.5)
    assert "t003   4      [1, 7]" in str(attrs.evolve(keys(5), released=ReleasedKeys(["t003"], [4]), attribute="town_"))
    assert "a key of 28 or more always, and a key without rows never" in " ".join(str(keys(1)).split())
    assert "a key of 28 or more in 99.9 %, and a key without rows never" in " ".join(str(keys(1, sure=0.999)).split())
    assert keys(2).largest_first() == [("t001", 2), ("t000", 1)]
    assert keys(2)["t001"] == 2
    with pytest.raises(dpf.InputError, match="key 'x' was not released"):
        keys(2)["x"]


def by_key(number: int, cells: int = 2) -> ByKey:
    counts = [Frequencies(["c"], [texts(cells, "c")], np.arange(cells) + k, 2.0) for k in range(number + 1)]
    return ByKey(tuple(texts(number)), counts)


def test_results_by_key_end_with_those_of_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpframework.results.results_by_key._PRINTED", 4)
    monkeypatch.setattr("dpframework.results.results_by_key._COLUMNS", 3)
    for number, cells, more in ((3, 3, False), (4, 3, True), (3, 4, True), (7, 2, True)):
        lines = by_key(number, cells).lines("town")
        assert lines[0].split() == ["town", *texts(min(cells, 3), "c")]
        kept = min(number + 1, 4)
        assert [line.split()[0] for line in lines[1:kept]] == texts(kept - 1)
        assert lines[kept].split()[:2] == ["all", "others"]
        assert ("and more, in to_frame and to_json" in lines) == more
        assert lines[-1] == "Columns: c. Each count is within ±4 (95 %)."
    found = by_key(2)
    assert found["t001"] == found.results[1]
    assert found.other == found.results[2]
    assert [key for key, _ in found.items()] == ["t000", "t001", None]
    assert ByKey.read(found.keys, found.to_dict()) == found
    assert found.to_frame("town")["town"].to_list() == ["t000"] * 2 + ["t001"] * 2 + [None] * 2
    assert found.to_frame().equals(found.to_frame("key"))
    means = ByKey(("t000",), [Estimate("mean", 12_345.6, 12_000, 13_000), Estimate("mean", 1, 0, 2)])
    assert means.lines("town")[:2] == ["town        mean       95 %", "t000        1.235e+04  [1.2e+04, 1.3e+04]"]
    assert ByKey.read(means.keys, means.to_dict()) == means
    with_each = keys(2, found)
    assert KeyTable.read(with_each.to_dict()) == with_each
    assert KeyTable.read(keys(2).to_dict()) == keys(2)
    assert str(with_each).splitlines()[-1].startswith("Columns: c")
    assert "Columns: c" in with_each._repr_html_()
    with pytest.raises(dpf.InputError, match="belong to other keys"):
        keys(3, found)
    with pytest.raises(KeyError):
        found["x"]
    for wrong in ([], found.results[:2], [*found.results[:2], means.other]):
        with pytest.raises(dpf.InputError):
            ByKey(found.keys, wrong)


def test_tables_of_text() -> None:
    assert align_columns([("a", "bb"), ("ccc", "")]) == ["a    bb", "ccc"]
    assert TextTable(["a"], [("1",)], 0).text() == "a\n1"
    assert TextTable(["a"], [("1",)], 1).text() == "a\n1\nand 1 more, in to_frame and to_json"
    assert TextTable(["a"], [("1",)], -3).text() == "a\n1"
    wide = TextTable(["a"], [], 0, "word " * 40).text().splitlines()
    assert [len(line) for line in wide] == [1, 114, 84]
    assert "and 2 more" in TextTable(["a"], [("1",)], 2).html()


ERRORS = [(frequencies(2), "variance"), (Noisy(3, 2), "variance"), (keys(2), "within"), (keys(2), "half")]
ERRORS += [(keys(2), "always"), (keys(2), "sure"), (RowsPerUnit("owner", 5, 40, "0.05", 30.2), "units")]
ERRORS += [(MarginalTable(["g"], [texts(2)], [1, 2], 3.0, []), "variance")]
ERRORS += [(QuantileEstimate("n", "0.5", 3, 4, 0.25), name) for name in ("rows", "step")]


@pytest.mark.parametrize(("result", "name"), ERRORS)
@pytest.mark.parametrize("wrong", [-1, math.nan, math.inf])
def test_an_error_that_none_can_have_is_refused(result: Any, name: str, wrong: float) -> None:
    """Else a file that was changed would be read as a result whose intervals are no numbers."""
    with pytest.raises((dpf.InputError, ValueError, OverflowError), match=r"from 0|negative|NaN|infinity"):
        attrs.evolve(result, **{name: wrong})


def test_a_total_is_exact_or_not() -> None:
    with pytest.raises(TypeError, match="'exact_total' must be"):
        attrs.evolve(frequencies(2), exact_total="no")


def test_rows_of_a_unit() -> None:
    found = RowsPerUnit("owner", 5, 40, "0.05", 30.2)
    assert str(found).splitlines()[1].split() == ["owner", "5", "40", "95", "%", "of", "them", "31", "units"]
    assert "at most 5 % of all units and 31 units besides have more" in str(found)
    assert "1 unit\n" in str(attrs.evolve(found, units=0.2))
    assert "0 units\n" in str(attrs.evolve(found, units=0))
    assert RowsPerUnit.read(found.to_dict()) == found
    assert found.outside == Fraction(1, 20)
    axes = Axes()
    found.draw(axes)
    assert axes.of("plot")[0][0][:2] == ([5], [0])
    assert axes.of("set")[0][1]["xlim"] == (0, 41)
    assert attrs.evolve(found, rows=40).rows == 40
    for wrong in ({"rows": 41}, {"rows": 0}, {"most": 0}):
        with pytest.raises(dpf.InputError, match="a whole number from 1 to"):
            attrs.evolve(found, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("exact_total", [False, True])
def test_a_difference_of_counts_has_the_variance_of_its_noise(exact_total: bool) -> None:
    """The noise of counts whose total is exact is negatively correlated, so that a difference has more of it."""
    found = frequencies(2, 3, exact_total=exact_total)
    covariance = -found.variance / 5 if exact_total else 0.0
    one, other = (tuple(texts[k] for texts, k in zip(found.labels, cell, strict=True)) for cell in ((0, 1), (1, 2)))
    difference = found.difference(one, other)
    assert difference.value == found[one].value - found[other].value
    assert difference.variance == pytest.approx(2 * found.variance - 2 * covariance)
    assert found.difference(one, one).variance == 0
    two = Frequencies(["a"], [["x", "y"]], [3, 4], 5, exact_total=True)
    assert two.difference("x", "y").variance == 4 * 5  # the noise of y is that of x, with the other sign


@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 3, 2)])
def test_fitted_counts_have_the_sums_of_the_level_above_and_are_near(shape: tuple[int, ...]) -> None:
    """The nearest counts from 0 on add one number to all that stay positive. Rounding moves each by less than 1."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        table = attrs.evolve(frequencies(*shape), counts=rng.integers(-4, 9, shape))
        in_x = np.array([True, True, False, True])
        groups = dict(zip(table.labels[0], "xxyx", strict=True))
        for sums in ({"x": rng.integers(0, 30, shape[1:]), "y": rng.integers(0, 9, shape[1:])}, {"x": 17, "y": 0}):
            found = table.fit_to_sums(sums, groups)
            assert found.min() >= 0
            for group, own in (("x", in_x), ("y", ~in_x)):
                wanted = np.asarray(sums[group]).reshape(-1)
                fitted, released = (of.reshape(-1, len(wanted)).T for of in (found[own], table.counts[own]))
                assert fitted.sum(axis=1).tolist() == wanted.tolist()
                for now, was in zip(fitted, released, strict=True):
                    added = (now - was)[now > 0]
                    assert not added.size or np.ptp(added) <= 1
                    assert not added.size or (was[now == 0] + added.min() <= 1).all()


def test_sums_to_fit_are_whole_and_of_known_groups() -> None:
    table = frequencies(2, 3)
    one, other = table.labels[0]
    assert table.fit_to_sums({one: 6, other: 0.0}).sum(axis=1).tolist() == [6, 0]
    for sums, groups, text in (
        ({one: 6}, None, "has no sum"),
        ({one: 6, other: 1, "z": 1}, None, "has no label"),
        ({"x": 6}, {one: "x"}, "has no group"),
        ({one: 6.5, other: 1}, None, "no whole number"),
        ({one: -1, other: 1}, None, "no whole number"),
        ({one: math.nan, other: 1}, None, "no whole number"),
        ({one: math.inf, other: 1}, None, "no whole number"),
        ({one: "6", other: 1}, None, "no whole number"),
        ({one: [1, 2], other: 1}, None, r"or such numbers of shape \(3,\)"),
    ):
        with pytest.raises(dpf.InputError, match=text):
            table.fit_to_sums(sums, groups)
