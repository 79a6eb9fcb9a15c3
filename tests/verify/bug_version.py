"""The flag of planted bugs that says whether a bug is left out."""

from __future__ import annotations


class Version:
    """Whether a bug is left out: no flag, which verification would turn to make the bug."""

    def __init__(self, right: bool) -> None:
        self.right = right

    def __bool__(self) -> bool:
        return self.right

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.right is other.right

    def __hash__(self) -> int:
        return hash(self.right)
