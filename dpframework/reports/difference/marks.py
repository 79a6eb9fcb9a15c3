"""The marks of nodes in a drawing of two plans."""

from __future__ import annotations

import enum


class Mark(enum.StrEnum):
    """Whether a node was added, removed or changed from the first of two plans to the second, or stayed the same."""

    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
