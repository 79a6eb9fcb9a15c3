"""What formulas are worth, exactly and in floating point, what shapes say of themselves, and kernels as text."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scored_formulas import COUNTS, DERIVED, FLOORED, GAIN, GINI, HALF, JACCARD, MAX, PAIR_GAIN, a, b, c

from dpframework.facts.errors import InputError
from dpframework.formulas import (
    Adds,
    Cells,
    Change,
    Claim,
    Outer,
    Parts,
    Total,
    absolute,
    as_formula,
    at_least,
    cells,
    formula_compiler,
    kernel_source,
    largest_over_classes,
    least,
    most,
    n,
    public,
    root,
    rows,
    rows_of_part,
    scores_of,
    sensitivity_from_small_tables,
    solvers,
    sum_over_classes,
    table_rows,
    x_log2_x,
)
from dpframework.formulas.count_formula import form, legend
from dpframework.formulas.evaluation import is_rational, value_of
from dpframework.formulas.sensitivity_claims_and_neighbours import LAST_INCREMENT, Neighbours
from dpframework.formulas.sensitivity_from_small_tables import _plus, _simple_above, derive, fit_bound
from dpframework.formulas.user_cache_folder import cache_folder, write_cached

F = Fraction
LEAVES: dict[Any, Any] = {a: F(3), b: F(5), c: F(0)}
EXACT: list[tuple[Any, Fraction]] = [
    (a + b, F(8)),
    (a - b, F(-2)),
    (2 - a, F(-1)),
    (a * b, F(15)),
    (a / b, F(3, 5)),
    (2 / b, F(2, 5)),
    (a / c, F(0)),
    (c / a, F(0)),
    (-a, F(-3)),
    (a**3, F(27)),
    (a**1, F(3)),
    (least(a, b), F(3)),
    (most(a, b, 7), F(7)),
    (least(b, a, 2), F(2)),
    (absolute(a - b), F(2)),
    (absolute(b - a), F(2)),
    (at_least(a, b), F(0)),
    (at_least(b, a), F(1)),
    (at_least(a, 3), F(1)),
    (as_formula("2/3") * a, F(2)),
    (a * 0.25, F(3, 4)),
    (most(c - 1, 0), F(0)),
]


@pytest.mark.parametrize(("formula", "worth"), EXACT, ids=lambda one: str(one))
def test_values_are_exact_and_the_same_in_floating_point(formula: Any, worth: Fraction) -> None:
    assert F(np.asarray(value_of(formula, LEAVES, exact=True), dtype=object)[()]) == worth
    floats = {leaf: np.array([float(value)]) for leaf, value in LEAVES.items()}
    found = value_of(formula, floats)
    assert np.asarray(found, dtype=np.float64).tolist() == pytest.approx([float(worth)], abs=1e-15)
    assert is_rational(formula)


def test_a_range_of_no_number_and_a_name_with_signs_are_refused() -> None:
    with pytest.raises(InputError, match="'q' has the empty range from 1 to 0"):
        public("q", 1, 0)
    with pytest.raises(InputError, match="cannot name a cell"):
        public("q Real) (assert false", 0, 1)
    assert str(public("q", 1, 1)) == "q"


def test_roots_and_logarithms_have_no_exact_value() -> None:
    floats = {a: np.array([8.0, 0.0, 2.0])}
    assert value_of(root(a, 3), floats).tolist() == np.cbrt(floats[a]).tolist()
    assert value_of(root(a), floats).tolist() == pytest.approx([math.sqrt(8), 0, math.sqrt(2)])
    assert value_of(root(a, 4), floats).tolist() == pytest.approx([8**0.25, 0, 2**0.25])
    assert value_of(x_log2_x(a), floats).tolist() == [24.0, 0.0, 2.0]
    for formula in (root(a, 3), x_log2_x(a)):
        assert not is_rational(formula + b)
        with pytest.raises(InputError, match="has no exact value"):
            value_of(formula, {a: F(8)}, exact=True)
    with pytest.raises(InputError, match="'b' has no value here"):
        value_of(a + b, {a: 1})


def test_sums_and_largest_are_over_the_last_axis_and_0_over_no_classes() -> None:
    counts = np.array([[3.0, 1.0], [0.0, 2.0]])
    values = {n: counts, rows_of_part: counts.sum(axis=-1)}
    for formula, expected in (
        (sum_over_classes(n**2), [10.0, 4.0]),
        (largest_over_classes(n), [3.0, 2.0]),
        (largest_over_classes(-n), [0.0, 0.0]),
        (sum_over_classes(n / rows_of_part), [1.0, 1.0]),
        (sum_over_classes(as_formula(1)), [2.0, 2.0]),
        (sum_over_classes(n) - rows_of_part, [0.0, 0.0]),
    ):
        assert value_of(formula, values).tolist() == expected
    nothing = {n: np.zeros((1, 0)), rows_of_part: np.zeros(1)}
    assert value_of(sum_over_classes(n + 1), nothing).tolist() == [0.0]
    assert value_of(largest_over_classes(n + 1), nothing).tolist() == [0.0]


def test_shapes_score_tables_of_any_number() -> None:
    assert GINI.of_parts([[3, 1], [0, 2]]).tolist() == [2.5, 2.0]
    assert GINI.scores([[[3, 1], [0, 2]], [[1, 0], [0, 0]]]).tolist() == [4.5, 1.0]
    assert GINI.of_parts([[3, 1]], exact=True).tolist() == [F(5, 2)]
    assert GINI.scores([[3, 1], [0, 2]], exact=True)[()] == F(9, 2)
    assert GINI.scores([[3, 1]]).dtype == np.float64
    assert Parts(rows_of_part * 0 + 3).of_parts([[1, 2], [0, 0]]).tolist() == [3.0, 3.0]
    assert JACCARD.scores([[1, 3], [0, 0]]).tolist() == [0.25, 0.0]
    assert JACCARD.scores([1, 3], exact=True)[()] == F(1, 4)
    assert Cells((a,), as_formula(5)).scores([[1], [2]]).tolist() == [5.0, 5.0]


def test_shapes_say_what_they_are() -> None:
    assert (GINI.text, JACCARD.text) == ("sum over parts of sum(n^2) / N", "a / (a + b)")
    assert GINI.form == ["parts", form(GINI.body)]
    low, high = public("low", 0, 1), public("high", "1/2", 3)
    within = Cells((a, b), low * a, ((low, high),))
    assert within.form == ["cells", [["a", "b"], form(low * a), [[form(low), form(high)]]]]
    assert PAIR_GAIN.form[1][0] == [[name, "1", "0", "1"] for name in ("first", "second", "sizes")]
    assert Outer((Total(a, 1, HALF),), a * 2).form == ["outer", [[["a", "1", "1/2", "None"]], form(a * 2)]]
    assert COUNTS.form == ["adds", [[form(entry) for entry in COUNTS.entries], True]]
    assert COUNTS.text == "sum over rows of (x, y)"
    assert form(low) == ["public", ["low", "0", "1"], []]
    assert form(a + HALF) == ["+", None, [["cell", "a", []], ["constant", "1/2", []]]]
    digests = {shape.digest for shape in (GINI, JACCARD, within, PAIR_GAIN, COUNTS, Adds(COUNTS.entries))}
    assert len(digests) == 6
    assert all(len(digest) == 64 for digest in digests)
    assert JACCARD.digest == "2c417d5243011756f043f4af725c232fbbe755d917930f95f3a99d87245f258d"
    for make, says in (
        (lambda: Parts(sum_over_classes(n) + n), "reads a class's count outside"),
        (lambda: Parts(sum_over_classes(n) + rows), "cannot be used in a formula of parts"),
        (lambda: Cells((a,), a + rows_of_part), "cannot be used in a formula of cells"),
        (lambda: Cells((a,), a + b), "reads the cell 'b'"),
        (lambda: Outer((Total(a, 1, 1),), a + b), "reads 'b', which is not among its totals"),
        (lambda: Outer((Total(a, 1, 1),), a + rows), "cannot be used in a formula of totals"),
    ):
        with pytest.raises(InputError, match=says):
            make()
    assert Outer((Total(a, 1, 1),), a + table_rows).text == "a + N"


def test_formulas_fold_numbers_and_keep_them_in_front() -> None:
    assert as_formula(2) + 3 == as_formula(5)
    assert as_formula(2) * 3 == as_formula(6)
    assert as_formula(2) / 4 == as_formula(HALF)
    assert as_formula(2) / 0 == as_formula(0)
    assert (a * 2).parts == (as_formula(2), a)
    assert (2 * a).parts == (as_formula(2), a)
    assert (a + 2).parts == (a, as_formula(2))
    assert (a / 2).parts == (a, as_formula(2))
    assert as_formula("0.25").constant == as_formula(0.25).constant == F(1, 4)
    assert a.constant is None
    assert (a + b).replaced({a: b, b: a}) == b + a
    assert (a + b * a).leaves("cell") == [a, b]  # type: ignore[arg-type]
    assert legend(GINI.body) == {"n": "rows of a class, in a part", "N": "rows of a part"}
    assert legend(1 - 1 / rows) == {"R": "the largest number of rows of a table"}
    assert legend(a + b) == {}
    assert [str(one) for one in cells("p", "q")] == ["p", "q"]
    for power in (0, -1, 1.5):
        with pytest.raises(InputError, match="power"):
            a**power  # type: ignore[operator]
    for degree in (1, 0, 2.0):
        with pytest.raises(InputError, match="degree"):
            root(a, degree)  # type: ignore[arg-type]
    for text, formula in {
        "3 a": 3 * a,
        "-a": -a,
        "-(a + b)": -(a + b),
        "-a * b": -(a * b),
        "-2 a": -2 * a,
        "(2/3) a": as_formula("2/3") * a,
        "-(2/3) a": as_formula("-2/3") * a,
        "a^2 * b": a * a * b,
        "3 a^2": 3 * a**2,
        "a^2": a * a,
        "a^2 / b": a * a / b,
        "a / b^2": a / (b * b),
        "a / (a * b)": a / (a * b),
        "(a + b)^2": (a + b) ** 2,
        "a - b": a - b,
        "a - 2 b": a - 2 * b,
        "(a / b) * c": (a / b) * c,
        "[a >= 2]": at_least(a, 2),
        "min(a, b, c)": least(a, b, c),
        "max(min(a, b), c)": most(least(a, b), c),
        "(a + b)^(1/2)": root(a + b),
        "a log2 a": x_log2_x(a),
        "(a + b) log2 (a + b)": x_log2_x(a + b),
        "largest(n)": largest_over_classes(n),
        "a + 1/2": a + HALF,
        "a - 1/2": a - HALF,
    }.items():
        assert str(formula) == text
        assert repr(formula) == f"<{text}>"


def test_sums_of_bounds_have_their_constants_together() -> None:
    zero, one = as_formula(0), as_formula(1)
    assert _plus(zero, rows) == rows
    assert _plus(rows, zero) == rows
    assert _plus(zero, zero) == zero
    assert _plus(one, 1 - 2 / rows) == 2 + -(2 / rows)
    assert str(_plus(one, 1 - 2 / rows)) == "2 - 2 / R"
    assert _plus(1 - 2 / rows, one) == (1 - 2 / rows) + 1
    assert _plus(one, 2 * rows) == 1 + 2 * rows
    assert _plus(one, one) == as_formula(2)
    assert _plus(one, rows + 1) == 1 + (rows + 1)


def test_a_bound_fits_all_changes_and_has_the_last_ones() -> None:
    """A constant, a - b / R, a - b / (R + 1) or the last increment of R log2 R; nothing else."""
    sizes = range(1, 10)
    for values, text in (
        ([F(1)] * 9, "1"),
        ([F(0)] * 9, "0"),
        ([F(-1)] * 9, "0"),
        ([F(0), F(1, 2), *[F(3, 4)] * 7], "3/4"),
        ([2 - F(3, k) for k in sizes], "2 - 3 / R"),
        ([2 - F(1, k + 1) for k in sizes], "2 - 1 / (R + 1)"),
        ([max(1 - F(2, k), F(0)) for k in sizes], "1 - 2 / R"),
        ([float(k * math.log2(k) - (k - 1) * math.log2(max(k - 1, 1))) for k in sizes], str(LAST_INCREMENT)),
        ([0.5] * 9, "1/2"),
        ([1 / 3] * 9, "1/3"),
    ):
        assert str(fit_bound(values)) == text
    for values in (
        [F(k) for k in sizes],
        [1 + F(1, k) for k in sizes],  # it falls: a larger table changes by no less
        [F(2), *[F(1)] * 8],  # the first is above
        [*[F(1)] * 4, F(1, 2), *[F(1)] * 4],  # one of the last five is below
        [1 - F(1, k * k) for k in sizes],
        [F(1) + F(1, 10**8), *[F(1)] * 8],
    ):
        assert fit_bound(values) is None
    assert str(fit_bound([*[F(1, 2)] * 4, *[F(1)] * 5])) == "1"
    assert fit_bound([*[F(1)] * 8, 1 + F(1, 10**10)]) is not None
    assert fit_bound([*[F(1)] * 8, 1 + F(1, 10**8)]) is None


def test_fractions_above_a_number_are_of_small_denominators() -> None:
    assert _simple_above(F(1, 3))[:4] == [F(1), F(1, 2), F(1, 3), F(1, 2)]
    assert _simple_above(F(1, 3))[-1] == F(20, 60)
    assert len(_simple_above(F(7, 2))) == 60
    assert all(one >= F(7, 2) for one in _simple_above(F(7, 2)))


def test_limits_of_growing_changes_are_found_and_growth_without_end_is_refused() -> None:
    rise, fall, replaced = derive(Cells((a, b), a - least(b, 10_000)))
    assert [found.claim.text for found in (rise, fall, replaced)] == ["rise <= 1", "fall <= 1", "replaced <= 2"]
    assert derive(Cells((a,), 3 * a), 2)[0].claim == Claim(Change.RISE, 6, group=2)
    approached = derive(Cells((a, b), a * a / (a + b + 1)))[0]
    assert approached.claim.bound == as_formula(1)
    with pytest.raises(InputError, match="grows with the rows, so that no noise is enough"):
        derive(Cells((a, b), a * b))
    with pytest.raises(InputError, match="has public parameters; replace them by numbers"):
        derive(Cells((a,), public("w", 0, 1) * a))
    with pytest.raises(InputError, match=r"no bound fits the rise of .*; up to 9 rows: "):
        derive(Parts(sum_over_classes(n**2)))
    nearest = derive(GINI)
    assert [str(found.nearest) for found in nearest] == [
        "[[0 0 0]] -> [[1 0 0]]: 1",
        "[[1 0 8]] -> [[0 0 8]]: 7/9",
        "[[1 0 8]] -> [[0 0 9]]: 16/9",
    ]


def test_kernels_are_written_as_text() -> None:
    def lines(shape: Any) -> list[str]:
        source = kernel_source(shape)
        return source[source.index("def score") : source.index("def fill")].strip().splitlines()[1:]

    assert lines(GINI) == [
        "    total = 0.0",
        "    sum0 = 0.0",
        "    for c in range(len(counts)):",
        "        n = float(counts[c])",
        "        total += n",
        "        sum0 = sum0 + (n * n)",
        "    return quotient(sum0, total)",
    ]
    assert lines(GAIN) == [
        "    total = 0.0",
        "    sum0 = 0.0",
        "    for c in range(len(counts)):",
        "        n = float(counts[c])",
        "        total += n",
        "    for c in range(len(counts)):",
        "        n = float(counts[c])",
        "        sum0 = sum0 + (n * math.log2(n / total) if n > 0 else 0.0)",
        "    return sum0",
    ]
    assert lines(MAX)[-2:] == ["        sum0 = max(sum0, n)", "    return sum0"]
    assert lines(FLOORED) == [
        "    return quotient((2.0 * float(counts[0])), max(((2.0 * float(counts[0])) + float(counts[1])), 50.0))"
    ]
    assert lines(Cells((a,), most(a, 0))) == ["    return max(float(counts[0]), 0.0)"]
    words = Cells((a, b), root(a) + root(b, 3) + root(a, 4) + x_log2_x(a) + at_least(a, 2) * least(a, b))
    assert lines(words) == [
        "    return (((((float(counts[0]) ** 0.5) + cube_root(float(counts[1]))) + (float(counts[0]) ** 0.25)) + "
        "x_log2_x(float(counts[0]))) + ((1.0 if float(counts[0]) >= 2.0 else 0.0) * "
        "min(float(counts[0]), float(counts[1]))))"
    ]
    assert lines(Parts(rows_of_part * 2))[3:] == ["        total += n", "    return (2.0 * total)"]
    mixed = Parts(sum_over_classes(n**2) + sum_over_classes(n / rows_of_part))
    assert [line.strip() for line in lines(mixed)].count("for c in range(len(counts)):") == 2
    information = Parts(sum_over_classes(x_log2_x(n)) - x_log2_x(rows_of_part))
    of_shares = Parts(sum_over_classes(x_log2_x(n / rows_of_part)))  # that by the rows, which is another score
    assert "sum0 = sum0 + (n * math.log2(n / total) if n > 0 else 0.0)" in kernel_source(information)
    assert "sum0 = sum0 + x_log2_x(quotient(n, total))" in kernel_source(of_shares)
    sources = "".join(kernel_source(shape) for shape, _ in DERIVED.values())
    assert hashlib.sha256(sources.encode()).hexdigest()[:12] == "2d48f0de7607"


def test_kernels_fill_in_scores_of_int64_counts() -> None:
    assert scores_of(JACCARD, np.array([[1, 3], [0, 0], [2, 0]], dtype=np.uint8)).tolist() == [0.25, 0.0, 1.0]
    assert scores_of(GINI, np.array([[[3, 1], [0, 2]]])).tolist() == [4.5]


def test_changes_of_cells_are_exact_on_small_tables_and_limits_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    shape, asked = Cells((a, b), a - b), list[tuple[list[int], int]]()
    monkeypatch.setattr(sensitivity_from_small_tables, "find_jump", lambda *_: None)

    def claimed(low: int, high: int, change: Fraction, *gaps: float, group: int = 1) -> Fraction | None:
        """The claim where the largest change is on tables of so many rows, and less on smaller ones."""
        found = Neighbours((F(low), F(0)), (F(high), F(0)), change)
        left = iter(gaps)
        monkeypatch.setattr(sensitivity_from_small_tables, "search_change", lambda *_: found)
        monkeypatch.setattr(
            sensitivity_from_small_tables,
            "climb",
            lambda *given: asked.append((given[2].tolist(), given[4])) or given[2],
        )
        monkeypatch.setattr(sensitivity_from_small_tables, "cell_gaps", lambda *_: [[next(left)]])
        derived = sensitivity_from_small_tables._derive_for_cells(shape, Change.RISE, group)
        assert derived.nearest is found
        assert (derived.claim.change, derived.claim.group) == (Change.RISE, group)
        return derived.claim.bound.constant

    large = sensitivity_from_small_tables.MOST_ATTAINED_ROWS
    assert claimed(large, large, F(7, 9), group=3) == F(7, 9)
    assert claimed(0, 1, F(-1)) == 0
    assert claimed(0, 1, F(999_999, 10**6)) == F(999_999, 10**6)
    assert asked == []
    assert claimed(5, 6, F(10**6, 10**6 + 1), 0.99, 0.9) == 1
    assert claimed(large + 1, 0, F(1), 0.99, 0.9) == 1
    assert claimed(0, large + 1, F(1), 0.99, 0.9) == 1
    assert asked == [
        ([2, 0], 1),
        ([1, 0], 0),
        ([large // 4 + 1, 0], (large + 1) // 4),
        ([large // 16 + 1, 0], (large + 1) // 16),
        ([0, 0], (large + 1) // 4),
        ([0, 0], (large + 1) // 16),
    ]
    assert claimed(large, large + 1, F(10, 11), 0.9, 0.9 - 1) == 1
    assert claimed(large, large + 1, F(909, 1000), 0.9, 0.9 - 1) == F(10, 11)
    assert claimed(large, large + 1, F(1), 0.25, -0.75) == 1
    assert claimed(large, large + 1, F(1), 1 - 0.7e-9, 1) == 1
    for gaps, refused in (((0.25, -0.74), "grows with the rows"), ((1 - 0.8e-9, 1), "jumps at a table of many rows")):
        with pytest.raises(InputError, match=refused):
            claimed(large, large + 1, F(1), *gaps)


def test_kernels_are_kept_where_a_file_can_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    written: list[Any] = []
    monkeypatch.setattr(formula_compiler, "cache_folder", lambda name: tmp_path / name)
    for able in (True, False):
        monkeypatch.setattr(
            formula_compiler, "write_cached", lambda path, text, able=able: written.append((path, text)) or able
        )
        path = tmp_path / "kernels" / f"{hashlib.sha256(b'a text').hexdigest()}.py"
        assert formula_compiler._source_file("a text") == (path if able else None)
    assert written == [(path, "a text")] * 2


def test_a_file_of_the_cache_is_written_whole_where_it_can_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder("proofs") == tmp_path / "dpframework" / "proofs"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder("proofs") == Path.home() / ".cache" / "dpframework" / "proofs"
    folder = tmp_path / "new" / "folder"
    for name, text in (("a.py", "one"), ("b.py", "two"), ("a.py", "three"), ("a.py", "three")):
        assert write_cached(folder / name, text)
    assert {file.name: file.read_text() for file in folder.iterdir()} == {"a.py": "three", "b.py": "two"}
    assert not write_cached(folder / "a.py" / "c.py", "below a file")


def test_solvers_are_asked_by_name_and_for_their_usual_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solvers, "_by_z3", lambda text, effort: (("z3", text, effort), None))
    monkeypatch.setattr(solvers, "_by_cvc5", lambda text, effort: ("cvc5", text, effort))
    for name in solvers.SOLVERS:
        assert solvers.solve(name, "goal") == (name, "goal", 1)
        assert solvers.solve(name, "goal", 7) == (name, "goal", 7)
    asked: list[Any] = []
    monkeypatch.setattr(solvers, "_by_z3", lambda *given: asked.append(given) or ("unknown", None))
    assert solvers.model("goal", ("x",)) is None
    assert asked == [("goal", 1)]
