"""Observers of a run. Progress bars, ledgers and transcripts use them to follow every charge and release."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from dpframework.facts.errors import InputError
from dpframework.run.run_scopes_and_charges import Charge


@attrs.frozen
class Release:
    """One release of a run, as observers see it.

    Attributes
    ----------
    charge
        The charge for the release.
    inputs
        The public inputs that the query was given, by name.
    output
        The output that the mechanism drew: numbers, or the position of the selected candidate.
    value
        The value that the miner received: the numbers, or the selected candidate.
    """

    charge: Charge
    inputs: Mapping[str, Any]
    output: Any
    value: Any


class Observer:
    """The base class of observers. Override `charged`, `released` or both; a run calls them at each charge and release.

    Each observer gets its own read-only copy of each charge and release. Writing to an array raises `ValueError`. Any
    other change has no effect on the miner, the ledger or other observers. An exception in an observer stops the run,
    since a release must not follow a charge that could not be recorded. The error names the observer.

    A run calls the methods and ignores what they return. It awaits nothing, so an `async` method is refused.
    """

    def hears(self, event: str) -> bool:
        """Tell whether the observer overrides the method `event`, which is "charged" or "released"."""
        return getattr(getattr(self, event), "__func__", None) is not getattr(Observer, event)

    def charged(self, charge: Charge) -> None:
        """Handle a charge. The run calls this before it draws the release."""

    def released(self, release: Release) -> None:
        """Handle a release."""


#: The methods that a run calls.
EVENTS = ("charged", "released")


def observer_fault(observer: Any) -> str | None:
    """Return why an observer would be told nothing or could not record what it is told; None if there is none.

    Examples
    --------
    >>> class Diary(Observer):
    ...     def on_charge(self, charge):
    ...         print(charge.path)
    >>> observer_fault(Diary())
    "observer 'Diary' overrides neither 'charged' nor 'released', so a run would tell it nothing"
    """
    kind = type(observer)
    if not isinstance(observer, Observer):
        if inspect.isclass(observer):
            return f"the class '{observer.__name__}' is no observer; give an object of it"
        return f"'{kind.__name__}' is not a subclass of Observer"
    heard = [event for event in EVENTS if observer.hears(event)]
    if not heard and kind is not Observer:
        return f"observer '{kind.__name__}' overrides neither 'charged' nor 'released', so a run would tell it nothing"
    for event in heard:
        method = getattr(observer, event)
        what = f"'{event}' of observer '{kind.__name__}'"
        if not callable(method):
            return f"{what} is {type(method).__name__}, not a method"
        if any(test(method) for test in (inspect.iscoroutinefunction, inspect.isasyncgenfunction)):
            return f"{what} is async, so a run would not wait for it; write a method that ends when all is recorded"
        if inspect.isgeneratorfunction(method):
            return f"{what} has a yield, so a call of it does nothing; write a method without one"
        try:
            inspect.signature(method).bind(None)
        except TypeError:
            return f"{what} must take one argument, the {'charge' if event == 'charged' else 'release'}"
        except ValueError:  # some built-in functions have no signature
            continue
    return None


def require_observers(observers: Iterable[Any]) -> None:
    """Refuse observers that would be told nothing or record nothing, before anything is charged.

    Raises
    ------
    InputError
        If one of them has a fault (see `observer_fault`).
    """
    for observer in observers:
        fault = observer_fault(observer)
        if fault is not None:
            raise InputError(fault)


def require_recorded(returned: Any) -> None:
    """Refuse a method of an observer that is async or a generator: when it returns, it has recorded nothing yet.

    Raises
    ------
    InputError
        If the method returned an awaitable object or a generator. `observer_fault` does not see such a method if a
        wrapper hides it.
    """
    if inspect.isawaitable(returned) or inspect.isgenerator(returned) or inspect.isasyncgen(returned):
        if inspect.iscoroutine(returned):
            returned.close()  # else Python warns that nobody awaited it
        raise InputError("it returned before it had recorded anything; write a method that is neither async nor yields")
