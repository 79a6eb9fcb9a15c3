"""Further values of a miner's parameters: durations, dates, sets, ranges, texts with numbers, and nested lists.

`related_miners` changes numbers, flags, words, and simple lists. A claim may also fail for a window that is no multiple
of its step, for bands in a text that overlap, or for another number of elements in a set.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import attrs
import numpy as np

from dpframework.facts.attributes import Attribute
from dpframework.facts.open_attribute import Open
from dpframework.facts.privacy_losses import exact
from dpframework.facts.schema import Schema
from dpframework.queries import Marginals, Query
from dpframework.run.miner_base import Miner
from dpframework.verify.queries.schema_variants import NUMBERS, SPENT, with_other_numbers, with_parameter

MOST = 4  # how many further values of one parameter are tried
AMOUNTS = (Fraction(1, 1_000), Fraction(1_000))  # other budgets, as shares of the example's
LATER = datetime.timedelta(days=400)  # by how much dates are moved: more than a year, and no whole number of weeks
_NUMBER = re.compile(r"\d+")


def further_miners(miner: Miner, schema: Schema) -> Iterator[tuple[str, Miner]]:
    """Yield copies of an example's miner that `related_miners` lacks, each with a text that says what is changed.

    - A whole number is halved. A real number is made a quarter larger. A duration is made a quarter longer, more than
      twice as long, and negative.
    - A date is moved by more than a year, in both directions.
    - A set gets one more element: a larger number, or another attribute. A range gets one more element at its end.
    - In a text, each of the first numbers is made one larger. Bands such as "0-17,18-64" then overlap.
    - In a list of numbers, the last number is enlarged. In a list of attributes, the last one is replaced by another
      attribute, and another attribute is added.
    - In a list of pairs, such as names with weights, the number in the first or in the last pair is made negative.
    - An attribute is replaced by another one, and a query by one that counts each row in two histograms.
    - The first value of a dictionary, or of a list of texts, is changed in these ways.

    The budget stays as it is.

    Parameters
    ----------
    miner
        The miner of an example.
    schema
        The schema of the example.

    Examples
    --------
    >>> import dpframework as dpf
    >>> schema = Schema([dpf.Numeric("age", 0, 90, bins=9)])
    >>> [how for how, _ in further_miners(dpf.miner("quantile", attribute="age", quantile=0.4, epsilon=1), schema)]
    ['with quantile = Fraction(1, 2)']
    """
    for field in attrs.fields(type(miner)):
        if field.name in SPENT or not field.init:
            continue
        given = getattr(miner, field.name)
        for other in itertools.islice(_further_values(given, schema), MOST):
            yield from with_parameter(miner, field.name, other)


def with_other_costs(miner: Miner, schema: Schema) -> Iterator[tuple[str, Miner]]:
    """Yield copies of an example's miner whose plans may cost more or less, each with a text that says what is changed.

    They are those of `with_other_numbers`, and copies with a much smaller and a much larger `epsilon` or `rho`. With a
    small budget, a plan costs too much if one of its steps has a least budget of its own.

    Parameters
    ----------
    miner
        The miner of an example.
    schema
        The schema of the example.

    Examples
    --------
    >>> import dpframework as dpf
    >>> [how for how, _ in with_other_costs(dpf.miner("count", epsilon=2), Schema([dpf.Boolean("ill")]))]
    ['with epsilon = 0.002', 'with epsilon = 2000']
    """
    yield from with_other_numbers(miner, schema)
    for name in SPENT[:2]:
        given: Any = getattr(miner, name, None)
        for share in AMOUNTS if isinstance(given, (*NUMBERS, str)) else ():
            with contextlib.suppress(Exception):  # the miner refuses this value, and so claims nothing for it
                other = share * exact(given, name)
                yield f"with {name} = {float(other):g}", attrs.evolve(miner, **{name: other})


def _further_values(given: Any, schema: Schema) -> Iterator[Any]:
    names = schema.names
    listed = [own for own in schema if not isinstance(own, Open)]
    if type(given) is int and given > 1:
        yield given // 2
    elif isinstance(given, Query) and listed:
        yield Marginals((listed * 2)[:2])
    elif isinstance(given, Attribute):
        yield from (own for own in listed if own != given)
    elif type(given) in (float, Fraction, Decimal, np.float64):
        yield given * 5 / 4
    elif isinstance(given, datetime.timedelta):
        yield from (given * 5 / 4, given * 9 / 4, -given)
    elif isinstance(given, np.timedelta64):
        number = int(given.astype(np.int64))
        yield from (np.array(other).astype(given.dtype)[()] for other in (number + max(number // 4, 1), -number))
    elif isinstance(given, datetime.date):
        yield from (given + LATER, given - LATER)
    elif isinstance(given, str) and given not in names:
        yield from _with_larger_numbers(given)
    elif isinstance(given, range):
        yield range(given.start, given.stop + given.step, given.step)
    elif isinstance(given, set | frozenset) and given:
        yield from (type(given)({*given, other}) for other in _one_more(list(given), names))
    elif type(given) in (tuple, list) and len(given) > 0:
        yield from map(type(given), _other_lists([*given], schema))
    elif isinstance(given, Mapping) and given:
        name, first = next(iter(given.items()))
        yield from ({**given, name: other} for other in _further_values(first, schema))


def _with_larger_numbers(text: str) -> Iterator[str]:
    """Yield copies of a text in which one of its numbers is made one larger."""
    for found in _NUMBER.finditer(text):
        larger = f"{int(found.group()) + 1:0{len(found.group())}}"
        yield f"{text[: found.start()]}{larger}{text[found.end() :]}"


def _one_more(known: Sequence[Any], names: Sequence[str]) -> Iterator[Any]:
    """Yield another element for a collection: a larger number, or the name of another attribute."""
    if all(type(one) in NUMBERS for one in known):
        yield 2 * max(map(abs, known)) + 1
    elif all(one in names for one in known):
        yield from [name for name in names if name not in known][:2]


def _other_lists(given: list[Any], schema: Schema) -> Iterator[list[Any]]:
    more = list(_one_more(given, schema.names))
    yield from ([*given[:-1], other] for other in more)
    yield from ([*given, other] for other in more[:1])
    if more or all(type(one) in NUMBERS for one in given):
        return
    if isinstance(given[0], str):
        yield from ([other, *given[1:]] for other in _further_values(given[0], schema))
    for place in dict.fromkeys((0, len(given) - 1)):
        held = given[place]
        if type(held) in (tuple, list):
            yield from ([*given[:place], type(held)(other), *given[place + 1 :]] for other in _with_negative([*held]))


def _with_negative(given: list[Any]) -> Iterator[list[Any]]:
    """Yield copies of a list in which one number is made negative."""
    for place, one in enumerate(given):
        if type(one) in NUMBERS:
            yield [*given[:place], -2 * abs(one) - 1, *given[place + 1 :]]
