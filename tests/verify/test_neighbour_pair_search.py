"""How pairs of tables are searched, climbed to and shrunk."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from dpframework.verify.miners.neighbour_pair_search import (
    Search,
    WorstPair,
    drop_labels,
    label_pair,
    label_rows,
    last_before,
    shrink_tables,
)
from dpframework.verify.search_time_limit import Patience
from dpframework.verify.tables.neighbours import Pair, Sizes

OVER = Patience(-1)
ADDED = [(b"", bytes((kind,))) for kind in range(6)]


USUAL = Sizes(0, 60)


def search(sizes: Sizes = USUAL, kinds: int = 6, changes: Any = ADDED, patience: Any = None) -> Search:
    return Search(changes, kinds, sizes, np.random.default_rng(0), patience or Patience())


def larger(one: bytes, other: bytes) -> float:
    return float(len(other))


def test_the_first_of_the_worst_pairs_is_kept() -> None:
    one = search()
    pairs = [Pair(b"\1" * size, b"", bytes((kind,))) for kind, size in enumerate((2, 5, 5, 3))]
    assert one.worst(larger, pairs) == WorstPair(pairs[1], 6)
    assert one.tried == 4
    assert one.worst(larger, []) == WorstPair(Pair(b"", b"", b""), -math.inf)
    assert one.worst(lambda *_: -2.0, pairs) == WorstPair(pairs[0], -2)
    ended = search(patience=OVER)
    assert ended.worst(larger, pairs) == WorstPair(pairs[0], 3)  # one is tried in any case
    assert ended.tried == 1


def test_all_tables_of_four_kinds_are_tried_up_to_a_number() -> None:
    # 4 kinds: 1, 4, 10, 20 tables of 0, 1, 2, 3 rows, each with 4 changes
    for number, size in ((3, -1), (4, 0), (19, 0), (20, 1), (59, 1), (60, 2), (139, 2), (140, 3)):
        one, seen = search(), list[tuple[bytes, bytes]]()
        assert one.sizes_covered(number) == size
        one.exhaustive(lambda *tables, seen=seen: seen.append(tables) or 0.0, number)
        assert len(seen) == one.tried == sum(4 * math.comb(rows + 3, rows) for rows in range(size + 1))
        assert len({kind for _, table in seen for kind in table}) == (4 if seen else 0)
        assert len(set(seen)) == len(seen)
    assert search(Sizes(0, 2)).sizes_covered(10**6) == 2
    assert [search(Sizes(0, 2)).sizes_covered(number) for number in (59, 60)] == [1, 2]
    assert search(Sizes(2, 5)).sizes_covered(39) == -1
    assert search(Sizes(2, 5)).sizes_covered(40) == 2
    pairs = list(itertools.combinations([b"\0", b"\1", b"\2"], 2))
    of_three = search(kinds=3, changes=pairs)
    assert of_three.sizes_covered(11) == 0
    assert of_three.sizes_covered(12) == 1  # 3 changes, of 1 and 3 tables
    assert search(changes=[(b"\0\1", b"\4\4")]).sizes_covered(10) == 60


def test_random_pairs_are_of_any_size_and_small_ones_as_likely() -> None:
    one = search(Sizes(3, 40))
    pairs = [one.random_pair() for _ in range(2000)]
    sizes = np.array([len(pair.shared) for pair in pairs])
    assert (sizes.min(), sizes.max()) == (3, 39)
    # a size of s + 2 is drawn where 38 ** u is in [s, s + 1): half of all below sqrt(38) (at most 1e-6 by Hoeffding)
    middle = 1 - math.log(6) / math.log(38)
    assert abs((sizes >= 8).mean() - middle) < math.sqrt(math.log(2e6) / 4000)
    assert {pair.other[0] for pair in pairs} == {kind for pair in pairs for kind in pair.shared} == set(range(6))
    few = np.array([len(set(pair.shared)) == 1 for pair in pairs if len(pair.shared) > 20])
    assert 0.03 < few.mean() < 0.3  # half of them are of 1 to 5 kinds that are drawn
    assert {len(search(Sizes(4, 4)).random_pair().shared) for _ in range(9)} == {4}
    found = one.at_random(larger, 25)
    assert one.tried == 25
    assert found.loss == len(found.pair.shared) + 1


def test_a_climb_keeps_what_is_not_worse_and_ends_where_it_is_enough() -> None:
    start = Pair(b"\0", b"", b"\1")
    one = search()
    found = one.climb(larger, start, 300)
    assert one.tried == 300
    assert found.loss > 50
    assert found.loss == len(found.pair.tables[1]) <= 61
    one = search()
    found = one.climb(larger, start, 300, enough=20)
    assert found.loss >= 20
    assert one.tried < 300
    one = search()
    assert one.climb(larger, start, 300, enough=2) == WorstPair(start, 2)
    assert one.tried == 1
    ended = search(patience=OVER)
    assert ended.climb(larger, start, 300) == WorstPair(start, 2)
    level = search()
    assert level.climb(lambda *_: 0.0, start, 50).pair != start  # as bad is kept


def test_moves_change_one_thing_within_the_sizes() -> None:
    one = search(Sizes(2, 40))
    start = Pair(b"\0" * 5 + b"\1" * 15, b"", b"\2")
    grown, shrunk_by, same, other_change = set[int](), set[int](), 0, 0
    for _ in range(3000):
        moved = one._move(start)
        change = len(moved.shared) - len(start.shared)
        assert 2 <= len(moved.shared) <= 40
        if moved.shared == start.shared:
            other_change += (moved.one, moved.other) != (b"", b"\2")
        else:
            assert (moved.one, moved.other) == (b"", b"\2")
        if change > 0:
            assert moved.shared.startswith(start.shared)
            assert len(set(moved.shared[20:])) == 1
            grown.add(change)
        elif change < 0:
            kept = [moved.shared.count(kind) for kind in range(2)]
            assert kept[0] == 5 or kept[1] == 15
            shrunk_by.add(-change)
        elif moved.shared != start.shared:
            assert sum(a != b for a, b in zip(moved.shared, start.shared, strict=True)) == 1
            same += 1
    assert grown == {1, 2, 4, 8, 16}
    assert shrunk_by == {1, 2, 4, 5, 8, 15}
    assert same > 600
    assert other_change > 300
    assert {len(one._move(Pair(b"\0" * 40, b"", b"\2")).shared) for _ in range(500)} <= set(range(2, 41))
    edge = {len(one._move(Pair(b"\0\1", b"", b"\2")).shared) for _ in range(500)}
    assert min(edge) == 2
    empty = search(Sizes(0, 3))
    assert {len(empty._move(Pair(b"", b"", b"\2")).shared) for _ in range(500)} == {0, 1, 2}
    own = [one._move(start).shared[-1] for _ in range(4000)]
    assert own.count(2) > own.count(3)  # a row of the unit's own kind is the likeliest to come


def test_a_pair_is_shrunk_to_the_rows_that_are_needed() -> None:
    one, other = label_pair(Pair(b"\0\1\2\0\1\2", b"\3", b"\4"))
    assert [row for row, _ in one] == [0, 1, 2, 3, 4, 5, 6]
    assert [row for row, _ in other] == [0, 1, 2, 3, 4, 5, 7]
    tried: list[tuple[bytes, bytes]] = []

    def shows(here: bytes, there: bytes) -> bool:
        tried.append((here, there))
        return here.count(1) >= 1

    assert shrink_tables(one, other, shows, 0) == (b"\1\3", b"\1\4")
    assert shrink_tables(one, other, lambda *_: True, 0) == (b"\3", b"\4")
    left = shrink_tables(one, other, lambda *_: True, 2)
    assert (len(left[0]), len(left[1])) == (3, 3)
    assert shrink_tables(one, other, lambda *_: False, 0) == (drop_labels(one), drop_labels(other))
    assert shrink_tables(one, other, shows, 0, most=0) == (drop_labels(one), drop_labels(other))
    counted: list[int] = []
    shrink_tables(one, other, lambda *_: bool(counted.append(1)), 0, most=4)
    assert len(counted) == 4
    long = label_rows(bytes(8_000))
    counted.clear()
    shrink_tables(long, (*long, (9_000, 1)), lambda *_: bool(counted.append(1)), 0, most=10)
    assert len(counted) == 5  # a table of 8,000 rows counts as two
    assert shrink_tables((), (), shows, 0) == (b"", b"")


def test_sizes_and_labels() -> None:
    for most, first in ((10, 10), (10, 3), (10, 1), (1, 1), (70_000, 1234)):
        assert last_before(lambda size, first=first: size >= first, most) == first - 1
    assert label_rows(b"\5\7") == ((0, 5), (1, 7))
    assert label_rows(b"\5\7", 3) == ((3, 5), (4, 7))
    assert drop_labels(((8, 5), (2, 7))) == b"\5\7"
