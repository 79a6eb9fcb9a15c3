"""The error for an optional package that is not installed, which names the feature that needs it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def needing_scikit_learn(what: str) -> Iterator[None]:
    """Raise an error that names the feature which needs scikit-learn, if the block fails to import it.

    Parameters
    ----------
    what
        The name of the feature, which begins the message.

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
