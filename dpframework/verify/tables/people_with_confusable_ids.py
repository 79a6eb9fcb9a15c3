"""People with easily confused ids, whom code that reads tables must keep apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

Person: TypeAlias = Sequence[Any]
"""The spellings of one person's id."""

BIG = 2**53  # a float cannot hold all whole numbers beyond this
SNOWFLAKE = 17 * 10**17  # about the size of ids that online services give today
HUGE = float(10**300)
LONG = "a name that is longer than forty characters, "

PAIRS: dict[str, list[tuple[Person, Person]]] = {
    "whole numbers": [
        ([BIG], [BIG + 1]),
        ([SNOWFLAKE], [SNOWFLAKE + 1]),
        ([2**62], [2**62 + 1]),
        ([-1], [-2]),  # Python gives both the same hash
        ([0], [2**61 - 1]),  # the hashes of these are equal, too
    ],
    "large numbers": [
        ([10**30], [10**30 + 1]),
        ([2**64], [2**64 + 1]),
        ([10**400], [10**400 + 1]),
        ([-(10**31)], [10**31]),
    ],
    "decimals": [
        ([Decimal(BIG)], [Decimal(BIG + 1)]),
        ([Decimal(SNOWFLAKE)], [Decimal(SNOWFLAKE + 1)]),
        ([Decimal("0.1")], [Decimal("0.10000000000000000001")]),
        ([Decimal("7")], [Decimal("7.5")]),
    ],
    "floats": [
        ([0.1], [math.nextafter(0.1, math.inf)]),
        ([HUGE], [math.nextafter(HUGE, -math.inf)]),
        ([float(BIG)], [float(BIG + 2)]),
        ([7.0], [7.5]),
    ],
    "texts": [
        (["ann"], ["Ann"]),
        (["7", " 7", "7.0"], ["007"]),
        ([LONG + "a"], [LONG + "b"]),
        (["\u00e9"], ["e\u0301"]),
        (["a b"], ["a  b"]),
        (["nan"], ["NaN"]),
    ],
    "bytes": [
        ([b"a"], [b"A"]),
        ([b"\xff"], [b"\xff\0"]),
        ([b"\xfe"], [b"\xfd"]),
        ([bytes(16)], [bytes(15)]),
    ],
    "UUIDs": [
        ([UUID(int=1)], [UUID(int=2)]),
        ([UUID(int=1 << 127)], [UUID(int=(1 << 127) + 1)]),
        ([UUID(int=BIG)], [UUID(int=BIG + 1)]),
    ],
    "spelled in several ways": [
        ([7, 7.0, "7", " 7.00 ", Decimal("7.0"), "70e-1"], ["07", " 07"]),
        ([BIG, float(BIG), str(BIG), Decimal(BIG)], [BIG + 1, f"{BIG + 1}.0", Decimal(BIG + 1)]),
        ([2.0**60, "1.152921504606847e+18", 2**60], [1152921504606847000, "1152921504606847000"]),
        ([0, -0.0, "-0"], [0.5, "0.5", Decimal("0.50"), "5e-1"]),
    ],
    "of any kind": [
        ([BIG], [BIG + 1]),
        ([Decimal("0.1")], [Decimal("0.10000000000000000001")]),
        ([HUGE], [math.nextafter(HUGE, -math.inf)]),
        (["ann"], ["Ann"]),
        ([b"7"], ["7", 7]),
        ([True, "true"], [1, "1"]),
        ([UUID(int=1), str(UUID(int=1))], [UUID(int=2)]),
    ],
}
"""Pairs of people whose ids some reader might take for one person's, by the kind of ids."""

ID_KINDS = tuple(PAIRS)
"""The kinds of ids. All ids in a table are of one kind."""

CHOSEN = 2  # how many pairs of people a table has


def people_of(kind: str, turn: int) -> list[Person]:
    """Return people whose ids are of one kind, in pairs with similar ids. Each turn gives the next pairs."""
    pairs = PAIRS[kind]
    return [person for k in range(CHOSEN) for person in pairs[(turn * CHOSEN + k) % len(pairs)]]
