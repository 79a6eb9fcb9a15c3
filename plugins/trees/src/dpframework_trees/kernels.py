"""Numba kernels of the trees plugin: class counts of codes, scores of splits, and samplers of whole trees.

Symbols: counts[v, c] is the number of rows with code v (codes of all attributes in one line, one attribute after the
other) and class c; f is the criterion of one child or leaf, and the score of a split or tree is the sum of f over them.

Whole trees are complete: d levels of tests, in heap order (the children of node k are 2 k + 1, where its test holds,
and 2 k + 2), then 2**d leaves. Rows are bits: bits[t] has a 1 for each row that test t holds for, class_bits[c] for
each row of class c, in words of 64 rows; a bit that stands for no row is 0 in every class.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from dpframework_trees.criteria import GINI, MAX, NORM
from dpframework_trees.splits import BELOW, MULTIWAY


@njit(nogil=True, cache=True)
def add_class_counts(
    matrix: NDArray[Any],
    index: NDArray[np.int32],
    attributes: NDArray[np.int64],
    sizes: NDArray[np.int64],
    classes: NDArray[Any],
    counts: NDArray[np.int64],
) -> None:
    """Add each row to counts[its code of attributes[k], its class], attribute after attribute.

    `sizes` holds each attribute's number of codes; `classes` is given for the rows of `index`, in their order,
    `matrix` for all rows of the block. Rows are dealt out to four tables: where many rows in turn fall in one cell,
    an addition then need not wait for the one before it (twice as fast on skewed attributes).
    """
    n_classes = counts.shape[1]
    tables = np.zeros((4, sizes.max() * n_classes if len(sizes) else 0), dtype=np.int32)
    first, second, third, fourth = tables[0], tables[1], tables[2], tables[3]
    stride = np.uint32(n_classes)
    whole = len(index) - len(index) % 4
    offset = 0
    for k in range(len(attributes)):
        codes = matrix[attributes[k]]
        tables[:] = 0
        for i in range(0, whole, 4):
            first[np.uint32(codes[index[i]]) * stride + classes[i]] += 1
            second[np.uint32(codes[index[i + 1]]) * stride + classes[i + 1]] += 1
            third[np.uint32(codes[index[i + 2]]) * stride + classes[i + 2]] += 1
            fourth[np.uint32(codes[index[i + 3]]) * stride + classes[i + 3]] += 1
        for i in range(whole, len(index)):
            first[np.uint32(codes[index[i]]) * stride + classes[i]] += 1
        for v in range(sizes[k]):
            for c in range(n_classes):
                cell = v * n_classes + c
                counts[offset + v, c] += first[cell] + second[cell] + third[cell] + fourth[cell]
        offset += sizes[k]


@njit(nogil=True, cache=True)
def child_score(counts: NDArray[np.int64], criterion: int) -> float:
    """Return f of one child's class counts, shape (classes,)."""
    total = 0.0
    largest = 0.0
    for n in counts:
        total += n
        largest = max(largest, n)
    if total == 0:
        return 0.0
    if criterion == MAX:
        return largest
    score = 0.0
    if criterion == NORM:
        for n in counts:
            score += (n / largest) ** 3
        return largest * math.exp(math.log(score) / 3)
    if criterion == GINI:
        for n in counts:
            score += n * (n / total)
        return score
    for n in counts:
        if n > 0:
            score += n * math.log2(n / total)
    return score


@njit(nogil=True, cache=True)
def split_scores(
    counts: NDArray[np.int64],
    slots: NDArray[np.int64],
    widths: NDArray[np.int64],
    kinds: NDArray[np.int8],
    codes: NDArray[np.int64],
    criterion: int,
    scores: NDArray[np.float64],
) -> None:
    """Fill in the score of every candidate.

    Candidate i splits on the attribute whose codes are counts[slots[i] : slots[i] + widths[i]]. Off-grid candidates
    have their true side's counts in counts[slots[i]] and their false side's in counts[slots[i] + 1].
    """
    n_classes = counts.shape[1]
    held = np.zeros(n_classes, dtype=np.int64)
    rest = np.zeros(n_classes, dtype=np.int64)
    for i in range(len(slots)):
        first, width = slots[i], widths[i]
        if kinds[i] == MULTIWAY:
            total = 0.0
            for v in range(first, first + width):
                total += child_score(counts[v], criterion)
            scores[i] = total
            continue
        held[:] = 0
        rest[:] = 0
        for v in range(width):
            on_true_side = v <= codes[i] if kinds[i] == BELOW else v == codes[i]
            for c in range(n_classes):
                if on_true_side:
                    held[c] += counts[first + v, c]
                else:
                    rest[c] += counts[first + v, c]
        scores[i] = child_score(held, criterion) + child_score(rest, criterion)


@njit(nogil=True, cache=True)
def threshold_scores(
    values: NDArray[np.float64],
    classes: NDArray[Any],
    missing: NDArray[np.int64],
    criterion: int,
    scores: NDArray[np.float64],
) -> None:
    """Fill in the score of a threshold between each two neighbours of sorted values, and at both ends.

    scores[i] belongs to a threshold with the first i values below it; missing values are never below.
    """
    n_classes = len(missing)
    below = np.zeros(n_classes, dtype=np.int64)
    above = missing.copy()
    for c in classes:
        above[c] += 1
    scores[0] = child_score(below, criterion) + child_score(above, criterion)
    for i in range(len(values)):
        below[classes[i]] += 1
        above[classes[i]] -= 1
        scores[i + 1] = child_score(below, criterion) + child_score(above, criterion)


@intrinsic
def popcount(context: Any, word: Any) -> Any:
    """Return the number of ones in a 64-bit word, by the processor's own instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@njit(nogil=True, cache=True)
def pack_tests(
    matrix: NDArray[Any],
    index: NDArray[np.int32],
    attributes: NDArray[np.int64],
    kinds: NDArray[np.int8],
    codes: NDArray[np.int64],
    bits: NDArray[np.uint64],
) -> None:
    """Set a bit of bits[t] for each row of `index` whose code of attributes[t] passes test t (EQUALS or BELOW).

    Codes are laid out in the order of the rows, once for all tests on an attribute that follow each other: then the
    compiler compares many at once.
    """
    rows, words = len(index), bits.shape[1]
    values = np.zeros(64 * words, dtype=matrix.dtype)
    last = ~np.uint64(0) >> np.uint64(-rows % 64)  # the bits of rows in the last word
    for t in range(len(attributes)):
        if t == 0 or attributes[t] != attributes[t - 1]:
            column = matrix[attributes[t]]
            for i in range(rows):
                values[i] = column[index[i]]
        code = codes[t]
        for w in range(words):
            word = np.uint64(0)
            if kinds[t] == BELOW:
                for b in range(64):
                    word |= np.uint64(values[64 * w + b] <= code) << np.uint64(b)
            else:
                for b in range(64):
                    word |= np.uint64(values[64 * w + b] == code) << np.uint64(b)
            bits[t, w] = word
        if words:
            bits[t, words - 1] &= last


@njit(nogil=True, cache=True)
def pack_classes(classes: NDArray[Any], class_bits: NDArray[np.uint64]) -> None:
    """Set a bit of class_bits[its class] for each row."""
    for i in range(len(classes)):
        class_bits[classes[i], i >> 6] |= np.uint64(1) << np.uint64(i & 63)


@njit(nogil=True, cache=True)
def add_leaf_codes(
    matrix: NDArray[Any],
    index: NDArray[np.int32],
    attributes: NDArray[np.int64],
    kinds: NDArray[np.int8],
    codes: NDArray[np.int64],
    depth: int,
    leaves: NDArray[np.int64],
) -> None:
    """Fill in the leaf of each row: test k of a complete tree asks attributes[k] for a code."""
    for i in range(len(index)):
        node = 0
        for _ in range(depth):
            value = matrix[attributes[node], index[i]]
            held = value <= codes[node] if kinds[node] == BELOW else value == codes[node]
            node = 2 * node + (1 if held else 2)
        leaves[i] = node - ((1 << depth) - 1)


@njit(nogil=True, cache=True)
def common(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> int:
    """Return the number of rows in both of two sets."""
    total = 0
    for w in range(len(one)):
        total += popcount(one[w] & other[w])
    return int(total)


@njit(nogil=True, cache=True)
def _part(
    rows: NDArray[np.uint64], test: NDArray[np.uint64], held: NDArray[np.uint64], rest: NDArray[np.uint64]
) -> None:
    for w in range(len(rows)):
        held[w] = rows[w] & test[w]
        rest[w] = rows[w] & ~test[w]


@njit(nogil=True, cache=True)
def _reroute(
    bits: NDArray[np.uint64],
    tests: NDArray[np.int64],
    node: int,
    test: int,
    inner: int,
    members: NDArray[np.uint64],
    which: NDArray[np.int8],
) -> None:
    """Put the rows of each node below `node` in its spare set, as if `node` asked `test`."""
    first = last = node
    while first < inner:
        for k in range(first, last + 1):
            rows = members[which[k] if k == node else 1 - which[k], k]
            left, right = 2 * k + 1, 2 * k + 2
            asked = test if k == node else tests[k]
            _part(rows, bits[asked], members[1 - which[left], left], members[1 - which[right], right])
        first, last = 2 * first + 1, 2 * last + 2


@njit(nogil=True, cache=True)
def _keep(node: int, nodes: int, which: NDArray[np.int8]) -> None:
    """Take the spare sets of all nodes below `node` for their own."""
    first, last = 2 * node + 1, 2 * node + 2
    while first < nodes:
        for k in range(first, last + 1):
            which[k] = 1 - which[k]
        first, last = 2 * first + 1, 2 * last + 2


@njit(nogil=True, cache=True)
def _leaves_below(node: int, inner: int) -> tuple[int, int]:
    """Return the first leaf below a node, and the one after the last, counted from 0."""
    first = last = node
    while first < inner:
        first, last = 2 * first + 1, 2 * last + 2
    return first - inner, last - inner + 1


@njit(nogil=True, cache=True)
def place_rows(
    bits: NDArray[np.uint64], tests: NDArray[np.int64], members: NDArray[np.uint64], which: NDArray[np.int8]
) -> None:
    """Put the rows of every node below the root, whose own are members[which[0], 0], in its own set."""
    inner = len(tests)
    for k in range(inner):
        left, right = 2 * k + 1, 2 * k + 2
        _part(members[which[k], k], bits[tests[k]], members[which[left], left], members[which[right], right])


@njit(nogil=True, cache=True)
def leaf_counts(
    members: NDArray[np.uint64], which: NDArray[np.int8], class_bits: NDArray[np.uint64], counts: NDArray[np.int64]
) -> None:
    """Fill in counts[leaf, class]."""
    inner = len(which) - len(counts)
    for leaf in range(len(counts)):
        for c in range(len(class_bits)):
            counts[leaf, c] = common(members[which[inner + leaf], inner + leaf], class_bits[c])


@njit(nogil=True, cache=True)
def walk_trees(
    bits: NDArray[np.uint64],
    class_bits: NDArray[np.uint64],
    criterion: int,
    scale: float,
    tests: NDArray[np.int64],
    members: NDArray[np.uint64],
    which: NDArray[np.int8],
    nodes: NDArray[np.int64],
    proposals: NDArray[np.int64],
    log_uniforms: NDArray[np.float64],
) -> int:
    """Walk over trees by Metropolis and Hastings: step i gives node nodes[i] the test proposals[i], or does not.

    A proposal is as likely as its reverse, so it is accepted with probability min(1, exp((new - old) / scale)) of the
    scores. The walk ends in `tests`; returns how many proposals were accepted.
    """
    inner = len(tests)
    counts = np.zeros(len(class_bits), dtype=np.int64)
    scores = np.zeros(inner + 1)
    proposed = np.zeros(inner + 1)
    for leaf in range(inner + 1):
        for c in range(len(class_bits)):
            counts[c] = common(members[which[inner + leaf], inner + leaf], class_bits[c])
        scores[leaf] = child_score(counts, criterion)
    accepted = 0
    for i in range(len(nodes)):
        node = nodes[i]
        _reroute(bits, tests, node, proposals[i], inner, members, which)
        first, end = _leaves_below(node, inner)
        change = 0.0
        for leaf in range(first, end):
            spare = 1 - which[inner + leaf]
            for c in range(len(class_bits)):
                counts[c] = common(members[spare, inner + leaf], class_bits[c])
            proposed[leaf] = child_score(counts, criterion)
            change += proposed[leaf] - scores[leaf]
        if log_uniforms[i] <= change / scale:
            accepted += 1
            tests[node] = proposals[i]
            _keep(node, 2 * inner + 1, which)
            scores[first:end] = proposed[first:end]
    return accepted


@njit(nogil=True, cache=True)
def pair_score(target_counts: NDArray[np.int64], joint: NDArray[np.int64], criterion: int, product: bool) -> float:
    """Return the score of a pair of trees, from counts by class in leaves of the first, and in pairs of leaves.

    The first tree is scored by the target's classes, the second by the leaves of the first, which are the columns of
    `joint`. The score is half of the first's and of what the second gains over no tree at all; or, as published, the
    first's times half of one plus the second's share of the rows.
    """
    first = second = 0.0
    for leaf in range(len(target_counts)):
        first += child_score(target_counts[leaf], criterion)
    for leaf in range(len(joint)):
        second += child_score(joint[leaf], criterion)
    if product:
        rows = joint.sum()
        return float(first * (1 + second / rows) / 2) if rows else 0.0
    return float((first + second - child_score(joint.sum(axis=0), criterion)) / 2)


@njit(nogil=True, cache=True)
def walk_pairs(
    first_bits: NDArray[np.uint64],
    second_bits: NDArray[np.uint64],
    class_bits: NDArray[np.uint64],
    criterion: int,
    product: bool,
    scale: float,
    first_tests: NDArray[np.int64],
    second_tests: NDArray[np.int64],
    first_members: NDArray[np.uint64],
    second_members: NDArray[np.uint64],
    first_which: NDArray[np.int8],
    second_which: NDArray[np.int8],
    nodes: NDArray[np.int64],
    proposals: NDArray[np.int64],
    log_uniforms: NDArray[np.float64],
) -> int:
    """Walk over pairs of trees as `walk_trees` does over trees; nodes from len(first_tests) on are the second's."""
    inner, other = len(first_tests), len(second_tests)
    counts = np.zeros((2, inner + 1, len(class_bits)), dtype=np.int64)
    joint = np.zeros((2, other + 1, inner + 1), dtype=np.int64)
    leaf_counts(first_members, first_which, class_bits, counts[0])
    for leaf in range(inner + 1):
        for beside in range(other + 1):
            joint[0, beside, leaf] = common(
                first_members[first_which[inner + leaf], inner + leaf],
                second_members[second_which[other + beside], other + beside],
            )
    counts[1], joint[1] = counts[0], joint[0]
    score = pair_score(counts[0], joint[0], criterion, product)
    accepted = 0
    for i in range(len(nodes)):
        if nodes[i] < inner:
            node = nodes[i]
            _reroute(first_bits, first_tests, node, proposals[i], inner, first_members, first_which)
            first, end = _leaves_below(node, inner)
            for leaf in range(first, end):
                rows = first_members[1 - first_which[inner + leaf], inner + leaf]
                for c in range(len(class_bits)):
                    counts[1, leaf, c] = common(rows, class_bits[c])
                for beside in range(other + 1):
                    joint[1, beside, leaf] = common(rows, second_members[second_which[other + beside], other + beside])
        else:
            node = nodes[i] - inner
            _reroute(second_bits, second_tests, node, proposals[i], other, second_members, second_which)
            first, end = _leaves_below(node, other)
            for beside in range(first, end):
                rows = second_members[1 - second_which[other + beside], other + beside]
                for leaf in range(inner + 1):
                    joint[1, beside, leaf] = common(rows, first_members[first_which[inner + leaf], inner + leaf])
        reached = pair_score(counts[1], joint[1], criterion, product)
        kept = log_uniforms[i] <= (reached - score) / scale
        if kept:
            accepted += 1
            score = reached
        source, sink = (1, 0) if kept else (0, 1)
        if nodes[i] < inner:
            counts[sink, first:end] = counts[source, first:end]
            joint[sink, :, first:end] = joint[source, :, first:end]
            if kept:
                first_tests[node] = proposals[i]
                _keep(node, 2 * inner + 1, first_which)
        else:
            joint[sink, first:end] = joint[source, first:end]
            if kept:
                second_tests[node] = proposals[i]
                _keep(node, 2 * other + 1, second_which)
    return accepted


@njit(nogil=True, cache=True)
def arrange(bits: NDArray[np.uint64], source: NDArray[np.int64], arranged: NDArray[np.uint64]) -> None:
    """Give row source[i] of each set the place i; where there is none (-1) the bit stays 0."""
    for t in range(len(bits)):
        for i in range(len(source)):
            row = source[i]
            if row >= 0 and (bits[t, row >> 6] >> np.uint64(row & 63)) & np.uint64(1):
                arranged[t, i >> 6] |= np.uint64(1) << np.uint64(i & 63)


@njit(nogil=True, cache=True)
def count_classes(
    rows: NDArray[np.uint64], test: NDArray[np.uint64], starts: NDArray[np.int64], counts: NDArray[Any]
) -> None:
    """Fill in counts[c]: rows of a set that a test holds for, where words starts[c] to starts[c + 1] hold class c."""
    for c in range(len(counts)):
        total = np.int64(0)
        for w in range(starts[c], starts[c + 1]):
            total += popcount(rows[w] & test[w])
        counts[c] = total


@njit(nogil=True, cache=True)
def count_tests(
    bits: NDArray[np.uint64], rows: NDArray[np.uint64], starts: NDArray[np.int64], counts: NDArray[np.int32]
) -> None:
    """Fill in counts[t, c]: rows of a set that test t holds for, by class; counts[-1, c] is for all rows of the set."""
    for t in range(len(bits)):
        count_classes(rows, bits[t], starts, counts[t])
    count_classes(rows, rows, starts, counts[-1])


@njit(nogil=True, cache=True)
def count_pairs(
    bits: NDArray[np.uint64], rows: NDArray[np.uint64], starts: NDArray[np.int64], pairs: NDArray[np.int32]
) -> None:
    """Fill in pairs[t, u, c] for t < u: rows of a set that both tests hold for, by class."""
    for t in range(len(bits)):
        held = rows & bits[t]
        for u in range(t + 1, len(bits)):
            count_classes(held, bits[u], starts, pairs[t, u])


@njit(nogil=True, cache=True)
def log_weights_of_stumps(
    counts: NDArray[np.int32], criterion: int, scale: float, weights: NDArray[np.float64]
) -> None:
    """Fill in the log-weight of each tree of one test, from `count_tests`."""
    rest = np.zeros(counts.shape[1], dtype=np.int64)
    for t in range(len(weights)):
        for c in range(len(rest)):
            rest[c] = counts[-1, c] - counts[t, c]
        weights[t] = (child_score(counts[t], criterion) + child_score(rest, criterion)) / scale


@njit(nogil=True, cache=True, inline="always")
def _add(log_weight: float, top: NDArray[np.float64], total: NDArray[np.float64], k: int) -> None:
    """Add a weight to the sum exp(top[k]) total[k]."""
    if log_weight <= top[k]:
        total[k] += math.exp(log_weight - top[k])
    else:
        total[k] = total[k] * math.exp(top[k] - log_weight) + 1.0
        top[k] = log_weight


@njit(nogil=True, cache=True)
def _add_pairs_of(
    t: int,
    pairs: NDArray[np.int32],
    counts: NDArray[np.int32],
    scores: NDArray[np.float64],
    criterion: int,
    scale: float,
    top: NDArray[np.float64],
    total: NDArray[np.float64],
) -> None:
    """Add the weights of all subtrees of one test below a root, where root and test are t and any u >= t.

    top[side, root] and total[side, root] sum over the tests on one side of a root; scores[side, t] is of the leaf on
    one side of t.
    """
    cell = np.zeros((4, counts.shape[1]), dtype=np.int64)
    for side in range(2):
        _add(scores[side, t] / scale, top[side], total[side], t)  # t again, below t: one leaf is empty
    for u in range(t + 1, len(pairs)):
        for c in range(counts.shape[1]):
            both = pairs[u, c]
            cell[0, c] = both
            cell[1, c] = counts[t, c] - both
            cell[2, c] = counts[u, c] - both
            cell[3, c] = counts[-1, c] - counts[t, c] - counts[u, c] + both
        both_score, t_score = child_score(cell[0], criterion), child_score(cell[1], criterion)
        u_score, neither_score = child_score(cell[2], criterion), child_score(cell[3], criterion)
        _add((both_score + t_score) / scale, top[0], total[0], t)
        _add((u_score + neither_score) / scale, top[1], total[1], t)
        _add((both_score + u_score) / scale, top[0], total[0], u)
        _add((t_score + neither_score) / scale, top[1], total[1], u)


@njit(nogil=True, cache=True)
def log_weights_of_pairs(
    pairs: NDArray[np.int32],
    counts: NDArray[np.int32],
    criterion: int,
    scale: float,
    top: NDArray[np.float64],
    total: NDArray[np.float64],
) -> None:
    """Sum up the weights of all trees of one test below each root (see `_add_pairs_of`), from all `count_pairs`."""
    scores = _side_scores(counts, criterion)
    for t in range(len(pairs)):
        _add_pairs_of(t, pairs[t], counts, scores, criterion, scale, top, total)


@njit(nogil=True, cache=True)
def log_weights_of_rows(
    bits: NDArray[np.uint64],
    rows: NDArray[np.uint64],
    starts: NDArray[np.int64],
    counts: NDArray[np.int32],
    criterion: int,
    scale: float,
    first: int,
    stride: int,
    top: NDArray[np.float64],
    total: NDArray[np.float64],
) -> None:
    """Do the share of `log_weights_of_pairs` that has t = first, first + stride, ..., counting pairs on the way.

    Memory grows with the tests, not with their pairs.
    """
    scores = _side_scores(counts, criterion)
    pairs = np.zeros((len(bits), counts.shape[1]), dtype=np.int32)
    for t in range(first, len(bits), stride):
        held = rows & bits[t]
        for u in range(t + 1, len(bits)):
            count_classes(held, bits[u], starts, pairs[u])
        _add_pairs_of(t, pairs, counts, scores, criterion, scale, top, total)


@njit(nogil=True, cache=True)
def _side_scores(counts: NDArray[np.int32], criterion: int) -> NDArray[np.float64]:
    scores = np.zeros((2, len(counts) - 1))
    for t in range(len(counts) - 1):
        scores[0, t] = child_score(counts[t], criterion)
        scores[1, t] = child_score(counts[-1] - counts[t], criterion)
    return scores


@njit(nogil=True, cache=True)
def best_associations(
    bits: NDArray[np.uint64],
    others: NDArray[np.uint64],
    rows: NDArray[np.uint64],
    tests: NDArray[np.int64],
    scores: NDArray[np.float64],
) -> None:
    """Fill in, for each of some tests t, the largest abs(n_tu - n_t n_u / n) over the other view's tests u.

    n_tu is the number of rows that both hold for, n that of all rows.
    """
    n = common(rows, rows)
    held = np.zeros(len(others), dtype=np.int64)
    for u in range(len(others)):
        held[u] = common(others[u], rows)
    for k in range(len(tests)):
        own = bits[tests[k]]
        n_t = common(own, rows)
        best = 0.0
        for u in range(len(others)):
            if n > 0:
                best = max(best, abs(common(own, others[u]) - n_t * (held[u] / n)))
        scores[k] = best


@njit(nogil=True, cache=True, inline="always")
def _cautious_jaccard(both: float, apart: float, both_cells: int, apart_cells: int, variance: float) -> float:
    """Return the Jaccard index of two unions of leaves less two standard deviations of its noise, to first order."""
    both, apart = max(both, 0.0), max(apart, 0.0)
    either = both + apart
    if either <= 0:
        return -1.0
    jaccard = both / either
    noise = (1 - jaccard) ** 2 * both_cells + jaccard**2 * apart_cells
    return jaccard - 2 * math.sqrt(noise * variance) / either


@njit(nogil=True, cache=True)
def grow_unions(table: NDArray[np.float64], variance: float, most_added: int, unions: NDArray[np.bool_]) -> int:
    """Fill in a union of leaves of the left and one of the right tree, side by side, for each start.

    A start is a leaf or all but one on either side; leaves, or all but one, are joined to either side, `most_added`
    times a side at most, while the cautious Jaccard index grows. Returns how many pairs of unions were looked at.

    What a leaf adds is known from sums that are kept up to date: `sizes` counts the leaves of either union, rows[side]
    is their support, `both` the support of both, and inside[side, leaf] the rows of a leaf that the other union holds.
    """
    leaves = np.array(table.shape)
    member = np.zeros((2, leaves.max()), dtype=np.bool_)
    whole, inside = np.zeros(member.shape), np.zeros(member.shape)
    whole[0, : leaves[0]], whole[1, : leaves[1]] = table.sum(axis=1), table.sum(axis=0)
    total = table.sum()
    sizes, added, rows = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64), np.zeros(2)
    looked_at = start = 0
    for negated_left in range(2):
        for negated_right in range(2):
            for i in range(leaves[0]):
                for j in range(leaves[1]):
                    sizes[:], added[:], rows[:] = 0, 0, 0.0
                    member[:], inside[:] = False, 0.0
                    both = 0.0
                    for side, leaf, negated in ((0, i, negated_left), (1, j, negated_right)):
                        both = _join(
                            table, whole, total, leaves, member, inside, sizes, rows, both, side, leaf, negated == 1
                        )
                    best = _cautious_jaccard(
                        both,
                        rows[0] + rows[1] - 2 * both,
                        sizes[0] * sizes[1],
                        sizes[0] * leaves[1] + sizes[1] * leaves[0] - 2 * sizes[0] * sizes[1],
                        variance,
                    )
                    looked_at += 1
                    while True:
                        side, leaf, rest = -1, -1, False
                        score = best
                        for own in range(2):
                            if added[own] >= most_added:
                                continue
                            other = 1 - own
                            for k in range(leaves[own]):
                                held = member[own, k]
                                for negated in range(2):
                                    if negated == 0:
                                        if held:
                                            continue
                                        joined = both + inside[own, k]
                                        support, size = rows[own] + whole[own, k], sizes[own] + 1
                                    elif held:  # together with the rest that is everything
                                        joined, support, size = rows[other], total, leaves[own]
                                    else:
                                        joined = rows[other] - inside[own, k]
                                        support, size = total - whole[own, k], leaves[own] - 1
                                    looked_at += 1
                                    reached = _cautious_jaccard(
                                        joined,
                                        support + rows[other] - 2 * joined,
                                        size * sizes[other],
                                        size * leaves[other] + sizes[other] * leaves[own] - 2 * size * sizes[other],
                                        variance,
                                    )
                                    if reached > score + 1e-12:
                                        score, side, leaf, rest = reached, own, k, negated == 1
                        if side < 0:
                            break
                        both = _join(table, whole, total, leaves, member, inside, sizes, rows, both, side, leaf, rest)
                        added[side] += 1
                        best = score
                    unions[start, : leaves[0]] = member[0, : leaves[0]]
                    unions[start, leaves[0] :] = member[1, : leaves[1]]
                    start += 1
    return looked_at


@njit(nogil=True, cache=True)
def _join(
    table: NDArray[np.float64],
    whole: NDArray[np.float64],
    total: float,
    leaves: NDArray[np.int64],
    member: NDArray[np.bool_],
    inside: NDArray[np.float64],
    sizes: NDArray[np.int64],
    rows: NDArray[np.float64],
    both: float,
    side: int,
    leaf: int,
    rest: bool,
) -> float:
    """Join a leaf, or all but it, to the union of one side; return the new support of both (see `grow_unions`)."""
    other = 1 - side
    held = member[side, leaf]
    if rest:
        both = rows[other] if held else rows[other] - inside[side, leaf]
        rows[side] = total if held else total - whole[side, leaf]
        sizes[side] = leaves[side] if held else leaves[side] - 1
        member[side, : leaves[side]] = True
        member[side, leaf] = held
    else:
        both += inside[side, leaf]
        rows[side] += whole[side, leaf]
        sizes[side] += 1
        member[side, leaf] = True
    for k in range(leaves[other]):
        cell = table[leaf, k] if side == 0 else table[k, leaf]
        if not rest:
            inside[other, k] += cell
        else:
            inside[other, k] = whole[other, k] if held else whole[other, k] - cell
    return both
