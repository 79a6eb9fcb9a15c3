"""Limits, exactly at their edge: as much as one says is accepted, one more is refused in a sentence that names it.

Where to make so much would take long, a small limit stands in for the real one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
from dpframework_distance.metric import _require_asked
from dpframework_greedy.language import Language
from dpframework_tables import SyntheticTable
from dpframework_trees.tree_pair_counts import pair_work, pairs_misfit
from dpframework_trees.tree_weights import require_feasible

import dpframework as dpf
from dpframework.basics.marginals_workload_noise_and_errors import Workload
from dpframework.facts.expression_operands_and_domains import labels_of
from dpframework.facts.expression_parser import parse
from dpframework.facts.public_lookup_tables import as_public_table
from dpframework.facts.read_options import ReadOptions
from dpframework.facts.unit_aggregates import aggregate
from dpframework.formulas.formula_and_claim_json import read_formula
from dpframework.mechanisms.block_knorm import BlockNorm
from dpframework.mechanisms.knorm import KNorm
from dpframework.queries import Norm, QueryFacts, Sensitivity
from dpframework.queries.counts import Marginals
from dpframework.queries.marginal_residuals import Residuals
from dpframework.queries.ranks import QuantileScores
from dpframework.tables.table_builder import require_public_counts


@attrs.frozen
class Limit:
    """What makes as much as is asked for, the most that is accepted, and how a refusal begins.

    Attributes
    ----------
    make
        Makes something of a size, or raises an InputError.
    most
        The largest size.
    words
        Words of the refusal.
    stands_in
        The constant that a small number stands in for; none if the limit is the real one.
    small
        That number, by default the largest size.
    """

    make: Callable[[int], Any]
    most: int
    words: str
    stands_in: str = ""
    small: int = 0


ABOUT = "dpframework.facts"
TEN = dpf.Numeric("n", 0, 10, bins=10)
FEW = dpf.Schema([dpf.Categorical("t", ["a", "b", "c"]), TEN, dpf.Boolean("ill")])


def texts(number: int) -> list[str]:
    return [f"t{k}" for k in range(number)]


def of_size(number: int) -> dpf.Attribute:
    return dpf.Numeric("n", 0, number, bins=number)


def derived(value: str, columns: list[Any], **options: Any) -> Any:
    return dpf.Schema(columns, derive=[dpf.derive("d", value, **options)])["d"]


def planned(miner: str, number: int, **parameters: Any) -> Any:
    """Plan a miner on a schema whose attribute n has so many values."""
    schema = dpf.Schema([of_size(number), dpf.Boolean("ill"), dpf.Numeric("x", 0, 1, bins=2)])
    study = dpf.Study(schema, epsilon=1)
    study.add("m", dpf.miner(miner, epsilon=1, **parameters))
    return study.plan()


def residuals(weight: int) -> Residuals:
    return Residuals([dpf.Categorical("t", ["a", "b", "c"])], [(0,)], [weight])


def nested(depth: int) -> list[Any]:
    form: list[Any] = ["constant", "1", []]
    for _ in range(depth):
        form = ["root", 2, [form]]
    return form


def language(left: int, right: int) -> Language:
    schema = dpf.Schema(
        [
            dpf.Categorical("l", texts(left), view="left"),
            dpf.Categorical("r", texts(right), view="right"),
        ]
    )
    return Language.of_schema(schema)


def with_histograms(norm: Norm, *sizes: int) -> QueryFacts:
    declared = Sensitivity(norm, 1, 2, fall=0, source="a test")
    return QueryFacts("q", "q", (), True, sum(sizes), [declared], histograms=sizes)


LIMITS = {
    "keys of a public table": Limit(
        lambda n: as_public_table({str(k): k for k in range(n)}), 3, "more than 3 keys",
        f"{ABOUT}.public_lookup_tables.MOST_KEYS",
    ),
    "letters of an expression": Limit(lambda n: parse("1".rjust(n)), 4_000, "more than 4,000 characters"),
    "letters of an aggregate": Limit(lambda n: aggregate("count()".rjust(n)), 4_000, "more than 4,000 characters"),
    "lines above a table": Limit(lambda n: ReadOptions(skip=n), 1_000, "from 0 to 1,000"),
    "a power": Limit(lambda n: derived(f"n ** {n}", [TEN]), 8, "from 1 to 8"),
    "labels": Limit(lambda n: labels_of(texts(n)), 10_000, "makes more than 10,000 labels"),
    "texts of two columns": Limit(
        lambda n: derived("t + s", [dpf.Categorical("t", texts(n)), dpf.Categorical("s", ["a", "b"])]),
        5_000,
        "makes more than 10,000 labels",
    ),
    "texts of numbers": Limit(
        lambda n: derived("text(floor(n))", [dpf.Numeric("n", 1, n, bins=2)]), 10_000, "whole numbers in a small range"
    ),
    "values": Limit(
        lambda n: dpf.Categorical("t", texts(n)), 4, "more than 4 values", f"{ABOUT}.attributes.MOST_CODES"
    ),
    "bins": Limit(of_size, 4, "bins must be at most 4", f"{ABOUT}.attributes.MOST_CODES"),
    "bins between cuts": Limit(
        lambda n: dpf.Numeric("n", 0, n, cuts=range(1, n)), 4, "more than 4 bins", f"{ABOUT}.attributes.MOST_CODES"
    ),
    "rows of a table": Limit(
        lambda n: require_public_counts(FEW, n, "t"), 2**31 - 1, "more rows than the 2,147,483,647"
    ),
    "groups": Limit(
        lambda n: planned("mean", n, attribute="x", by=["n"]), 4, "by makes 5 groups, more than 4",
        "dpframework.basics.filter_and_group_miner_base.MOST_GROUPS",
    ),
    "attributes of a cross table": Limit(
        lambda n: planned("crosstab", 4, attributes=["n", "ill", "x", "more"][:n]), 3, "has two or three"
    ),
    "cells of a cross table": Limit(
        lambda n: planned("crosstab", n, attributes=["n", "ill"]), 4, "cells, more than 8",
        "dpframework.basics.cell_count_miner_base.MOST_CODES", 8,
    ),
    "cells of a marginal": Limit(
        lambda n: planned("marginals", n, of=[["n", "ill"]]), 4, "cells, more than 8",
        "dpframework.basics.marginals_miner.MOST_CODES", 8,
    ),
    "values of groups": Limit(
        lambda n: planned("top-k", n, attribute="ill", by=["n"]), 4, "cells, more than 8",
        "dpframework.basics.share_and_top_k_miners.MOST_CODES", 8,
    ),
    "marginals": Limit(
        lambda n: Workload((TEN,) * 4, {(k,): 1.0 for k in range(n)}, False), 3, "are more than 3",
        "dpframework.basics.marginals_workload_noise_and_errors.MOST_SETS",
    ),
    "weights of residuals": Limit(lambda n: residuals(3 * n), (1 << 20) // 9, "must be from 1 to 1,048,576"),
    "operations of a formula": Limit(lambda n: read_formula(nested(n)), 100, "more than 100 operations"),
    "distances": Limit(
        lambda n: _require_asked(n, large=False), 3, "distances take", "dpframework_distance.metric.MOST_PAIRS"
    ),
    "pairs of values": Limit(
        lambda n: language(n, 2), 3, "8 pairs of values and", "dpframework_greedy.language.MOST_CELLS", 6
    ),
    "pairs of literals": Limit(
        lambda n: language(n, 2), 3, "and 16 pairs of literals", "dpframework_greedy.language.MOST_CANDIDATES", 12
    ),
    "cells of a model": Limit(lambda n: SyntheticTable(1, max_cells=n), 1 << 24, "at most 16,777,216"),
    "work of the exact sampler": Limit(lambda n: require_feasible(n, 1), 4 * 10**8, "lower the depth"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_as_much_as_a_limit_says_is_accepted_and_one_more_is_not(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = LIMITS[name]
    if limit.stands_in:
        monkeypatch.setattr(limit.stands_in, limit.small or limit.most)
    limit.make(limit.most)
    with pytest.raises(dpf.InputError, match=limit.words):
        limit.make(limit.most + 1)


def test_a_mechanism_serves_as_many_dimensions_as_it_says() -> None:
    blocks, knorm = BlockNorm(1), KNorm(1)
    assert blocks.misfit(with_histograms(Norm.BLOCKS, 400, 600)) is None
    assert "1000 dimensions at most" in str(blocks.misfit(with_histograms(Norm.BLOCKS, 401, 600)))
    assert knorm.misfit(with_histograms(Norm.HISTOGRAMS, 401, 600)) is None  # one dimension less for each histogram
    assert "1000 dimensions at most" in str(knorm.misfit(with_histograms(Norm.HISTOGRAMS, 402, 600)))
    assert "two cells or more" in str(knorm.misfit(with_histograms(Norm.HISTOGRAMS, 1, 3)))
    assert knorm.misfit(with_histograms(Norm.HISTOGRAMS, 2, 3)) is None


@pytest.mark.parametrize(
    ("lower", "upper", "steps"),
    [(0, 4_096, 4_096), (0, 4_097, 4_096), (0, 7, 7), (0.5, 7, 4_096), (0, 7.5, 4_096), (-3, 1, 4)],
)
def test_the_grid_of_a_quantile_has_whole_numbers_or_4096_steps(lower: float, upper: float, steps: int) -> None:
    scores = QuantileScores(dpf.Numeric("n", lower, upper, bins=2))
    assert scores.steps == steps
    assert scores.answer_length == steps + 1
    points = scores.candidates()
    assert (len(points), points[0], points[-1]) == (steps + 1, lower, upper)


def test_a_query_names_up_to_four_attributes_and_counts_more() -> None:
    of = [dpf.Boolean(name) for name in "abcde"]
    assert Marginals(of[:1]).text == "histogram of a"
    assert Marginals(of[:4]).text == "histograms of a, b, c, d"
    assert Marginals(of).text == "histograms of 5 attributes"
    assert Residuals(of[:4], [(0,)], [1]).text == "residuals of 1 marginals of a, b, c, d"
    assert Residuals(of, [(0,), (1,)], [1, 1]).text == "residuals of 2 marginals of 5 attributes"


@pytest.mark.parametrize(
    ("first", "second", "depth", "misfit"),
    [
        (10, 20, 2, None),
        (10, 20, 3, "pairs of trees of up to 2 levels, not 3"),
        (50_000, 2, 1, None),
        (50_001, 2, 1, "takes up to 50000 tests of a view, not 50001"),
        (2, 50_001, 1, "takes up to 50000 tests of a view, not 50001"),
        (4_095, 2_047, 1, None),
        (4_095, 2_048, 1, "it would keep 8.4e+06 counts for 4095 and 2048 tests; 8.4e+06 are allowed"),
        (160, 34, 2, "it would look at 2.4e+09 pairs of tests for 160 and 34; 2.1e+09 are allowed"),
    ],
)
def test_pairs_of_trees_that_can_be_drawn(first: int, second: int, depth: int, misfit: str | None) -> None:
    found = pairs_misfit(first, second, depth)
    assert found is None if misfit is None else misfit in str(found)
    if misfit is None:
        assert pairs_misfit(first, second, depth, work=pair_work(first, second, depth)) is None
        assert "it would look at" in str(pairs_misfit(first, second, depth, work=pair_work(first, second, depth) - 1))
