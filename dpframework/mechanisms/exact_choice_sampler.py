"""Exact choices among candidates, by buckets of candidates of similar probability, without any sum of exponentials.

Let d_i >= 0 be how far the score of candidate i is below the largest score, and p_i = exp(-d_i / s), with s the scale
of the noise. Candidate i is in bucket k_i = min(63, floor(d_i rate)), for a rate slightly below 1 / (s ln 2). So
p_i <= 2**-k_i, even if the product of d_i and the rate was rounded up. Let c_k be the number of candidates in bucket k.

**The exponential mechanism** (Gumbel noise, McSherry and Talwar 2007) chooses i with probability proportional to p_i.
Draw a bucket k with probability proportional to the whole number c_k 2**(63-k), then a uniform member i of the bucket.
Accept i if U < p_i, for a uniform number U between 0 and 2**-k, else begin anew. A round ends with i with a probability
proportional to 2**-k_i (p_i 2**k_i) = p_i, as it should. Members of all buckets except the last are accepted with a
probability of about 1/2 or more. So the expected number of rounds is about two or less. Members of bucket 63 may be
accepted less often, but each has a weight of only 1, and the best candidate alone has a weight of 2**63.

**Permute-and-flip** (exponential noise, McKenna and Sheldon 2020; Ding and others 2021) visits candidates in a uniform
order. It accepts i with probability p_i, that is if U_i < p_i for a uniform U_i between 0 and 1. Only candidates with
U_i < 2**-k_i can be accepted. They are the *survivors*: each member of bucket k survives independently with probability
2**-k. So the following steps have the same result:

- Draw how many members of each bucket survive: in each of k rounds, toss a coin for each member that is left.
- Visit the survivors in a uniform order. The next one is in a bucket with probability proportional to the number of
  survivors left there. Each member of that bucket that was not visited yet is equally likely to be the next one. The
  reason is that all members are equally likely to survive, and that the refusal of one candidate says nothing about the
  others.
- Accept this member i if U < p_i, for a uniform U between 0 and 2**-k.

In bucket 0 all survive, among them the best candidate. Its p_i is 1, so the visits end with it at the latest.

Whole numbers are drawn uniformly by rejection, and comparisons with exponentials are exact (see `uniforms`).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframework.mechanisms.lattice_rounding import AT_ONCE, Scores
from dpframework.mechanisms.uniforms import WORD_BITS, DrawWords, Uniform, WholeNumbers

LARGEST_SCALE, SMALLEST_SCALE = 2.0**500, 2.0**-500
_LAST = 63  # the last bucket


def exponential_choice(words: DrawWords, scores: Scores, scale: float) -> int:
    """Return position i with probability proportional to exp(scores[i] / scale), exactly.

    Parameters
    ----------
    words
        The function that draws words of 64 uniform bits.
    scores
        The scores of one or more candidates, shape (candidates,). Any numbers of type int64.
    scale
        The scale of the noise, from `SMALLEST_SCALE` to `LARGEST_SCALE`.
    """
    buckets, members = buckets_of(scores, scale)
    weights, top = [number << _LAST - k for k, number in enumerate(members)], int(scores.max())
    numbers = WholeNumbers(words)
    while True:
        bucket = _draw_by_weight(weights, numbers)
        i = _member(buckets, bucket, numbers.below(weights[bucket] >> _LAST - bucket))
        if _accepts(top - int(scores[i]), bucket, scale, words):
            return i


def permute_and_flip(words: DrawWords, scores: Scores, scale: float) -> int:
    """Return the position that permute-and-flip chooses, accepting i with probability exp(-d_i / scale), exactly.

    Parameters
    ----------
    words, scores, scale
        As for `exponential_choice`.
    """
    buckets, members = buckets_of(scores, scale)
    top = int(scores.max())
    left = [survivors(words, number, k) for k, number in enumerate(members)]
    numbers, visited = WholeNumbers(words), set[int]()
    while True:
        bucket = _draw_by_weight(left, numbers)
        while (i := _member(buckets, bucket, numbers.below(members[bucket]))) in visited:
            pass
        if _accepts(top - int(scores[i]), bucket, scale, words):
            return i
        visited.add(i)
        left[bucket] -= 1


def buckets_of(scores: Scores, scale: float) -> tuple[NDArray[np.uint8], list[int]]:
    """Return the bucket of each score, and the size of each bucket. Works in chunks, for millions of scores."""
    top, rate = scores.max().astype(np.uint64), (1 - 2.0**-40) / (scale * math.log(2))
    buckets, members = np.empty(len(scores), dtype=np.uint8), np.zeros(_LAST + 1, dtype=np.int64)
    for start in range(0, len(scores), AT_ONCE):
        below = top - scores[start : start + AT_ONCE].astype(np.uint64)  # exact, as differences are below 2**64
        some = np.minimum(below.astype(np.float64) * rate, _LAST).astype(np.int64)
        members += np.bincount(some, minlength=_LAST + 1)
        buckets[start : start + AT_ONCE] = some
    return buckets, members.tolist()


def _draw_by_weight(weights: list[int], numbers: WholeNumbers) -> int:
    """Return a position with probability proportional to its weight."""
    at = numbers.below(sum(weights))
    for position, weight in enumerate(weights):
        if at < weight:
            return position
        at -= weight
    raise AssertionError("the number is below the sum of the weights")


def _member(buckets: NDArray[np.uint8], bucket: int, rank: int) -> int:
    """Return the position of the member of a bucket that has `rank` other members before it."""
    for start in range(0, len(buckets), AT_ONCE):
        found = np.flatnonzero(buckets[start : start + AT_ONCE] == bucket)
        if rank < len(found):
            return start + int(found[rank])
        rank -= len(found)
    raise AssertionError("the rank is below the number of members")


def survivors(words: DrawWords, number: int, rounds: int) -> int:
    """Toss `number` coins in each of `rounds` rounds. Return how many of them show heads in every round."""
    for _ in range(rounds):
        if not number:
            break
        drawn = int.from_bytes(words(-(-number // WORD_BITS)).tobytes(), "little")
        number = (drawn & ((1 << number) - 1)).bit_count()
    return number


def _accepts(below: int, bucket: int, scale: float, words: DrawWords) -> bool:
    """Draw a uniform number below 2**-bucket, and tell whether it is below exp(-below / scale)."""
    if not below:
        return True
    uniform = Uniform(int(words(1).item()), WORD_BITS + bucket, words)
    return uniform.below_exp(-below / Fraction(scale))
