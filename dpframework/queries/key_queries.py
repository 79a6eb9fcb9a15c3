"""Counts of rows by key. The keys are the values of an open attribute, which no public list names."""

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
from dpframework.formulas.sensitivity_claims_and_neighbours import ScoreClaims
from dpframework.queries.base import Norm, Query, Sensitivity
from dpframework.queries.counts import histogram_claims, histogram_sensitivities
from dpframework.tables.encoded_row_blocks import Block

_HASHES = 61  # the number of hash values of keys; `coordinates` adds up the counts of keys with the same hash value


@final
@attrs.frozen(eq=False, repr=False)
class KeyCounts:
    """The exact number of rows with each key, in the order of the keys' texts. Only the private side may see it.

    Attributes
    ----------
    keys
        The keys that some row has, sorted.
    counts
        The number of rows with each key, int64, each at least 1, shape (keys,).
    """

    keys: tuple[str, ...]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, counted: Mapping[str, int]) -> KeyCounts:
        """Return counts by key, given in any order. Keys without rows are left out."""
        keys = tuple(sorted(key for key, count in counted.items() if count))
        return cls(keys, np.array([counted[key] for key in keys], dtype=np.int64))

    def at(self, keys: tuple[str, ...]) -> NDArray[np.int64]:
        """Return the counts of these keys, 0 for a key that no row has."""
        known = dict(zip(self.keys, self.counts.tolist(), strict=True))
        return np.array([known.get(key, 0) for key in keys], dtype=np.int64)

    def __repr__(self) -> str:
        """Show no key and no count."""
        return "KeyCounts(rows are private)"


def _name(attribute: Attribute | str) -> str:
    return require_open(attribute, "the query 'keys'").name if isinstance(attribute, Attribute) else attribute


def _count_keys(name: str, block: Block) -> Mapping[str, int]:
    return block.keys(name).count_keys()


@final
@attrs.frozen
class Keys(Query):
    """The number of rows with each value of an open attribute, or the number of units if units may have several rows.

    Which keys occur is private, not only how many rows they have. So only a mechanism that never shows a key without
    rows may release these counts, at a loss that includes a delta. A row has one key, or none. If ids tell which unit
    each row belongs to, a unit counts once for each key of its rows. If the table is then split into parts, a unit
    counts for a key only in the part that holds its first row with that key.

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
        """Whether no public list names the keys. Always true here."""
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
        """See `histogram_sensitivities`. Keys are disjoint cells, however many there are."""
        return histogram_sensitivities(None)

    def for_rows(self, rows: int) -> Sequence[Sensitivity]:
        """Declare the change by a unit that counts once for each of its keys. A unit has at most one key per row.

        This holds if ids tell which unit each row belongs to. Adding a unit raises at most `rows` counts, each by 1.
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
        raise InputError("the query 'keys' answers with counts by key, which are no array; use its method evaluate")

    def evaluate(self, engine: Any, rows: Any, **inputs: Any) -> KeyCounts:
        """Return the counts by key."""
        return KeyCounts.of(engine.tally(rows, functools.partial(_count_keys, self.attribute)))

    def coordinates(self, answer: KeyCounts) -> NDArray[np.int64]:
        """Return the numbers of rows by a hash of their keys, so that keys with the same hash are counted together."""
        found = np.zeros(_HASHES, dtype=np.int64)
        for key, count in zip(answer.keys, answer.counts.tolist(), strict=True):
            found[zlib.crc32(key.encode()) % _HASHES] += count
        return found
