"""Type checks of public functions. The caller of a public function pays for its check, and other code does not."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def typechecked(function: Callable[P, R]) -> Callable[P, R]:
    """Check a function's arguments and result against its annotations, as typeguard's decorator does.

    typeguard is imported, and the function rewritten, at its first call: for every public function at start-up that
    would take longer than to plan a study.
    """

    @functools.cache
    def checked() -> Callable[..., Any]:
        from typeguard import typechecked as instrument

        return instrument(function)

    @functools.wraps(function)
    def boundary(*args: P.args, **kwargs: P.kwargs) -> R:
        result: R = checked()(*args, **kwargs)
        return result

    return boundary
