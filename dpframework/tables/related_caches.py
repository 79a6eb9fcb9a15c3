"""Caches of counts of rows that belong together: of a whole and of its parts."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import attrs


@attrs.frozen(eq=False)
class RelatedCaches:
    """The caches of the rows that some rows are a part of, and of all their parts.

    All parts share one list, so that memory grows with their number.

    Attributes
    ----------
    whole
        The cache of the rows that were split.
    parts
        The caches of all parts.
    position
        Which of the parts these rows are.
    """

    whole: dict[Hashable, Any]
    parts: list[dict[Hashable, Any]]
    position: int

    def of_others(self) -> tuple[dict[Hashable, Any], list[dict[Hashable, Any]]]:
        """Return the caches of the whole and of the other parts, as `Engine.kept_around` does."""
        return self.whole, [*self.parts[: self.position], *self.parts[self.position + 1 :]]
