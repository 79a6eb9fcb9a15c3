"""What tree miners' parameters have in common: how they are checked, and what they mean on a schema."""

from __future__ import annotations

from typing import Any

from dpframework.facts import Attribute, InputError, Schema, named_once
from dpframework_trees.criteria import criterion_named


def known_criterion(instance: Any, attribute: Any, value: str) -> None:
    """Validate a criterion's name."""
    criterion_named(value)


def class_and_attributes(
    schema: Schema, target: str, attributes: tuple[str, ...] | None
) -> tuple[Attribute, tuple[str, ...]]:
    """Return the class attribute, and the names of those to split on: by default all others.

    Raises
    ------
    InputError
        If the class has a single value, or is among those to split on, or one of them is named twice.
    """
    of_class = schema[target]
    if of_class.size < 2:
        raise InputError(f"target '{of_class.name}' has a single class; a tree needs two or more")
    split_on = attributes if attributes is not None else tuple(n for n in schema.names if n != of_class.name)
    if of_class.name in split_on:
        raise InputError(f"target '{of_class.name}' is also among the attributes to split on; leave it out")
    named_once("attributes", split_on)
    return of_class, split_on


def nothing_to_split(target: Attribute) -> InputError:
    """Return what to raise where there is no candidate split."""
    return InputError(
        f"no attribute can be split for target '{target.name}'; the schema needs one with two values or a cut"
    )
