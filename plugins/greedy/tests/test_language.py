"""The language: candidates from the schema alone, and scores that are those of the descriptions they stand for."""

from __future__ import annotations

import itertools
import math

import attrs
import numpy as np
import pytest
from dpframework_greedy import queries
from dpframework_greedy.kernels import log_weight
from dpframework_greedy.language import Language, _number_of_literals, literals_of
from dpframework_greedy.nonprivate import count_exactly
from dpframework_greedy.queries import ExtensionScores, PairScores, RedescriptionCells
from dpframework_greedy.scores import Score
from dpframework_greedy.successive_choices import Group
from dpframework_greedy.surplus_score import Surplus

import dpframework as dpf
from dpframework.tables.in_process_engines import InMemory, Threads

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("wolf", view="left", missing=True),
        dpf.Categorical("zone", ["north", "middle", "south"], view="left"),
        dpf.Numeric("height", 0, 9, cuts=[2, 4, 7], view="left", missing=True),
        dpf.Boolean("moose", view="right", missing=True),
        dpf.Numeric("rain", 0, 8, cuts=[1, 4, 6], view="right", missing=True),
    ]
)
SCORE = Score.lowest(5, 40)
SURPLUS = Surplus(40)
INDEX = 0.7  # to be surpassed
EXACT = 2.0**-40


def random_table(rows: int = 150, seed: int = 0) -> dpf.Table:
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, a.size, rows) for a in SCHEMA])
    codes[3] = np.where(rng.random(rows) < 0.8, codes[0] == 1, codes[3])
    return dpf.Table.from_codes(SCHEMA, codes)


def exact_score(rows: list, redescribed, engine: InMemory, scored: Score | Surplus = SCORE) -> float:
    """Return the score by evaluating both descriptions on every row."""
    found = count_exactly(engine, rows, redescribed)
    left, right = redescribed.descriptions
    holds = left.holds(rows[0]), right.holds(rows[0])
    both, apart = int((holds[0] & holds[1]).sum()), int((holds[0] ^ holds[1]).sum())
    assert (found.both.value, found.apart.value) == (both, apart)
    if scored is SURPLUS:
        return (1 - INDEX) * min(both + apart, 40) - apart
    factors = SCORE.of_both(np.array([both])) * SCORE.of_either(np.array([both + apart]))
    return float(factors[0] * both / (both + apart)) if both else 0.0


def test_every_literal_is_another_set_of_codes_and_holds_as_its_description_does() -> None:
    engine = InMemory()
    block = engine.load(random_table())[0]
    for attribute in SCHEMA:
        masks = [literal.holds(block) for literal in literals_of(attribute)]
        for literal, mask in zip(literals_of(attribute), masks, strict=True):
            np.testing.assert_array_equal(mask, literal.description.holds(block))
        assert len({mask.tobytes() for mask in masks}) == len(masks)
        assert all(0 < mask.sum() < len(mask) for mask in masks)


def test_numeric_literals_are_all_intervals_between_public_cuts_and_complements_of_inner_ones() -> None:
    texts = [str(literal.description) for literal in literals_of(SCHEMA["rain"])]
    assert len(texts) == 9 + 3
    assert {"rain < 4", "rain >= 6", "rain >= 1 and rain < 6", "rain < 1 or rain >= 4"} <= set(texts)


def test_scores_of_pairs_are_those_of_their_descriptions() -> None:
    engine, language = InMemory(), Language.of_schema(SCHEMA)
    rows = engine.load(random_table())
    pool = PairScores(language, SCORE).evaluate(engine, rows)
    seen = set()
    for group in pool.groups():
        positions, scores = pool.scores(group, EXACT)
        for position, score in zip(positions.tolist(), scores.tolist(), strict=True):
            redescribed = language.pair(group.number, position)
            seen.add(str(redescribed))
            assert score * EXACT == pytest.approx(exact_score(rows, redescribed, engine), abs=1e-9)
    of_left, of_right = (sum(len(literals_of(a)) for a in side) for side in language.sides)
    assert len(seen) == language.number_of_pairs == of_left * of_right
    assert (of_left, of_right) == tuple(_number_of_literals(side) for side in language.sides)


@pytest.mark.parametrize("scored", [SCORE, SURPLUS], ids=["weighted", "surplus"])
def test_scores_of_extensions_are_those_of_their_descriptions(scored: Score | Surplus) -> None:
    engine, language = InMemory(), Language.of_schema(SCHEMA, ["height", "wolf", "zone"], ["moose", "rain"])
    rows = engine.load(random_table())
    for pair in (0, 3, 5):
        start = language.pair(pair, 3)
        for grown in (start, language.extend(start, int(np.flatnonzero(language.open_extensions(start))[9]))):
            pool = ExtensionScores(language, scored, 1, 1).evaluate(engine, rows, pool=[(grown, INDEX)])
            positions, scores = pool.scores(pool.groups()[0], EXACT)
            for position, score in list(zip(positions.tolist(), scores.tolist(), strict=True)):
                redescribed = language.extend(grown, position)
                assert score * EXACT == pytest.approx(exact_score(rows, redescribed, engine, scored), abs=1e-9)


def test_unextended_redescription_is_the_first_candidate() -> None:
    engine, language = InMemory(), Language.of_schema(SCHEMA)
    start = language.pair(0, 0)
    pool = ExtensionScores(language, SCORE, 1, 1).evaluate(engine, engine.load(random_table()), pool=[(start, 0)])
    assert pool.scores(pool.groups()[0], EXACT)[0][0] == 0
    assert language.extend(start, 0) == start


def test_no_attribute_is_used_twice_on_a_side_nor_on_both() -> None:
    language = Language.of_schema(SCHEMA, ["wolf", "zone", "rain"], ["rain", "moose", "zone"])
    assert len(language.pairs) == 3 * 3 - 2
    rng = np.random.default_rng(1)
    for pair in range(len(language.pairs)):
        redescribed = language.pair(pair, 0)
        for _ in range(6):
            open_ = np.flatnonzero(language.open_extensions(redescribed))
            redescribed = language.extend(redescribed, int(rng.choice(open_)))
            names = [part.literal.attribute.name for part in redescribed.left + redescribed.right]
            assert len(names) == len(set(names))


def test_a_side_names_an_attribute_once() -> None:
    with pytest.raises(dpf.InputError, match="right names an attribute twice; name each once"):
        Language.of_schema(SCHEMA, ["wolf"], ["rain", "rain"])


def test_a_pair_is_of_two_attributes() -> None:
    assert len(Language.of_schema(SCHEMA, ["wolf", "rain"], ["wolf"]).pairs) == 1
    with pytest.raises(dpf.InputError, match="both views have the attribute 'wolf' only; one side needs another"):
        Language.of_schema(SCHEMA, ["wolf"], ["wolf"])


def test_descriptions_join_literals_from_left_to_right() -> None:
    language = Language.of_schema(SCHEMA)
    block = InMemory().load(random_table())[0]
    rng = np.random.default_rng(2)
    for _ in range(40):
        redescribed = language.pair(int(rng.integers(len(language.pairs))), 0)
        for _ in range(3):
            open_ = np.flatnonzero(language.open_extensions(redescribed))
            redescribed = language.extend(redescribed, int(rng.choice(open_)))
        for held, description in zip(redescribed.holds(block), redescribed.descriptions, strict=True):
            np.testing.assert_array_equal(held, description.holds(block))


def test_candidates_follow_from_the_schema_whatever_the_rows() -> None:
    engine, language = InMemory(), Language.of_schema(SCHEMA)
    pools = [
        PairScores(language, SCORE).evaluate(engine, engine.load(table))
        for table in (random_table(), random_table(1), dpf.Table.from_codes(SCHEMA, np.zeros((5, 0), dtype=int)))
    ]
    for group in pools[0].groups():
        positions = [pool.scores(group, EXACT)[0] for pool in pools]
        for other in positions[1:]:
            np.testing.assert_array_equal(positions[0], other)


def test_weights_of_a_group_are_the_sums_of_its_candidates_weights() -> None:
    engine, language = InMemory(), Language.of_schema(SCHEMA)
    rows = Threads(3).load(random_table())
    unit, scale = 2.0**-24, 2.0**18
    pairs = PairScores(language, SCORE).evaluate(engine, rows)
    given = [(language.pair(0, 0), 0.5), (language.pair(1, 1), 0.8)]
    extensions = ExtensionScores(language, SCORE, 2, 1).evaluate(engine, rows, pool=given)
    surplus = ExtensionScores(language, Surplus(40), 2, 1).evaluate(engine, rows, pool=given)
    for pool in (pairs, extensions, surplus):
        groups = pool.groups()
        weights = pool.log_weights(groups, unit, scale)
        for group, weight in itertools.islice(zip(groups, weights, strict=True), 6):
            _, scores = pool.scores(group, unit)
            assert abs(weight - scale * np.logaddexp.reduce(scores / scale)) <= 0.51


def test_a_chosen_pair_of_attributes_is_gone_and_a_redescription_has_so_many_turns() -> None:
    engine, language = InMemory(), Language.of_schema(SCHEMA)
    rows = engine.load(random_table())
    pairs = PairScores(language, SCORE).evaluate(engine, rows)
    group = pairs.groups()[2]
    assert [g.number for g in pairs.after(group, 0).groups()] == [0, 1, 3, 4, 5]
    pool = ExtensionScores(language, SCORE, 2, 2).evaluate(
        engine, rows, pool=[(language.pair(0, 0), 0.5), (language.pair(1, 1), 0.8)]
    )
    for _ in range(2):
        position = int(pool.scores(pool.groups()[0], EXACT)[0][-1])
        pool = pool.after(pool.groups()[0], position)
    assert [g.number for g in pool.groups()] == [1]
    assert len(pool.pool[0].attributes) == 4


def test_rows_are_counted_once_for_the_weight_and_the_scores_of_a_redescription() -> None:
    engine, language = InMemory(), Language.of_schema(SCHEMA)
    rows = engine.load(random_table())
    given = [(language.pair(0, 0), 0.5), (language.pair(1, 1), 0.8)]
    pool = ExtensionScores(language, SCORE, 2, 2).evaluate(engine, rows, pool=given)
    asked, count = [], pool.counts_of
    pool = attrs.evolve(pool, counts_of=lambda redescribed: asked.append(redescribed) or count(redescribed))
    pool.log_weights(pool.groups(), EXACT, 1.0)
    position = int(pool.scores(pool.groups()[0], EXACT)[0][-1])
    after = pool.after(pool.groups()[0], position)
    after.log_weights(after.groups(), EXACT, 1.0)
    assert asked == [given[0][0], given[1][0], after.pool[0]]
    assert list(after.counts) == [given[1][0], after.pool[0]]  # what has gone is forgotten
    fresh = ExtensionScores(language, SCORE, 2, 2).evaluate(engine, rows, pool=[(after.pool[0], 0.5), given[1]])
    for found, expected in zip(after.groups(), fresh.groups(), strict=True):
        np.testing.assert_array_equal(after.scores(found, EXACT), fresh.scores(expected, EXACT))


def test_blocks_with_rows_left_out_are_counted_without_them() -> None:
    language = Language.of_schema(SCHEMA)
    block = InMemory().load(random_table())[0]
    some = block.at(np.arange(0, 150, 3, dtype=np.int32))
    third = tuple(np.ascontiguousarray(column[::3]) for column in block.columns)
    whole = attrs.evolve(block, columns=third, index=np.arange(50, dtype=np.int32))
    query = PairScores(language, SCORE)
    np.testing.assert_array_equal(query.count(some), query.count(whole))


def test_pairs_are_counted_where_attributes_have_codes_of_two_widths() -> None:
    wide = [dpf.Categorical(side, [str(v) for v in range(300)], view=side) for side in ("left", "right")]
    few = [dpf.Categorical(f"few-{side}", ["a", "b", "c"], view=side) for side in ("left", "right")]
    schema, rng = dpf.Schema([*few, *wide]), np.random.default_rng(0)
    given = dpf.Table.from_codes(schema, np.stack([rng.integers(0, a.size, 90) for a in schema]))
    language = Language.of_schema(schema)
    block = InMemory().load(given)[0]
    for some in (block, block.at(np.arange(0, 90, 2, dtype=np.int32))):
        found = PairScores(language, SCORE).count(some)
        spans = itertools.pairwise(language.offsets)
        for (i, j), (start, end) in zip(language.pairs, spans, strict=True):
            left, right = language.left[i], language.right[j]
            expected = np.zeros((left.size, right.size), dtype=np.int64)
            np.add.at(expected, (some.codes(left.name).astype(int), some.codes(right.name).astype(int)), 1)
            assert found[start:end].tolist() == expected.ravel().tolist()


def test_a_query_says_what_is_scored_and_what_a_row_may_change() -> None:
    language = Language.of_schema(SCHEMA)
    pairs, extensions = PairScores(language, SCORE), ExtensionScores(language, SURPLUS, 3, 2)
    assert pairs.text == "Jaccard index weighted by support (min 5, max 40) of each pair of literals"
    assert extensions.text == "rows beyond a released Jaccard index (max 40) of each extension by a literal"
    assert PairScores(language, Score(5, 0.2)).score.text == "Jaccard index weighted by support (min 5)"
    assert (
        PairScores(language, Score(max_support=9, descent=0.2)).score.text
        == "Jaccard index weighted by support (max 9)"
    )
    assert PairScores(language, Score()).text == "Jaccard index of each pair of literals"
    assert pairs.attributes == extensions.attributes == ("wolf", "zone", "height", "moose", "rain")
    assert (pairs.answer_length, extensions.answer_length) == (
        language.number_of_pairs,
        3 * language.number_of_extensions,
    )
    for query in (pairs, extensions):
        assert query.sensitivities == (query.score.sensitivity,)
        assert query.for_rows(2) == query.score.for_rows(2)
    assert len(pairs.for_rows(10**6)) == 1


def test_coordinates_of_a_pool_are_the_scores_of_its_first_round() -> None:
    engine, language = InMemory(), Language.of_schema(SCHEMA)
    query = PairScores(language, SCORE)
    pool = query.evaluate(engine, engine.load(random_table()))
    exact = np.concatenate([pool.scores(group, 2.0**-30)[1] for group in pool.groups()]) * 2.0**-30
    np.testing.assert_allclose(query.coordinates(pool), exact, rtol=0, atol=2.0**-31 + EXACT)


def test_groups_are_taken_together_until_there_is_enough_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once, in order; what is taken together ends once it is more than that."""
    monkeypatch.setattr(queries, "TOGETHER", 10)
    sizes = [4, 4, 3, 20, 1, 10, 4, 6, 1]
    batches = list(queries._batches([Group(k) for k in range(9)], sizes))
    assert [[group.number for group in some] for some in batches] == [[0, 1, 2], [3], [4, 5], [6, 7, 8]]
    monkeypatch.setattr(queries, "TOGETHER", 11)
    assert len(next(queries._batches([Group(k) for k in range(9)], sizes))) == 4, "not more than that: go on"


def test_weights_are_the_same_however_many_groups_are_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, language = InMemory(), Language.of_schema(SCHEMA)
    pool = PairScores(language, SCORE).evaluate(engine, engine.load(random_table()))
    groups = [pool.groups()[k] for k in (4, 0, 5, 1, 2)]  # as they are asked for
    expected = []
    for group in groups:
        scores = pool.scores(group, EXACT)[1]
        expected.append(2.0**30 * np.logaddexp.reduce(scores / 2.0**30))
    for together in (0, 20, 10**6):
        monkeypatch.setattr(queries, "TOGETHER", together)
        np.testing.assert_allclose(pool.log_weights(groups, EXACT, 2.0**30), expected, rtol=1e-12, atol=1)


def test_cells_are_rows_of_both_of_either_alone_and_of_neither() -> None:
    block, language = InMemory().load(random_table())[0], Language.of_schema(SCHEMA)
    grown = language.extend(language.pair(1, 2), 5)
    left, right = (side.holds(block) for side in grown.descriptions)
    found = RedescriptionCells().count(block, redescribed=grown)
    assert found.tolist() == [
        (left & right).sum(),
        (left & ~right).sum(),
        (~left & right).sum(),
        (~left & ~right).sum(),
    ]
    assert (RedescriptionCells().answer_length, RedescriptionCells().text) == (
        4,
        "rows in both supports of a redescription, in one only, in neither",
    )


def test_cross_tables_give_the_counts_of_every_query() -> None:
    """Of each block, whatever engine counts them."""
    language = Language.of_schema(SCHEMA)
    given = {"redescribed": language.extend(language.pair(1, 2), 5)}
    for query, inputs in (
        (PairScores(language, SCORE), {}),
        (ExtensionScores(language, SCORE, 1, 1), given),
        (RedescriptionCells(), given),
    ):
        for block in InMemory().load(random_table()):
            found, expected = query.tables(**inputs).count(block), query.count(block, **inputs)
            assert (found.shape, found.tolist()) == (expected.shape, expected.tolist())


def test_a_redescription_that_stays_as_it_is_is_not_counted_again() -> None:
    engine, language = InMemory(), Language.of_schema(SCHEMA)
    given = [(language.pair(0, 0), 0.5), (language.pair(1, 1), 0.8)]
    pool = ExtensionScores(language, SURPLUS, 2, 2).evaluate(engine, engine.load(random_table()), pool=given)
    asked, count = [], pool.counts_of
    pool = attrs.evolve(pool, counts_of=lambda redescribed: asked.append(redescribed) or count(redescribed))
    for turns in ((1, 2), (0, 2)):
        group = pool.groups()[0]
        pool.scores(group, EXACT)
        pool = pool.after(group, 0)
        assert pool.turns == turns
    assert asked == [given[0][0]]
    assert [group.number for group in pool.groups()] == [1]
    assert pool.pool == (given[0][0], given[1][0])


def test_each_redescription_is_scored_by_how_it_surpasses_its_own_index() -> None:
    engine, language = InMemory(), Language.of_schema(SCHEMA)
    rows, pair = engine.load(random_table()), language.pair(1, 1)
    pool = ExtensionScores(language, SURPLUS, 2, 1).evaluate(engine, rows, pool=[(pair, 0.9), (pair, 0.6)])
    found = count_exactly(engine, rows, pair)
    both, either = found.both.value, (found.both + found.apart).value
    for group, index in zip(pool.groups(), (0.9, 0.6), strict=True):
        unextended = pool.scores(group, EXACT)[1][0] * EXACT
        assert unextended == pytest.approx((1 - index) * min(either, 40) - either + both, abs=1e-9)


def test_log_weights_of_scores_far_apart() -> None:
    """Exactly: of one score itself; of many equal ones, their logarithm more; those far below count for nothing."""
    for scores, expected in (([-7], -7), ([5, 5, 5], 5 + round(8 * math.log(3))), ([-(10**9), 3, -(10**6)], 3)):
        assert log_weight(np.array(scores, dtype=np.int64), 8.0) == expected
    scores = np.random.default_rng(0).integers(-40, 40, 300)
    assert log_weight(scores, 8.0) == round(8 * math.log(math.fsum(math.exp(score / 8) for score in scores.tolist())))


def test_the_sum_of_weights_loses_no_term_however_small() -> None:
    """2**16 terms of 2**-54 beside one of 1: added one after another each of them would be rounded away."""
    scale = 2.0**42
    scores = np.full(2**16 + 1, -round(scale * 54 * math.log(2)), dtype=np.int64)
    scores[0] = 0
    assert log_weight(scores, scale) == round(scale * math.log1p(2.0**-38)) == 16
