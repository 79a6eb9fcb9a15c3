"""The caches of counts that a split table and its parts keep."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import attrs


@attrs.frozen(eq=False)
class RelatedCaches:
    """The caches around one part of a split table: the cache of the whole, and the caches of all its parts.

    All parts share one list, so that memory grows with their number and not with its square.

    Attributes
    ----------
    whole
        The cache of the rows that were split.
    parts
        The caches of all parts.
    position
        The index of this part's own cache in `parts`.
    """

    whole: dict[Hashable, Any]
    parts: list[dict[Hashable, Any]]
    position: int

    def of_others(self) -> tuple[dict[Hashable, Any], list[dict[Hashable, Any]]]:
        """Return the cache of the whole and the caches of the other parts, as for `Engine.related_caches`."""
        return self.whole, [*self.parts[: self.position], *self.parts[self.position + 1 :]]
