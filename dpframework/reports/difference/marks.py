"""Marks, which tell drawings which of two plans has a node."""

from __future__ import annotations

import enum


class Mark(enum.StrEnum):
    """Which plan a node is in, and whether it is the same in both."""

    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
