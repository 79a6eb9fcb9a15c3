"""The terminal that commands write to, through rich. Markup and control characters are shown as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.segment import Segment

from dpframework.facts.control_character_escapes import printable_lines

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType


LEAST_WIDTH = 20  # columns; rich shows nothing in 0 columns, and single letters in a few
USUAL_WIDTH = 80


class Screen(Console):
    """A console that does not interpret markup or emoji codes, and shows invisible characters as escapes.

    If a terminal reports a width below `LEAST_WIDTH`, such as 0 columns, the console has the usual width.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)
        if self.width < LEAST_WIDTH:
            self.width = USUAL_WIDTH

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments to show. Only control segments of rich itself may move the cursor."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable_lines(segment.text), segment.style)
