"""Count the rows for which both tests of a pair hold, one test of each view, with bits or with cross tables.

With bits, sets of rows are computed from the binary digits of codes, since there are fewer digits than tests. Counting
the common rows of two sets takes one or two instructions for 64 rows. Where two attributes have many pairs of tests,
each row is counted once in the attributes' cross table instead. The counts of the pairs are then sums over that table.
Which way is taken depends on the numbers of tests, which are public.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute, Numeric
from dpframework.facts.logical_descriptions_of_rows import Description, Equals, Literal
from dpframework.queries.row_set_intersections import RowSets, in_common
from dpframework.tables.crosstab_expressions import JointCounts
from dpframework.tables.encoded_row_blocks import Block
from dpframework.tables.fast_code_counts import joint_codes

TILE = 1 << 16  # the rows of a tile, a part of a block whose bits for all tests fit the processor's cache
MOST_KEPT = 1 << 26  # the most bytes of sets that are kept from one choice of a match (a pair of tests) to the next
MOST_AS_BITS = 256  # beyond this number of pairs of tests, counting rows in a table takes less time
Masks = NDArray[np.bool_]
Words = NDArray[np.uint64]
Sets = dict[Block, list[tuple[Words, Words]]]  # by block: for each of its tiles, the sets of both sides
Integers = NDArray[np.int64]


@final
@attrs.frozen(slots=False)
class ViewTests:
    """The tests of a view, and the sets of rows that are counted for it.

    The first sets are the rows of each test. Then come, for each attribute that may be missing, the rows where it is
    known. The last set is all rows.

    Attributes
    ----------
    attributes
        The attributes of the view.
    tests
        The tests of each attribute.
    """

    attributes: tuple[Attribute, ...]
    tests: tuple[tuple[Literal, ...], ...]

    @property
    def number(self) -> int:
        """The number of sets."""
        return sum(map(len, self.tests)) + sum(a.missing_code is not None for a in self.attributes) + 1

    @property
    def spans(self) -> list[slice]:
        """The positions of each attribute's tests among the sets."""
        ends = np.cumsum([0, *map(len, self.tests)]).tolist()
        return [slice(low, high) for low, high in itertools.pairwise(ends)]

    def known(self) -> Integers:
        """Return, for each test, the number of the set of rows where its attribute is known."""
        nullable = [a.name for a in self.attributes if a.missing_code is not None]
        start = sum(map(len, self.tests))
        sets = [
            nullable.index(a.name) if a.name in nullable else len(nullable)
            for a, tests in zip(self.attributes, self.tests, strict=True)
            for _ in tests
        ]
        return start + np.array(sets, dtype=np.int64)

    @functools.cached_property
    def test_codes(self) -> list[Integers]:
        """For each attribute, the code of each of its tests. A test of a numeric attribute holds up to that code."""
        found = []
        for attribute, tests in zip(self.attributes, self.tests, strict=True):
            code_of = {label: code for code, label in enumerate(attribute.labels)}
            codes = [code_of[test.value] for test in tests if isinstance(test, Equals)]
            found.append(np.arange(len(tests)) if isinstance(attribute, Numeric) else np.array(codes, dtype=np.int64))
        return found

    def words(self, block: Block) -> NDArray[np.uint64]:
        """Return the sets of a block's rows as bits, shape (sets, words of 64 rows). Bits beyond the rows may be 1."""
        from dpframework.redescriptions.kernels.match_kernels import fill_sets

        words = empty_words(self.number, block.rows)
        position, nullable = 0, sum(map(len, self.tests))
        for attribute, wanted in zip(self.attributes, self.test_codes, strict=True):
            # For each binary digit of the codes, from the lowest, the set of rows in which it is 1.
            codes = block.codes(attribute.name)
            number = (attribute.size - 1).bit_length()
            digits = empty_words(number, len(codes))
            pack(codes & (1 << np.arange(number)).astype(codes.dtype)[:, None], digits)
            fill_sets(digits, wanted, isinstance(attribute, Numeric), words[position : position + len(wanted)])
            position += len(wanted)
            if attribute.missing_code is not None:
                known = words[nullable : nullable + 1]
                fill_sets(digits, np.array([attribute.missing_code]), False, known)
                np.invert(known, out=known)
                nullable += 1
        words[-1] = ~np.uint64(0)
        return words

    def row_sets(self) -> list[RowSets]:
        """Return the sets as unions of cells: a `RowSets` for each attribute, and last one for the set of all rows."""
        nullable, tests, found = 0, sum(map(len, self.tests)), []
        for k, attribute in enumerate(self.attributes):
            codes, wanted = np.arange(attribute.size), self.test_codes[k][:, np.newaxis]
            places = list(range(self.number))[self.spans[k]]
            held = [codes <= wanted if isinstance(attribute, Numeric) else codes == wanted]
            if attribute.missing_code is not None:
                places.append(tests + nullable)
                held.append((codes != attribute.missing_code)[np.newaxis])
                nullable += 1
            members = np.concatenate(held).astype(np.int64)
            found.append(RowSets((attribute,), np.array(places, dtype=np.int64), functools.partial(np.copy, members)))
        return [*found, RowSets.everyone(self.number - 1)]

    def sums_over_tests(self, k: int, table: NDArray[Any]) -> NDArray[Any]:
        """Return, for each test of attribute k, the sum of a table over the codes for which the test holds."""
        return np.asarray(
            (table.cumsum(axis=0) if isinstance(self.attributes[k], Numeric) else table)[self.test_codes[k]]
        )


def empty_words(sets: int, rows: int) -> NDArray[np.uint64]:
    """Return empty sets of rows as bits, in words of 64 rows."""
    return np.zeros((sets, -(-rows // 64)), dtype=np.uint64)


def pack(masks: NDArray[Any], words: NDArray[np.uint64]) -> None:
    """Fill in words with bits that are 1 where masks are not 0."""
    bits = np.packbits(masks, axis=1)
    words.view(np.uint8)[:, : bits.shape[1]] = bits


def common_counts(
    block: Block,
    left: ViewTests,
    right: ViewTests,
    known: Sequence[Description],
    *,
    everyone: bool,
    sets: Sets | None = None,
) -> NDArray[np.int32]:
    """Count the rows of a block that are in both sets, for each pair of a left and a right set.

    Rows are counted among all rows, if `everyone`, and among the rows of each description in `known`. Sets of this
    block that are in `sets` are not computed again. Otherwise they are computed, and added to `sets` if there is room.

    Returns
    -------
    NDArray[np.int32]
        The counts, shape (all rows if `everyone` and then descriptions in `known`, left sets, right sets).
    """
    from dpframework.redescriptions.kernels.match_kernels import count_common

    # Where two attributes have many pairs of tests, their cross table takes less time than intersecting sets of bits.
    tabled = [
        (i, j)
        for i in range(len(left.tests))
        for j in range(len(right.tests))
        if len(left.tests[i]) * len(right.tests[j]) > MOST_AS_BITS
    ]
    as_bits = np.ones((left.number, right.number), dtype=np.bool_)
    for i, j in tabled:
        as_bits[left.spans[i], right.spans[j]] = False
    within = len(known) + everyone
    counts = np.zeros((within, left.number, right.number), dtype=np.int32)
    tables = {
        (i, j): np.zeros((within, left.attributes[i].size, right.attributes[j].size), dtype=np.int64) for i, j in tabled
    }
    for tile, of_left, of_right in _tiles(block, left, right, sets):
        masks = [*([np.ones(tile.rows, dtype=np.bool_)] * everyone), *(d.holds(tile) for d in known)]
        chosen = empty_words(within, tile.rows)
        pack(np.array(masks), chosen)
        count_common(of_left, of_right, chosen, as_bits, counts)
        if tabled:
            _add_tables(tile, left, right, masks, tables)
    for (i, j), table in tables.items():
        for k in range(within):
            sums = right.sums_over_tests(j, left.sums_over_tests(i, table[k]).T).T
            counts[k, left.spans[i], right.spans[j]] = sums
    return counts


def common_tables(left: ViewTests, right: ViewTests, known: Sequence[Description], *, everyone: bool) -> JointCounts:
    """Return the cross tables from which the counts of `common_counts` can be computed."""
    shape = left.number, right.number
    return in_common(left.row_sets(), right.row_sets(), shape, [*([None] * everyone), *known])


def _tiles(block: Block, left: ViewTests, right: ViewTests, sets: Sets | None) -> Iterator[tuple[Block, Words, Words]]:
    """Yield a block's tiles, each with the sets of both sides."""
    held = None if sets is None else sets.get(block)
    kept = [] if sets is None else list(sets.values())  # a copy, since another thread may add sets meanwhile
    taken = sum(words.nbytes for tiles in kept for pair in tiles for words in pair)
    room = taken + (left.number + right.number) * (block.rows // 8) <= MOST_KEPT
    made = []
    for k, tile in enumerate(block.tiles(TILE)):
        words = (left.words(tile), right.words(tile)) if held is None else held[k]
        yield tile, *words
        if held is None and room:
            made.append(words)
    if sets is not None and room:
        sets.setdefault(block, made)


def _add_tables(
    block: Block,
    left: ViewTests,
    right: ViewTests,
    masks: Sequence[Masks],
    tables: dict[tuple[int, int], NDArray[np.int64]],
) -> None:
    """Add a block's rows within each mask to the tables of pairs of attributes."""
    sides = (left, 0), (right, 1)
    columns = [{p[k]: block.codes(side.attributes[p[k]].name) for p in tables} for side, k in sides]
    for m, mask in enumerate(masks):
        chosen = [{k: codes.compress(mask) for k, codes in side.items()} for side in columns]
        for (i, j), table in tables.items():
            cells = joint_codes((chosen[0][i], chosen[1][j]), table.shape[1:])
            table[m] += np.bincount(cells, minlength=table[m].size).reshape(table.shape[1:])
