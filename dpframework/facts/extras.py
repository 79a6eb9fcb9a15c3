"""The error that says what needs an optional package, if that package is not installed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def needing_scikit_learn(what: str) -> Iterator[None]:
    """Raise an error that says what needs scikit-learn, if the block fails to import it.

    Parameters
    ----------
    what
        The words for what needs it, which begin the message.

    Raises
    ------
    ImportError
        If scikit-learn, an extra, is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("sklearn"):
            raise
        raise ImportError(f"{what} needs scikit-learn: pip install 'dpframework[sklearn]'") from error
