"""The goals of many claims, by the digests of their text: what solvers proved is what is asked of them now."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from scored_formulas import (
    COUNTS,
    DERIVED,
    GINI,
    HALF,
    JACCARD,
    MATCH,
    MAX,
    PAIR_GAIN,
    PAIR_PRODUCT,
    TWOING,
    VALUE,
    a,
    b,
)

from dpframework.formulas import (
    LAST_INCREMENT,
    Adds,
    Cells,
    Change,
    Claim,
    Parts,
    as_formula,
    largest_over_classes,
    n,
    public,
    rows,
    rows_of_part,
    sum_over_classes,
    x_log2_x,
)
from dpframework.formulas.smt_goals_for_cell_scores import cell_goals, range_goals
from dpframework.formulas.smt_goals_for_part_scores import FACTS, induction_goals, part_goals, replacement_goal
from dpframework.formulas.smt_goals_for_totals import outer_goals
from dpframework.formulas.smt_goals_for_vectors import norm_goals

CHANGES = (Change.RISE, Change.FALL, Change.REPLACED)


def of(goals: Iterable[str]) -> tuple[int, str]:
    """How many goals there are, and the start of their digest."""
    listed = list(goals)
    return len(listed), hashlib.sha256("".join(listed).encode()).hexdigest()[:12]


LOW, HIGH = public("low", 0, 1), public("high", "1/2", 1)
WITHIN = Cells((a, b), LOW * a - HIGH * b, ((LOW, HIGH), (LOW / 2, HIGH / 3)))
KNOWN = {GINI.body.leaves("sum")[0]: FACTS, MAX.body.leaves("largest")[0]: FACTS[:1]}  # type: ignore[arg-type]
TWO_SUMS = Parts(sum_over_classes(n**2) / rows_of_part + largest_over_classes(n) / (rows_of_part + 2))


def written() -> dict[str, tuple[int, str]]:
    """The goals of many claims, whose text a change of a rule changes."""
    found = {}
    for name, (shape, bounds) in DERIVED.items():
        for change, bound in zip(CHANGES, bounds, strict=True):
            claim = Claim(change, bound)
            if isinstance(shape, Cells):
                found[f"{name}, {change}"] = of(cell_goals(shape, claim, False))
            elif change is not Change.REPLACED:
                found[f"{name}, {change}"] = of(part_goals(shape, claim, KNOWN, False))
    for name, cell_shape, claim in (
        ("two rows", JACCARD, Claim("fall", HALF, group=2)),
        ("two rows replaced", MATCH, Claim("replaced", 2, group=2)),
        ("public numbers", WITHIN, Claim("rise", 1)),
    ):
        for whole in (False, True):
            found[f"{name}, {whole}"] = of(cell_goals(cell_shape, claim, whole))
            found[f"{name} in a range, {whole}"] = of(range_goals(cell_shape, claim, whole))
    for part_shape in (GINI, MAX, TWO_SUMS):
        found[f"{part_shape}, whole"] = of(part_goals(part_shape, Claim("rise", 2 - 1 / rows), KNOWN, True))
    for outer in (TWOING, PAIR_GAIN, PAIR_PRODUCT):
        for change in CHANGES:
            found[f"{outer.text}, {change}"] = of(outer_goals(outer, Claim(change, 1)))
    for vector in (COUNTS, VALUE, Adds((LOW, 2 * LOW + HIGH))):
        for change in (Change.L1, Change.SQUARED_L2, Change.LINF):
            for replaced in (False, True):
                claim = Claim(change, 2, replaced=replaced)
                found[f"{vector.text}, {claim.text}"] = of(norm_goals(vector, claim))
    for aggregate in (*KNOWN, sum_over_classes(x_log2_x(n)), largest_over_classes(n**2 + 1)):
        found[f"induction over {aggregate}"] = of(induction_goals(aggregate, FACTS[2], FACTS[:2]))
    for bound in (2 - 2 / rows, LAST_INCREMENT):
        found[f"a replacement of {bound}"] = of([replacement_goal(as_formula(1), bound, bound + 1)])
    return found


WRITTEN: dict[str, tuple[int, str]] = {
    "gini, rise": (5, "f819cfe1231f"),
    "gini, fall": (5, "986fb934a899"),
    "max, rise": (1, "921c10fa79f2"),
    "max, fall": (1, "c3cae7dea7c4"),
    "norm, rise": (2, "58a94c980b3f"),
    "norm, fall": (2, "a2072000c46d"),
    "information gain, rise": (1, "adff13844404"),
    "information gain, fall": (1, "0000e567e146"),
    "jaccard, rise": (9, "e99b9fef5a51"),
    "jaccard, fall": (9, "825f5a079fd1"),
    "jaccard, replaced": (25, "fcbda455cf92"),
    "f-measure, rise": (9, "4a1496447825"),
    "f-measure, fall": (9, "18dfe9a95fa8"),
    "f-measure, replaced": (25, "cce3a11a4de5"),
    "f-measure with a floor, rise": (13, "233113658d12"),
    "f-measure with a floor, fall": (13, "e6a2e5f76f31"),
    "f-measure with a floor, replaced": (49, "ef73f3004658"),
    "surplus, rise": (2, "37b6e3c8fe4f"),
    "surplus, fall": (2, "76b8d7e5501d"),
    "surplus, replaced": (6, "0b327704fe99"),
    "weighted errors, rise": (2, "5535a04fa3cb"),
    "weighted errors, fall": (2, "f01834559691"),
    "weighted errors, replaced": (6, "2adcd1a682fc"),
    "Piatetsky-Shapiro, rise": (2, "723d56f1483a"),
    "Piatetsky-Shapiro, fall": (2, "891a87c688d1"),
    "Piatetsky-Shapiro, replaced": (6, "704a7938895c"),
    "association, rise": (17, "768b0f83dbd4"),
    "association, fall": (17, "92351162c1be"),
    "association, replaced": (81, "ad29a7f561d3"),
    "a denominator of halves, rise": (9, "f105939c912f"),
    "a denominator of halves, fall": (9, "6e06cd60df3f"),
    "a denominator of halves, replaced": (25, "9a09f9d41857"),
    "threshold, rise": (2, "d010cbe62555"),
    "threshold, fall": (2, "b003b2bdee24"),
    "threshold, replaced": (6, "4bcc8f30d3e8"),
    "Jaccard with a floor, rise": (9, "946cf210d69e"),
    "Jaccard with a floor, fall": (9, "1edbe021dc03"),
    "Jaccard with a floor, replaced": (25, "28a5ab379572"),
    "two rows, False": (5, "6cd6d38a6725"),
    "two rows in a range, False": (5, "664b521ceb22"),
    "two rows, True": (5, "7cc192a29cb5"),
    "two rows in a range, True": (5, "0616e1b9fd5a"),
    "two rows replaced, False": (1, "c4065d099f0f"),
    "two rows replaced in a range, False": (2, "685af7f8bae4"),
    "two rows replaced, True": (1, "ea325dd68e84"),
    "two rows replaced in a range, True": (2, "b47cfd9c7d18"),
    "public numbers, False": (2, "afb625645f52"),
    "public numbers in a range, False": (2, "37460ac0bf6b"),
    "public numbers, True": (2, "8456a939d228"),
    "public numbers in a range, True": (2, "e219990d8647"),
    "Parts(body=<sum(n^2) / N>), whole": (5, "c8b85632c4ca"),
    "Parts(body=<largest(n)>), whole": (1, "3ac08e50307f"),
    "Parts(body=<sum(n^2) / N + largest(n) / (N + 2)>), whole": (18, "6fa13ba98a84"),
    "(first - second) / 2, rise": (8, "a1066beb4d32"),
    "(first - second) / 2, fall": (8, "dd7d93a55e3d"),
    "(first - second) / 2, replaced": (32, "51fb445ed1b9"),
    "(first + second - sizes) / 2, rise": (16, "3306d8aa3114"),
    "(first + second - sizes) / 2, fall": (16, "af63256ae135"),
    "(first + second - sizes) / 2, replaced": (128, "0a7801e4c6d0"),
    "first * (1 + second / N) / 2, rise": (32, "8342f5b1a6a3"),
    "first * (1 + second / N) / 2, fall": (32, "24b2366b379b"),
    "first * (1 + second / N) / 2, replaced": (128, "a6a72874d56f"),
    "sum over rows of (x, y), l1 <= 2": (1, "ab8fa5b21bbc"),
    "sum over rows of (x, y), l1 when replaced <= 2": (1, "3e182cb33cf3"),
    "sum over rows of (x, y), squared-l2 <= 2": (1, "4e32f5bfcb72"),
    "sum over rows of (x, y), squared-l2 when replaced <= 2": (1, "78c1b52a8c14"),
    "sum over rows of (x, y), linf <= 2": (2, "1e159cd77fe4"),
    "sum over rows of (x, y), linf when replaced <= 2": (2, "031021bc1d1e"),
    "sum over rows of (value), l1 <= 2": (1, "3e4ea4c50a76"),
    "sum over rows of (value), l1 when replaced <= 2": (1, "0a2762f062aa"),
    "sum over rows of (value), squared-l2 <= 2": (1, "6468ff86a8e4"),
    "sum over rows of (value), squared-l2 when replaced <= 2": (1, "ad81757c98be"),
    "sum over rows of (value), linf <= 2": (1, "3e4ea4c50a76"),
    "sum over rows of (value), linf when replaced <= 2": (1, "0a2762f062aa"),
    "sum over rows of (low, 2 low + high), l1 <= 2": (1, "86350130a709"),
    "sum over rows of (low, 2 low + high), l1 when replaced <= 2": (1, "d6c04f76c285"),
    "sum over rows of (low, 2 low + high), squared-l2 <= 2": (1, "4143d8e940dc"),
    "sum over rows of (low, 2 low + high), squared-l2 when replaced <= 2": (1, "fb85afe1876f"),
    "sum over rows of (low, 2 low + high), linf <= 2": (2, "0097182ab3cb"),
    "sum over rows of (low, 2 low + high), linf when replaced <= 2": (2, "75eb712c1ed0"),
    "induction over sum(n^2)": (2, "27e9b1ddd44a"),
    "induction over largest(n)": (2, "82470f8ba5e5"),
    "induction over sum(n log2 n)": (2, "2a2c441c49f2"),
    "induction over largest(n^2 + 1)": (2, "fcb7df334161"),
    "a replacement of 2 - 2 / R": (1, "26b4ed0c4496"),
    "a replacement of R log2 R - (R - 1) log2 (R - 1)": (1, "a73acc5708ef"),
}


def test_goals_are_written_as_they_were_proved() -> None:
    """A rule that is changed on purpose changes digests: look at its goals before you write new ones here."""
    found = written()
    assert {name: told for name, told in found.items() if WRITTEN.get(name) != told} == {}
    assert list(found) == list(WRITTEN)
