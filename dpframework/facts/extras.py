"""What an optional package is needed for, said in one sentence where it is not installed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def needing_scikit_learn(what: str) -> Iterator[None]:
    """Import scikit-learn, or modules that import it, for something that errors call `what`.

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
