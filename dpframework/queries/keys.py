"""Counts by key of an open attribute, whose values nobody lists."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import InputError
from dpframework.facts.open_attribute import require_open
from dpframework.formulas.claims import ScoreClaims
from dpframework.queries.base import Norm, Query, Sensitivity
from dpframework.queries.counts import histogram_claims, histogram_sensitivities
from dpframework.tables.blocks import Block

_HASHES = 61  # of keys, for verification


@final
@attrs.frozen(eq=False, repr=False)
class KeyCounts:
    """The exact answer of a query by key (private side only), in the order of the keys' texts.

    Attributes
    ----------
    keys
        The keys that some row has, sorted.
    counts
        The numbers of their rows, int64, each 1 or more, shape (keys,).
    """

    keys: tuple[str, ...]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, counted: Mapping[str, int]) -> KeyCounts:
        """Return the counts by key that were made in any order. Keys without rows do not count."""
        keys = tuple(sorted(key for key, count in counted.items() if count))
        return cls(keys, np.array([counted[key] for key in keys], dtype=np.int64))

    def at(self, keys: tuple[str, ...]) -> NDArray[np.int64]:
        """Return the counts of some keys, 0 where no row has one."""
        known = dict(zip(self.keys, self.counts.tolist(), strict=True))
        return np.array([known.get(key, 0) for key in keys], dtype=np.int64)

    def __repr__(self) -> str:
        """Show no key and no count."""
        return "KeyCounts(rows are private)"


def _name(attribute: Attribute | str) -> str:
    return require_open(attribute, "the query 'keys'").name if isinstance(attribute, Attribute) else attribute


def _count_keys(name: str, block: Block) -> Mapping[str, int]:
    return block.keys(name).counted()


@final
@attrs.frozen
class Keys(Query):
    """The number of rows with each value of an open attribute; of units with several rows, the number of units.

    Which keys there are is as private as how many rows they have: only a mechanism that never shows a key without rows
    may release it, at an epsilon and a delta. A row has one key, or none. A unit counts once for each key of its rows,
    if ids tell whose they are. In a part of the table it may count for none that it has in another.

    Attributes
    ----------
    attribute
        The attribute's name; an `Open` attribute is accepted.

    Examples
    --------
    >>> Keys("town").text, Keys("town").sensitivities[0].replace_one
    ('keys of town', Fraction(2, 1))
    """

    name = "keys"
    attribute: str = attrs.field(converter=_name)

    @property
    def unlisted(self) -> bool:
        """Whether nobody lists the keys that it counts."""
        return True

    @property
    def text(self) -> str:
        """Name the attribute."""
        return f"keys of {self.attribute}"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The one attribute."""
        return (self.attribute,)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """See `histogram_sensitivities`: keys are disjoint cells, however many there are."""
        return histogram_sensitivities(None)

    def for_rows(self, rows: int) -> Sequence[Sensitivity]:
        """Declare the change by a unit that counts once for each of its keys, of which it has as many as rows at most.

        This holds where ids tell whose each row is. A unit that comes raises up to so many counts by 1 each.
        """
        source = "each unit counts once for a key, and has as many keys as rows at most"
        return (
            Sensitivity(Norm.L1, rows, 2 * rows, fall=0, source=source),
            Sensitivity(Norm.SQUARED_L2, rows, 2 * rows, fall=0, source=source),
            Sensitivity(Norm.LINF, 1, 1, fall=0, source=source),
        )

    @property
    def scored_formulas(self) -> tuple[ScoreClaims, ...]:
        """See `histogram_claims`."""
        return histogram_claims(None)

    def count(self, block: Block, **inputs: Any) -> NDArray[Any]:
        """Refuse, since counts by key are no array.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError("the query 'keys' answers with counts by key; ask Engine.tally")

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> KeyCounts:
        """Return the counts by key."""
        return KeyCounts.of(engine.tally(rows, functools.partial(_count_keys, self.attribute)))

    def coordinates(self, answer: KeyCounts) -> NDArray[np.int64]:
        """Return the numbers of rows by a hash of their keys, in which keys that fall together are added up."""
        found = np.zeros(_HASHES, dtype=np.int64)
        for key, count in zip(answer.keys, answer.counts.tolist(), strict=True):
            found[zlib.crc32(key.encode()) % _HASHES] += count
        return found
