"""Scores of matches: their sensitivity on all small tables, and each by its definition."""

from __future__ import annotations

import functools
import itertools
from fractions import Fraction
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dpframework as dpf
from dpframework.facts import And, Below, Description, Equals, Not
from dpframework.formulas import Cells
from dpframework.formulas.evaluation import value_of
from dpframework.lab.evaluation.readable_rows_and_folds import columns_of
from dpframework.redescriptions import Match, MatchScores, binary_tests, common_row_counts
from dpframework.redescriptions.affordable_matches_and_row_cap import budget_of_choices, choices_carried, rows_meant
from dpframework.redescriptions.match_scores import DISTINCT, GIVEN_CAP
from dpframework.tables.in_process_engines import BlockEngine
from dpframework.verify.conformance_suites import QueryConformance

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("wolf", view="left"),
        dpf.Categorical("zone", ["north", "middle", "south"], view="left", missing=True),
        dpf.Boolean("snow", view="right"),
        dpf.Numeric("rain", 0, 8, cuts=[3, 5], view="right", missing=True),
    ]
)
LEFT, RIGHT = SCHEMA.view(dpf.View.LEFT), SCHEMA.view(dpf.View.RIGHT)
KINDS = list(itertools.product(*(range(a.size) for a in SCHEMA)))
KNOWN = (And([Equals("wolf", "true"), Not(Below("rain", 3))]), And([Not(Equals("wolf", "true")), Below("rain", 3)]))
QUERIES = {
    f"{float(w):.1f}{', cap' if cap else ''}{', known' if known else ''}": (
        MatchScores(LEFT, RIGHT, w, cap),
        SCHEMA,
        {"known": known} if known else {},
    )
    for w, cap, known in (
        (Fraction(1, 2), None, ()),
        (Fraction(1, 2), 3, KNOWN),
        (Fraction(3, 10), None, KNOWN),
        (Fraction(4, 5), 4, KNOWN[:1]),
        (Fraction(1, 10), None, KNOWN),
    )
}
FEW = MatchScores(LEFT, RIGHT, "0.4", most=4)
GIVEN = MatchScores(LEFT, RIGHT, "0.4", 6, given_cap=True)


class TestMatchScores(QueryConformance):
    queries: ClassVar = {
        **QUERIES,
        "few rows": (FEW, SCHEMA, {}),
        "few rows, known": (attrs.evolve(FEW, target=Fraction(7, 10), cap=2), SCHEMA, {"known": KNOWN[:1]}),
        **{f"cap of {cap}, given": (GIVEN, SCHEMA, {"known": KNOWN, "cap": cap}) for cap in (0, 1, 5, 10**6)},
    }
    pairs = 120
    # a match gains nothing there: what is left is the loss of rows apart, or the nearness to what is known
    min_tightness: ClassVar = {"cap of 0, given": 0.4}


@pytest.mark.parametrize(("labels", "tested"), [(["x"], []), (["x", "y"], ["y"]), (["x", "y", "z"], ["x", "y", "z"])])
def test_no_test_holds_for_all_or_is_the_negation_of_another(labels: list[str], tested: list[str]) -> None:
    for missing in (False, True):
        assert binary_tests(dpf.Categorical("a", labels, missing=missing)) == [Equals("a", label) for label in tested]


@pytest.mark.parametrize(
    ("changed", "counts", "parameters", "score"),
    [
        ({}, (9, 5, 4), {}, Fraction(3, 5) * 5 - Fraction(2, 5) * 4),  # the smaller of 9 and 5
        ({}, (5, 9, 4), {}, Fraction(3, 5) * 5 - Fraction(2, 5) * 4),
        ({"cap": 3}, (9, 5, 4), {}, Fraction(3, 5) * 3 - Fraction(2, 5) * 4),
        ({"cap": 7, "given_cap": True}, (9, 8, 1), {"cap": 2}, Fraction(3, 5) * 2 - Fraction(2, 5)),
        ({"cap": 7, "given_cap": True}, (9, 8, 1), {"cap": 10}, Fraction(3, 5) * 7 - Fraction(2, 5)),
        ({"most": 10}, (9, 8, 1), {}, Fraction(2, 5) * (10 - 9) - Fraction(2, 5)),
        ({"most": 10}, (12, 20, 0), {}, Fraction(2, 5) * (10 - 12)),
    ],
)
def test_the_score_of_a_match_is_the_formula_that_is_proved(
    changed: dict[str, Any], counts: tuple[int, ...], parameters: dict[str, int], score: Fraction
) -> None:
    """From the rows that both sides, neither and one of them hold for, at a Jaccard index of 2/5."""
    query = MatchScores(LEFT, RIGHT, "0.4", **changed)
    of_match, of_known = query.scored_formulas
    assert isinstance(of_match.shape, Cells)
    values = dict(zip(of_match.shape.cells, counts, strict=True))
    assert value_of(of_match.shape.body, {**values, GIVEN_CAP: parameters.get("cap")}, exact=True) == score
    assert of_match.scorer is not None
    assert of_match.scorer(np.array(counts), parameters) == pytest.approx(float(score), abs=1e-12)
    # a known set: k (d |M or S| - |M and S|), with k the smaller of .6 / .7 and .4 / .3, which is the former
    assert isinstance(of_known.shape, Cells)
    assert of_known.scorer is not None
    values = dict(zip(of_known.shape.cells, (4, 5, 6), strict=True))
    term = Fraction(6, 7) * (Fraction(7, 10) * 15 - 4)
    assert value_of(of_known.shape.body, values, exact=True) == term
    assert of_known.scorer(np.array([4, 5, 6]), {}) == pytest.approx(float(term))


def table_of(rows: Any) -> dpf.Table:
    codes = np.array([KINDS[k] for k in rows], dtype=np.int64).reshape(len(rows), len(SCHEMA)).T
    return dpf.Table.from_codes(SCHEMA, codes)


def scored(query: MatchScores, table: dpf.Table, **inputs: Any) -> np.ndarray:
    engine = dpf.InMemory()
    return query.evaluate(engine, engine.load(table), **inputs)


def defined(query: MatchScores, match: Match, table: dpf.Table, known: tuple[Description, ...]) -> float:
    """Return a match's score, by its definition."""
    columns, w, d = columns_of(table), float(query.target), float(DISTINCT)
    left, right = match.sides
    none = Not(left), Not(right)
    both, neither = left.holds(columns) & right.holds(columns), none[0].holds(columns) & none[1].holds(columns)
    apart = (left.holds(columns) ^ right.holds(columns)) | (none[0].holds(columns) ^ none[1].holds(columns))
    score = (1 - w) * min(both.sum(), neither.sum(), query.cap or np.inf) - w * apart.sum()
    for described in known:
        other = described.holds(columns)
        for rows in (both, neither):
            k = min((1 - w) / d, w / (1 - d))
            score = min(score, k * (d * (rows | other).sum() - (rows & other).sum()))
    return float(score)


@pytest.mark.parametrize("name", QUERIES)
def test_each_score_is_the_one_that_is_derived(name: str) -> None:
    query, _, inputs = QUERIES[name]
    table = table_of(np.random.default_rng(1).integers(0, len(KINDS), 60))
    found = scored(query, table, **inputs)
    matches = query.candidates()
    assert len(found) == len(matches) == query.answer_length == 2 * (1 + 3) * (1 + 2)
    expected = [defined(query, match, table, inputs.get("known", ())) for match in matches]
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("bits", [0, 5, 256])
def test_scores_where_several_attributes_of_a_view_may_be_missing(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common_row_counts, "MOST_AS_BITS", bits)
    schema = dpf.Schema(
        [
            dpf.Categorical("sea", ["a", "b", "c"], view="left", missing=True),
            dpf.Boolean("one", view="left"),
            dpf.Boolean("wolf", view="left", missing=True),
            dpf.Numeric("rain", 0, 8, cuts=[1, 3, 5], view="right", missing=True),
            dpf.Boolean("snow", view="right", missing=True),
        ]
    )
    query = MatchScores(schema.view("left"), schema.view("right"), "0.4", 11)
    rng = np.random.default_rng(4)
    codes = np.array([rng.integers(0, a.size, 90) for a in schema])
    wolf, rain, snow = 2, 3, 4
    codes[rain, 10:] = np.where(codes[wolf, 10:] == 1, codes[snow, 10:] % 2, 2 + codes[snow, 10:] % 2)
    table = dpf.Table.from_codes(schema, codes)  # most matches of wolves and rain are no news, where wolves are known
    known = (Equals("wolf", "true"), Not(Below("rain", 3)))
    for sets in ((), known):
        expected = [defined(query, match, table, sets) for match in query.candidates()]
        assert scored(query, table, known=sets) == pytest.approx(expected, abs=1e-9)
    assert [side.number for side in query._sides] == [5 + 2 + 1, 4 + 2 + 1]


@pytest.mark.parametrize("name", QUERIES)
def test_a_row_moves_scores_apart_by_exactly_one(name: str) -> None:
    """Every row, added to random tables of up to 30 rows: rises, falls and spread are those declared, and no more."""
    query, _, inputs = QUERIES[name]
    rng = np.random.default_rng(2)
    rises, falls, spreads, replaced = [], [], [], []
    for _ in range(5):
        pool = rng.choice(len(KINDS), rng.integers(1, 4))
        rows = list(rng.choice(pool, rng.integers(0, 30)))
        before = scored(query, table_of(rows), **inputs)
        after = [scored(query, table_of([*rows, more]), **inputs) for more in range(len(KINDS))]
        changes = np.array(after) - before
        rises.append(changes.max())
        falls.append(-changes.min())
        spreads.append(np.ptp(changes, axis=1).max())
        replaced.append(max(np.abs(one - other).max() for one, other in itertools.combinations(after[::3], 2)))
    (declared,) = query.sensitivities
    assert [max(rises), max(falls)] == pytest.approx([float(declared.rise), float(declared.fall)])
    assert max(spreads) == pytest.approx(1)
    assert declared.spread.add_or_remove_one == 1
    assert max(replaced) == pytest.approx(1)
    assert declared.spread.replace_one == 2
    assert declared.replace_one == 1


def test_a_missing_value_is_in_no_side_of_a_match() -> None:
    match = Match(Equals("zone", "north"), Below("rain", 3), True)
    rain_missing = SCHEMA["rain"].missing_code
    rows = [k for k, kind in enumerate(KINDS) if kind[3] == rain_missing]
    columns = columns_of(table_of(rows))
    assert not any(part.holds(columns).any() for part in match.parts)
    assert [str(test) for test in binary_tests(SCHEMA["zone"])] == ["zone = north", "zone = middle", "zone = south"]


def test_parts_of_a_match_are_the_rows_of_both_sides_and_of_neither() -> None:
    columns = columns_of(table_of(range(len(KINDS))))
    for match in MatchScores(LEFT, RIGHT).candidates():
        left, right = match.sides
        both, neither = (part.holds(columns).tolist() for part in match.parts)
        assert both == (left.holds(columns) & right.holds(columns)).tolist()
        assert neither == (Not(left).holds(columns) & Not(right).holds(columns)).tolist()


def test_views_that_share_an_attribute_match_it_with_others_only() -> None:
    query = MatchScores(LEFT, [SCHEMA["wolf"], *RIGHT])
    matches = query.candidates()
    assert all(match.left.attribute != match.right.attribute for match in matches)
    assert len(matches) == 2 * (4 * 4 - 1)
    with pytest.raises(dpf.InputError, match="no two attributes"):
        MatchScores([SCHEMA["wolf"]], [SCHEMA["wolf"]])


def test_a_positive_score_says_that_the_index_is_above_the_target_for_the_match_and_its_complement() -> None:
    table = table_of(np.random.default_rng(5).choice([0, 17, 40, 60], 80))
    for target in ("0.3", "0.5", "0.7"):
        query = MatchScores(LEFT, RIGHT, target)
        for match, score in zip(query.candidates(), scored(query, table), strict=True):
            both, neither = (part.holds(columns_of(table)).sum() for part in match.parts)
            apart = ((1 - query.target) * min(both, neither) - Fraction(score).limit_denominator(1000)) / query.target
            above = all(rows > query.target * (rows + apart) for rows in (both, neither))
            assert (score > 1e-9) == above


@pytest.mark.parametrize("target", [Fraction(1, 2), Fraction(3, 10), Fraction(4, 5), Fraction(1, 10)])
@pytest.mark.parametrize("shared", [68, 72])
@pytest.mark.parametrize(("wolf", "snow"), list(itertools.product((0, 1), repeat=2)))
def test_a_match_is_news_up_to_an_index_of_seven_tenths(wolf: int, snow: int, shared: int, target: Fraction) -> None:
    """Of its rows, or those of its complement, and those known, together 100, this many are in both."""
    left, right = Equals("wolf", "true"), Equals("snow", "true")
    known = And([left if wolf else Not(left), Not(Below("rain", 3))])
    dry, wet = (KINDS.index((wolf, 0, snow, rain)) for rain in (0, 2))
    other = KINDS.index((1 - wolf, 0, 1 - snow, 0))
    query = MatchScores(LEFT, RIGHT, target)
    scores = scored(query, table_of([wet] * shared + [dry] * (100 - shared) + [other] * 100), known=(known,))
    match = next(k for k, one in enumerate(query.candidates()) if one == Match(left, right, wolf != snow))
    w, d = float(target), 0.7
    assert scores[match] == pytest.approx(min((1 - w) / d, w / (1 - d)) * (70 - shared))


def test_more_budget_carries_more_choices_and_at_least_one() -> None:
    carried = [choices_carried(budget, 10**5, most=9) for budget in (0, 2.5, 250, 625, 2_500)]
    assert carried == [1, 1, 2, 4, 9]


@pytest.mark.parametrize("candidates", [1, 2, 100, 280_000])
def test_a_number_of_choices_is_carried_from_its_budget_on(candidates: int) -> None:
    for number in (2, 3, 9):
        budget = budget_of_choices(number, candidates)
        below, above = (choices_carried(share * budget, candidates, most=20) for share in (0.9999, 1.0001))
        assert (below, above) == (number - 1, number)


def test_how_many_rows_are_meant() -> None:
    def meant(**rows: int) -> int:
        return rows_meant(dpf.Schema(list(SCHEMA), **rows))

    assert [meant(), meant(rows=7), meant(rows=20_000), meant(rows=7, max_rows=9)] == [2_500, 7, 20_000, 7]
    assert [meant(max_rows=n) for n in (9_999, 10_000, 10_001)] == [9_999, 10_000, 10_000]


@pytest.mark.parametrize("candidates", [0, 1, 2, 1000])
def test_choices_are_as_many_as_leave_each_near_the_best(candidates: int) -> None:
    """ln(m) / e rows of the best by the share e of each: eight in a hundred of the rows."""
    for epsilon in (0.02, 0.2, 0.7, 3):
        carried = choices_carried(1000 * epsilon, candidates, most=40)
        assert carried == min(40, max(1, round(80 * epsilon / np.log(max(candidates, 2)))))


def test_matches_are_made_when_they_are_asked_for() -> None:
    query = MatchScores(LEFT, [SCHEMA["wolf"], *RIGHT], "0.3")
    matches = query.candidates()
    left, right = query.tests
    pairs = [
        Match(one, other, opposite)
        for opposite in (False, True)
        for one in left
        for other in right
        if one.attribute != other.attribute
    ]
    assert list(matches) == pairs
    assert matches[2:9:3] == pairs[2:9:3]
    assert matches[-1] == pairs[-1]
    assert query.text == "rows by which each pair of tests surpasses a Jaccard index of 0.3"
    assert query.attributes == ("wolf", "zone", "snow", "rain")
    assert not query.integer
    assert MatchScores(LEFT, RIGHT) == MatchScores(LEFT, RIGHT, "0.5", None)


CHOICES = [[], KNOWN[:1], KNOWN, KNOWN[1:], [*KNOWN[1:], Equals("zone", "south")], []]


@pytest.mark.parametrize("most", [0, 5 * 2 * 9, 1 << 20])
@pytest.mark.parametrize("engine", [dpf.InMemory(), dpf.Threads(3), dpf.Mapped()])
def test_scores_that_are_remembered_from_choice_to_choice_are_those_counted_anew(
    engine: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common_row_counts, "MOST_KEPT", most)
    monkeypatch.setattr(common_row_counts, "TILE", 64)
    query, other = MatchScores(LEFT, RIGHT, Fraction(1, 10)), MatchScores(LEFT, RIGHT, cap=2)
    agreeing = [k for k, kind in enumerate(KINDS) for _ in range(9 - 6 * kind[0]) if kind[0] == (kind[3] in (1, 2))]
    rows = engine.load(table_of([*agreeing, *np.random.default_rng(5).integers(0, len(KINDS), 20)]))
    assert not np.array_equal(*(query.evaluate(dpf.InMemory(), rows, known=known) for known in CHOICES[1:3]))
    for part in (rows, *engine.split(rows, SCHEMA["snow"])):
        for queries in ((query,), (other, query, other)):
            for known, asked in itertools.product(CHOICES, queries):
                counts = engine.sum(part, functools.partial(asked.count, known=known))
                expected = asked.answer(counts, known=known)
                assert asked.evaluate(engine, part, known=known).tolist() == expected.tolist()


@pytest.mark.parametrize(("lacking", "kept"), [(0, 2), (1, 1), (176, 1), (177, 0)])
def test_sets_are_kept_as_bits_while_there_is_room(lacking: int, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two blocks of 128 rows have 11 sets each, which take 176 bytes; what is counted from them is counted alike."""
    query = MatchScores(LEFT, RIGHT)
    assert [side.number for side in query._sides] == [1 + 3 + 1 + 1, 1 + 2 + 1 + 1]
    monkeypatch.setattr(common_row_counts, "MOST_KEPT", 2 * 176 - lacking)
    engine = dpf.Threads(2)
    rows = engine.load(table_of(np.random.default_rng(1).integers(0, len(KINDS), 256)))
    sets: Any = {}
    before = [query.count(block, sets=sets).tolist() for block in rows]
    assert len(sets) == kept
    assert [query.count(block, sets=sets).tolist() for block in rows] == before
    assert [query.count(block).tolist() for block in rows] == before


def test_what_is_known_already_is_not_counted_again() -> None:
    counted: list[int] = []

    class Watched(BlockEngine):
        name = "watched"

        def map(self, rows: Any, function: Any) -> list[Any]:
            found = [function(block) for block in rows]
            counted.extend(len(counts) for (counts,) in found)
            return found

    engine = Watched(1)
    rows = engine.load(table_of(range(len(KINDS))))
    for known in CHOICES[:4]:
        MatchScores(LEFT, RIGHT).evaluate(engine, rows, known=known)
    assert counted == [1, 1, 1, 2]  # everyone; then each set that is new; and other sets are counted from the start


@given(
    st.lists(st.integers(0, len(KINDS) - 1), max_size=70),
    st.sampled_from([1, 63, 64, 65]),
    st.sampled_from([0, 2, 5, 100]),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_rows_in_common_are_counted_alike_as_bits_and_in_tables(kinds: Any, tile: int, bits: int, part: bool) -> None:
    query = MatchScores(LEFT, RIGHT)
    engine = dpf.InMemory()
    rows = engine.load(table_of(kinds))
    block = (engine.split(rows, SCHEMA["snow"])[1] if part else rows)[0]
    columns = [_sets(block, side, tests) for side, tests in zip((LEFT, RIGHT), query.tests, strict=True)]
    within = [np.ones(block.rows, dtype=bool), *(d.holds(block) for d in KNOWN)]
    expected = [[[int((a & b & c).sum()) for b in columns[1]] for a in columns[0]] for c in within]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(common_row_counts, "TILE", tile)
        patch.setattr(common_row_counts, "MOST_AS_BITS", bits)
        assert query.count(block, known=KNOWN).tolist() == expected
        assert query.count(block, known=KNOWN, everyone=False).tolist() == expected[1:]


def _sets(block: Any, side: Any, tests: Any) -> list[Any]:
    missing = [(a.name, a.missing_code) for a in side if a.missing_code is not None]
    known = [block.codes(name) != code for name, code in missing]
    return [*(test.holds(block) for test in tests), *known, np.ones(block.rows, dtype=bool)]


def test_a_given_cap_counts_where_it_is_smaller_and_only_if_it_was_planned() -> None:
    table = table_of(np.random.default_rng(2).integers(0, len(KINDS), 60))
    for cap, smaller in ((4, 4), (6, 6), (99, 6)):
        fixed = MatchScores(LEFT, RIGHT, "0.4", smaller)
        assert scored(GIVEN, table, known=KNOWN, cap=cap) == pytest.approx(scored(fixed, table, known=KNOWN))
    assert (scored(GIVEN, table, cap=2) != scored(GIVEN, table, cap=3)).any()
    open_one = MatchScores(LEFT, RIGHT, "0.4", given_cap=True)
    assert (scored(open_one, table, cap=2) != scored(open_one, table)).any()
    planned = MatchScores(LEFT, RIGHT, "0.4", 6)
    np.testing.assert_array_equal(scored(planned, table, cap=2), scored(planned, table))


def test_what_is_kept_of_one_cap_is_not_used_for_another() -> None:
    table = table_of(np.random.default_rng(3).integers(0, len(KINDS), 80))
    engine = dpf.InMemory()
    rows = engine.load(table)
    for cap in (2, 5, 2):
        for known in ((), KNOWN[:1], KNOWN):
            found = GIVEN.evaluate(engine, rows, known=known, cap=cap)
            np.testing.assert_array_equal(found, scored(GIVEN, table, known=known, cap=cap))


def test_a_choice_that_none_follows_scores_the_same_and_keeps_nothing() -> None:
    table = table_of(np.random.default_rng(5).integers(0, len(KINDS), 80))
    engine = dpf.InMemory()
    rows = engine.load(table)
    last = attrs.evolve(GIVEN, followed=False)
    for known in ((), KNOWN):
        found = last.evaluate(engine, rows, known=known, cap=5)
        assert not any(name.__name__ == "_LastChoice" for name in engine.cache_of(rows) if isinstance(name, type))
        np.testing.assert_array_equal(found, scored(GIVEN, table, known=known, cap=5))


@pytest.mark.parametrize("target", ["0.2", "0.5", "0.8"])
def test_of_few_rows_the_score_is_largest_at_the_target_share_and_not_positive_from_their_number_on(
    target: str,
) -> None:
    """All wolves have snow; there are many rows with neither."""
    query = MatchScores(LEFT, RIGHT, target, most=40)
    wolf, none = (KINDS.index((code, 0, code, 2)) for code in (1, 0))
    match = next(
        k
        for k, one in enumerate(query.candidates())
        if one == Match(Equals("wolf", "true"), Equals("snow", "true"), False)
    )
    scores = [scored(query, table_of([wolf] * rows + [none] * 100))[match] for rows in range(60)]
    w = float(target)
    assert scores == pytest.approx([min((1 - w) * rows, w * (40 - rows)) for rows in range(60)])
    assert np.argmax(scores) == pytest.approx(40 * w)


def test_a_score_of_few_rows_is_that_of_many_lowered_by_the_rows_of_both_sides() -> None:
    table = table_of(np.random.default_rng(8).integers(0, len(KINDS), 60))
    columns, few, many = columns_of(table), scored(FEW, table), scored(MatchScores(LEFT, RIGHT, "0.4"), table)
    for k, match in enumerate(FEW.candidates()):
        left, right = match.sides
        both, neither = (
            float((one.holds(columns) & other.holds(columns)).sum())
            for one, other in ((left, right), (Not(left), Not(right)))
        )
        of_one_side = many[k] - 0.6 * min(both, neither)
        assert few[k] == pytest.approx(min(many[k], 0.4 * (4 - both) + of_one_side))
