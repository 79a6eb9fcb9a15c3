"""The words and records for a run that ended early, which may tell no more than private rows allow."""

from __future__ import annotations

from dpframework.facts.errors import DoesNotFit, InputError, RunStopped
from dpframework.run.miner import Miner


def ended_by(error: Exception) -> str:
    """Return the kind of failure that ended a run while its table was read, which is all that is recorded or told."""
    return error.kind if isinstance(error, DoesNotFit) else "table cannot be read"


def told(error: Exception) -> str:
    """Return a private run's message about a table that could not be read."""
    if isinstance(error, DoesNotFit):
        return (
            f"the table breaks what its owner asserts: {error.kind}; 'dpframework schema check' tells the owner more, "
            "and another run needs an approval of its own"
        )
    if isinstance(error, InputError):
        return str(error)  # of the file as a whole, and of names that the schema knows
    known = type(error).__module__ == "builtins"
    return f"reading the table failed with {type(error).__name__ if known else 'an error of its own'}"


def stopped(name: str, miner: Miner | None, error: BaseException) -> RunStopped:
    """Return the error of a miner that failed unexpectedly, without its own text, which may quote anything."""
    if isinstance(error, KeyboardInterrupt):
        return RunStopped(f"step '{name}': interrupted", interrupted=True)
    who = "its plan" if miner is None else f"miner '{miner.name}'"
    return RunStopped(
        f"step '{name}': {who} failed with {type(error).__name__}; run with a seed on data that is not "
        "private to see where"
    )
