"""The terminal that commands write to, through rich. Markup and control characters are shown as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.segment import Segment

from dpframework.facts.control_character_escapes import printable_lines

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType


class Screen(Console):
    """A console that does not interpret markup or emoji codes, and shows invisible characters as escapes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments to show. Only control segments of rich itself may move the cursor."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable_lines(segment.text), segment.style)
