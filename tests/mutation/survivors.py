"""Mutants that live, and may: which they are, and why they cannot matter."""

from __future__ import annotations

from pathlib import Path

import attrs
from mutant_ids import MutantIds

ROOT = Path(__file__).resolve().parents[2]


@attrs.frozen
class Survivor:
    """A mutant that lives.

    Attributes
    ----------
    module
        The path of its module.
    id
        Its id, as the command prints it.
    reason
        Why it cannot matter.
    """

    module: str
    id: str
    reason: str

    def line(self) -> int:
        """Return the line that it changes.

        Raises
        ------
        LookupError
            If the module has no such mutant: the code has changed, and the reason may be wrong.
        """
        return MutantIds.read(ROOT / self.module).line_of(self.id)
