"""Balls of the K-norm, drawn: the chance of every outcome, exactly, from every number that may be drawn."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpframework.mechanisms.knorm_ball_points import Balls, balls, draw_section, section_size
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.mechanisms.uniforms import WholeNumbers


class Listed(WholeNumbers):  # type: ignore[misc]  # final, for all but this
    """Numbers below bounds, as listed, and 0 from there on; keeps the bounds."""

    def __init__(self, listed: list[int]) -> None:
        super().__init__(SeededRandomness(0).words)
        self.listed, self.bounds = listed, list[int]()

    def below(self, bound: int) -> int:
        self.bounds.append(bound)
        return self.listed[len(self.bounds) - 1] if len(self.bounds) <= len(self.listed) else 0


def chances(draw: Callable[[WholeNumbers], Any]) -> dict[Any, Fraction]:
    """Return the probability of each outcome of a draw: all numbers that are drawn on the way take all their values."""
    found: dict[Any, Fraction] = {}
    path: list[int] = []
    while True:
        numbers = Listed(path)
        outcome = draw(numbers)
        outcome = tuple(outcome) if isinstance(outcome, list) else outcome
        share = Fraction(1)
        for bound in numbers.bounds:
            share /= bound
        found[outcome] = found.get(outcome, Fraction(0)) + share
        path = path + [0] * (len(numbers.bounds) - len(path))
        while path and path[-1] == numbers.bounds[len(path) - 1] - 1:
            path.pop()
        if not path:
            return found
        path[-1] += 1


def vectors(size: int, total: int, depth: int) -> Iterator[tuple[int, ...]]:
    """Yield the vectors of a section, by its definition."""
    for z in itertools.product(range(-depth, total + depth + 1), repeat=size):
        if sum(z) == total and -sum(x for x in z if x < 0) <= depth:
            yield z


def uniform(outcomes: Any) -> dict[Any, Fraction]:
    listed = list(outcomes)
    return dict.fromkeys(listed, Fraction(1, len(listed)))


@pytest.mark.parametrize(("size", "number"), [(0, 0), (3, 0), (3, 1), (5, 2), (4, 3), (4, 4)])
def test_every_subset_is_as_likely_as_any_other(size: int, number: int) -> None:
    assert chances(lambda numbers: numbers.subset(size, number)) == uniform(itertools.combinations(range(size), number))


@pytest.mark.parametrize("least", [0, 1])
def test_every_way_to_add_up_to_a_total_is_as_likely_as_any_other(least: int) -> None:
    for total, parts in itertools.product(range(5), range(1, 4)):
        ways = [z for z in itertools.product(range(least, total + 1), repeat=parts) if sum(z) == total]
        if ways:
            assert chances(lambda numbers: numbers.composition(total, parts, least)) == uniform(ways)  # noqa: B023
    assert chances(lambda numbers: numbers.composition(0, 0, least)) == {(): 1}


@pytest.mark.parametrize("section", [(2, 0, 0), (2, 0, 3), (3, 0, 2), (2, 2, 2), (3, 1, 1), (4, 0, 1)])
def test_every_vector_of_a_section_is_as_likely_as_any_other(section: tuple[int, int, int]) -> None:
    assert chances(lambda numbers: draw_section(*section, numbers)) == uniform(vectors(*section))


@pytest.mark.parametrize(
    ("sizes", "radius", "same_rows"),
    [
        *(((2,), 3, True), ((2, 2), 2, True), ((2, 3), 1, True)),
        *(((2,), 3, False), ((3,), 2, False), ((2, 2), 1, False)),
    ],
)
def test_every_point_of_a_ball_is_as_likely_as_any_other(sizes: tuple[int, ...], radius: int, same_rows: bool) -> None:
    longest = 2 * radius if same_rows else radius
    each = [
        [z for z in itertools.product(range(-longest, longest + 1), repeat=size) if sum(map(abs, z)) <= longest]
        for size in sizes
    ]
    ball = [
        tuple(itertools.chain(*parts))
        for parts in itertools.product(*each)
        if len(sums := {sum(part) for part in parts}) == 1 and (not same_rows or sums == {0})
    ]
    space = Balls(sizes, same_rows)
    assert space.number(radius) == len(ball)
    assert chances(lambda numbers: space.draw(radius, numbers)) == uniform(ball)
    if not same_rows:
        by_sum = Counter(sum(point[: sizes[0]]) for point in ball)
        assert {t: space.section(abs(t), radius) for t in by_sum} == by_sum


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3,), (2, 3, 5), (2,) * 6])
@pytest.mark.parametrize("radius", [0, 1, 7, 40, 41, 150])
def test_totals_are_found_where_a_search_one_by_one_finds_them(sizes: tuple[int, ...], radius: int) -> None:
    space = balls(sizes, False)
    number, rng = space.number(radius), random.Random(radius)
    for position in {0, number // 2, number - 1, *(rng.randrange(number) for _ in range(40))}:
        total, left = 0, position
        while (points := (1 if total == 0 else 2) * space.section(total, radius)) <= left:
            total, left = total + 1, left - points
        assert space.find_total(position, radius) == (total, left)


def test_a_number_takes_as_many_bits_as_its_bound_needs() -> None:
    """Of a known stream: a power of two takes its own bits, none is lost, and numbers at or above a bound are left."""
    stream = int.from_bytes(SeededRandomness(5).words(64).astype("<u8").tobytes(), "little")
    numbers, at = WholeNumbers(SeededRandomness(5).words), 0
    for bound in (1, 2, 4, 256, 1 << 70, 3, 5, 6, 100, 3, 3, 3, 3):
        size = (bound - 1).bit_length()
        while (wanted := stream >> at & ((1 << size) - 1)) >= bound:
            at += size
        at += size
        assert numbers.below(bound) == wanted


def test_words_are_drawn_when_bits_run_out_and_no_sooner() -> None:
    class Counted:
        drawn = 0

        def words(self, size: int) -> Any:
            self.drawn += size
            return np.zeros(size, dtype=np.uint64)

    source = Counted()
    numbers = WholeNumbers(source.words)
    numbers.bits(0)
    assert source.drawn == 0
    numbers.bits(1)
    first = source.drawn
    numbers.bits(64 * first - 1)
    assert source.drawn == first
    numbers.bits(1)
    assert source.drawn == 2 * first


@pytest.mark.parametrize("same_rows", [True, False])
@pytest.mark.parametrize("sizes", [(2,), (3, 2), (2, 2, 2), (4, 3, 2), (5, 2)])
def test_the_numbers_that_balls_are_made_of_follow_from_their_counts(sizes: tuple[int, ...], same_rows: bool) -> None:
    """All of h by differences of the numbers of points, where the second half is mirrored; D + 1 of them."""
    space = Balls(sizes, same_rows)
    dimension = sum(size - 1 for size in sizes) + (0 if same_rows else 1)
    assert space.dimension == dimension
    totals = [0] if same_rows else None
    series = []
    for radius in range(dimension + 1):
        sums = totals or range(-radius, radius + 1)
        depths = [radius if same_rows else (radius - abs(t)) // 2 for t in sums]
        series.append(
            sum(
                int(np.prod([section_size(size, abs(t), depth) for size in sizes]))
                for t, depth in zip(sums, depths, strict=True)
            )
        )
    for _ in range(dimension + 1):  # times 1 - x
        series = [one - other for one, other in zip(series, [0, *series[:-1]], strict=True)]
    assert list(space.polynomials.points) == series
