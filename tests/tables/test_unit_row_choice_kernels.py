"""SipHash-2-4 of one word, beside the algorithm as its authors write it, in Python's whole numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from dpframework.tables.unit_row_choice_kernels import siphash

WORD = st.integers(0, 2**64 - 1)


def turn(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) % 2**64


def rounds(v: list[int], number: int) -> None:
    for _ in range(number):
        v[0], v[2] = (v[0] + v[1]) % 2**64, (v[2] + v[3]) % 2**64
        v[1], v[3] = turn(v[1], 13) ^ v[0], turn(v[3], 16) ^ v[2]
        v[0] = turn(v[0], 32)
        v[2], v[0] = (v[2] + v[1]) % 2**64, (v[0] + v[3]) % 2**64
        v[1], v[3] = turn(v[1], 17) ^ v[2], turn(v[3], 21) ^ v[0]
        v[2] = turn(v[2], 32)


def published(key: tuple[int, int], message: int) -> int:
    """The hash of eight bytes: the message, then a block of the length alone."""
    constants = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    v = [key[k % 2] ^ constant for k, constant in enumerate(constants)]
    for block in (message, 8 << 56):
        v[3] ^= block
        rounds(v, 2)
        v[0] ^= block
    v[2] ^= 0xFF
    rounds(v, 4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


@settings(max_examples=50)
@given(st.lists(st.tuples(WORD, WORD, WORD), min_size=1, max_size=5))
def test_each_message_has_the_published_hash_under_its_own_key(given_words: list[tuple[int, int, int]]) -> None:
    first, second, message = np.array(given_words, dtype=np.uint64).T
    found = siphash(np.ascontiguousarray(first), np.ascontiguousarray(second), np.ascontiguousarray(message))
    assert found.tolist() == [published((a, b), c) for a, b, c in given_words]


def test_the_vector_of_its_authors() -> None:
    assert published((0x0706050403020100, 0x0F0E0D0C0B0A0908), 0x0706050403020100) == 0x93F5F5799A932462
