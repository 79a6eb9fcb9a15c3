"""The marks of nodes in a drawing of two plans."""

from __future__ import annotations

import enum


class Mark(enum.StrEnum):
    """Says which of two plans has a node, and if both have it, whether it is the same in both."""

    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
