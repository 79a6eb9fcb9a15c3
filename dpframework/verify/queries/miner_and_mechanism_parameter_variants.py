"""Parameters of miners and mechanisms that an example's author did not think of.

A claim must hold for all parameters. It may be right for a parameter k = 1 and wrong for k = 2. Or it may be right for
one attribute and wrong for another, or wrong if the same attribute is given twice. `related_miners` and
`related_mechanisms` change numbers, flags, words, and simple lists. `further_miners` changes durations, dates, sets,
ranges, texts with numbers, and nested lists, since a claim may also fail for a window that is no multiple of its step,
for bands in a text that overlap, or for another number of elements in a set.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from reprlib import Repr
from typing import Any

import attrs
import numpy as np

from dpframework.facts.attributes import Attribute
from dpframework.facts.logical_descriptions_of_rows import Description
from dpframework.facts.open_attribute import Open
from dpframework.facts.privacy_losses import exact
from dpframework.facts.schema import Schema
from dpframework.mechanisms import Mechanism
from dpframework.queries import Marginals, Query
from dpframework.run.miner_base_and_examples import Miner
from dpframework.verify.plugin_code_constants import (
    is_foreign_module,
    numbers_compared_with,
    words_compared_with,
)
from dpframework.verify.queries.parameter_values_from_types import MOST_NAMES, NUMBERS, listed_values, plants_mistake

# What other mechanisms spend on a release, as shares of what the example spends. For an epsilon of 1 the scales are 1.8
# and 0.44.
SHARES = (Fraction(5, 9), Fraction(9, 4))
SMALLER = 4  # a number that is to be smaller is divided by this
MOST_WORDS = 6  # how many other words are tried in place of one that the code compares with others
#: Objects of these classes have claims or meanings of their own, so their fields are not changed as settings.
COMPONENTS = (Attribute, Description, Mechanism, Miner, Query)
SPENT = ("epsilon", "rho", "delta")  # the parameters that say how much is spent
SHOWN = 100  # how many letters of a text, or of the text of a plugin's object, are shown
_SHORT = Repr()
_SHORT.maxother = _SHORT.maxstring = SHOWN
MOST_COMPARED = 3  # how many numbers that the code compares with others are tried for one parameter
MOST_DOUBLED = 9  # the largest whole number that is doubled where only the costs of a plan are compared
MOST, MOST_PAIRS = 4, 6  # how many further values of one parameter, and pairs of a mechanism's parameters, are tried
#: Other budgets, as shares of the example's. The middle ones are no finite decimals, so that rounding shows.
AMOUNTS = (Fraction(1, 1_000), Fraction(5, 7), Fraction(17, 19), Fraction(13, 11), Fraction(1_000))
LATER = datetime.timedelta(days=400)  # by how much dates are moved: more than a year, and no whole number of weeks
_NUMBER = re.compile(r"\d+")


def related_miners(miner: Miner, schema: Schema) -> Iterator[tuple[str, Miner]]:
    """Yield copies of an example's miner, each with one parameter changed, and a text that says how.

    - A whole number is made one larger, and it is made negative. A real number is doubled, and it is made negative.
    - A parameter left out (None) becomes 1 or 2, a flag, an option or an attribute's name, if its type admits that.
    - A flag is flipped, unless its name says that it makes a mistake.
    - The name of an attribute becomes that of another attribute of the schema.
    - A value that a validator or a type lists becomes another of the listed values. A word that the code compares, or
      that is a key of one of its dictionaries, becomes another such word.
    - The first number of a list, of an array or of a dictionary's values is made negative. The last value of a list is
      repeated. The first value of any other list or dictionary is changed as a parameter is.
    - An object of a class of the plugin's own gets one of its fields changed, in the same ways.

    The budget stays as it is.
    """
    for field, given in _own_parameters(miner):
        for other in _other_values(miner, field, given, schema.names):
            yield from with_parameter(miner, field.name, other)


def _own_parameters(component: Miner | Mechanism) -> Iterator[tuple[attrs.Attribute[Any], Any]]:
    """Yield each field that a constructor sets, with its value, except for what the component spends."""
    for field in attrs.fields(type(component)):
        if field.init and field.name not in SPENT:
            yield field, getattr(component, field.name)


def _other_values(
    component: Miner | Mechanism, field: attrs.Attribute[Any], given: Any, names: Sequence[str]
) -> Iterator[Any]:
    """Yield other values of a parameter (see `related_miners`), except values that say that they plant a mistake."""
    listed = listed_values(type(component), field.name, given, field.validator, names)
    if isinstance(given, str) and given not in names:
        listed = listed or words_compared_with(type(component), field.name, given)[:MOST_WORDS]
    return (other for other in _other_parameters(given, listed, names) if not plants_mistake(field.name, other))


def with_parameter(miner: Miner, name: str, value: Any) -> Iterator[tuple[str, Miner]]:
    """Yield a copy of a miner with another value of a parameter, and a text that says so.

    Nothing is yielded if the miner refuses the value, and so claims nothing for it.
    """
    with contextlib.suppress(Exception):
        changed = attrs.evolve(miner, **{str(attrs.fields_dict(type(miner))[name].alias): value})
        yield f"with {name} = {_SHORT.repr(value)}", changed


def smaller_miners(miner: Miner) -> Iterator[tuple[str, Miner]]:
    """Yield copies of an example's miner in which one number is smaller: 0 if it is whole, else a quarter of it.

    `related_miners` makes numbers larger or negative, which is impossible for a share of 0.75. The budget stays.
    """
    for field, given in _own_parameters(miner):
        if type(given) not in (*NUMBERS, np.float64):
            continue
        other = 0 if type(given) is int else given / SMALLER
        if other != given:
            yield from with_parameter(miner, field.name, other)


def with_other_numbers(miner: Miner, schema: Schema) -> Iterator[tuple[str, Miner]]:
    """Yield the copies of `related_miners` that differ in a whole number, such as a number of rounds.

    Parameters of other types may be budgets, and a larger budget may rightly cost more.
    """
    for how, other in related_miners(miner, schema):
        numbers = [field.name for field in attrs.fields(type(miner)) if type(getattr(miner, field.name)) is int]
        if any(getattr(other, name) != getattr(miner, name) for name in numbers):
            yield how, other


def related_mechanisms(
    mechanism: Mechanism, shares: Sequence[Fraction] = SHARES, names: Sequence[str] = SPENT[:2]
) -> Iterator[tuple[str, Mechanism]]:
    """Yield copies of a mechanism with other budgets: each parameter in `names` is multiplied by each of `shares`.

    Examples
    --------
    >>> from dpframework.mechanisms import Laplace
    >>> [str(other.epsilon) for _, other in related_mechanisms(Laplace(1))]
    ['5/9', '9/4']
    """
    for name in names:
        given = getattr(mechanism, name, None)
        if not isinstance(given, Fraction | float):
            continue
        for share in shares:
            try:
                changed = attrs.evolve(mechanism, **{name: share * given})
            except Exception:  # the mechanism refuses this value, and so claims nothing for it
                continue
            yield f"with {name} = {float(share * given):.3g}", changed


def with_other_parameters(mechanism: Mechanism) -> Iterator[tuple[str, Mechanism]]:
    """Yield copies of a mechanism with one or two of its own parameters changed, each with a text that says how.

    A whole number n becomes n + 1, and 2 n + 1. Any other number is doubled, and halved. Flags, options, words, lists
    and parameters that are left out (None) are changed as in `related_miners`. What the mechanism spends
    stays. Then the first changes of two parameters are made together, for a few pairs of parameters.
    """
    changes: list[list[tuple[str, str, Any]]] = []  # for each parameter: its name in a constructor, a text, a value
    for field, given in _own_parameters(mechanism):
        number = "the number " if type(given) in (int, float, Fraction) else ""
        if number:
            others = [given + 1, 2 * given + 1] if type(given) is int else [2 * given, given / 2]
        else:
            others = list(itertools.islice(_other_values(mechanism, field, given, ()), MOST))
        changes.append([(str(field.alias), f"{number}{field.name} = {other}", other) for other in others])
    pairs = itertools.combinations([of_one[0] for of_one in changes if of_one], 2)
    for made in (*((one,) for of_one in changes for one in of_one), *itertools.islice(pairs, MOST_PAIRS)):
        with contextlib.suppress(Exception):  # the mechanism refuses these values, and so claims nothing for them
            changed = attrs.evolve(mechanism, **{alias: other for alias, _, other in made})
            yield " and ".join(how for _, how, _ in made), changed


def _other_parameters(given: Any, listed: Sequence[Any], names: Sequence[str]) -> Iterator[Any]:
    if listed:
        yield from (value for value in listed if type(value) is type(given) or given is None if value != given)
    elif type(given) is bool:
        yield not given
    elif isinstance(given, np.integer) and not isinstance(given, np.timedelta64):
        yield from (type(given)(given + 1), type(given)(-2 * abs(int(given)) - 1))
    elif type(given) is int:
        yield from (given + 1, -2 * abs(given) - 1)
    elif type(given) in (float, Fraction, Decimal, np.float64):
        yield from (2 * given, -2 * abs(given) - 1)
    elif isinstance(given, str) and given in names:
        yield from [name for name in names if name != given][:MOST_NAMES]
    elif type(given) in (tuple, list) and len(given) > 0:
        if all(type(one) in NUMBERS for one in given):
            yield type(given)([-2 * max(map(abs, given)) - 1, *given[1:]])
        elif not isinstance(given[0], str):
            yield from (type(given)([other, *given[1:]]) for other in _other_parameters(given[0], (), names))
        yield type(given)([*given, given[-1]])
    elif isinstance(given, Mapping) and given:
        if all(type(one) in NUMBERS for one in given.values()):
            yield {**given, next(iter(given)): -2 * max(map(abs, given.values())) - 1}
        else:
            name, first = next(iter(given.items()))
            yield from ({**given, name: other} for other in _other_parameters(first, (), names))
            if all(isinstance(text, str) for pair in given.items() for text in pair):
                yield from _other_texts(given)
    elif isinstance(given, np.ndarray) and given.dtype.kind in "if" and given.size:
        changed = given.copy()
        changed.flat[0] = -2 * np.abs(given).max() - 1
        yield changed
    elif is_foreign_module(type(given).__module__) and not isinstance(given, COMPONENTS):
        yield from _other_settings(given, names)


def _other_texts(given: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield copies of a dictionary of texts, such as a tree that maps each node to its parent, with one value changed.

    The last key that is not a value itself, which is a leaf of a tree, gets the value of another key. If some values
    are keys, there is a second copy, in which this key gets another leaf as its value. So the tree gets deeper and
    never has a cycle.
    """
    leaves = [key for key in given if key not in given.values()]
    for others in (list(given.values()), leaves if len(leaves) < len(given) else []):
        other = next((text for text in others if leaves and text not in (leaves[-1], given[leaves[-1]])), None)
        if other is not None:
            yield {**given, leaves[-1]: other}


def _other_settings(given: Any, names: Sequence[str]) -> Iterator[Any]:
    """Yield copies of a plugin's own object of attrs or a dataclass, each with one of its fields changed."""
    kind = type(given)
    fields: list[tuple[str, str, Any]] = []
    evolve: Callable[..., Any] = attrs.evolve
    if attrs.has(kind):
        fields = [(field.name, field.alias, field.validator) for field in attrs.fields(kind) if field.init]
    elif dataclasses.is_dataclass(kind):
        fields, evolve = (
            [(own.name, own.name, None) for own in dataclasses.fields(kind) if own.init],
            dataclasses.replace,
        )
    for name, alias, validator in fields:
        held = getattr(given, name)
        listed = listed_values(kind, name, held, validator, names)
        for other in _other_parameters(held, listed, names) if name not in SPENT else ():
            with contextlib.suppress(Exception):  # the class refuses this value, and so claims nothing for it
                yield evolve(given, **{alias: other})


def further_miners(miner: Miner, schema: Schema) -> Iterator[tuple[str, Miner]]:
    """Yield copies of an example's miner that `related_miners` lacks, each with a text that says what is changed.

    - A number becomes each of a few numbers that the code compares with something. A whole number is halved. A real
      number is made a quarter larger. A share x, between 0 and 1, becomes 1 - x. A duration is made a quarter
      longer, more than twice as long, and negative.
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
    ['with quantile = Fraction(1, 2)', 'with quantile = Fraction(3, 5)']
    """
    for field, given in _own_parameters(miner):
        compared = _numbers_compared(type(miner), field.name, given)
        for other in (*compared, *itertools.islice(_further_values(given, schema), MOST)):
            yield from with_parameter(miner, field.name, other)


def _numbers_compared(kind: type[Any], name: str, given: Any) -> list[Any]:
    """Return numbers of a parameter's type that the code compares with something, without those tried elsewhere."""
    if type(given) not in (int, float, Fraction):
        return []
    known = {given, *_other_parameters(given, (), ())}
    found = [one for one in numbers_compared_with(kind, name) if type(given) is not int or one == int(one)]
    return [type(given)(one) for one in found if one not in known][:MOST_COMPARED]


def with_other_costs(miner: Miner, schema: Schema) -> Iterator[tuple[str, Miner]]:
    """Yield copies of an example's miner whose plans may cost more or less, each with a text that says what is changed.

    The copies are those of `with_other_numbers`; copies in which a whole number n becomes 1, n // 2 or 2 n + 1; and
    copies with a smaller or larger `epsilon` or `rho`. Shares of a budget may add up to the whole for some numbers of
    rounds only. With a small budget, a plan costs too much if one of its steps has a least budget of its own. With a
    budget that is no finite decimal, its rounded parts may add up to more than the whole.

    Parameters
    ----------
    miner
        The miner of an example.
    schema
        The schema of the example.

    Examples
    --------
    >>> import dpframework as dpf
    >>> for how, _ in with_other_costs(dpf.miner("count", epsilon=2), Schema([dpf.Boolean("ill")])):
    ...     print(how)
    with epsilon = 0.002
    with epsilon = 1.42857
    with epsilon = 1.78947
    with epsilon = 2.36364
    with epsilon = 2000
    """
    yield from with_other_numbers(miner, schema)
    for field, rounds in _own_parameters(miner):
        if type(rounds) is int and 0 < rounds <= MOST_DOUBLED:  # a plan for a much larger number may be too large
            for number in dict.fromkeys((1, rounds // 2, 2 * rounds + 1)):
                if number not in (rounds, rounds + 1):
                    yield from with_parameter(miner, field.name, number)
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
        if 0 < given < 1:
            yield type(given)(1) - given if 2 * given != 1 else given * 7 / 4
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
