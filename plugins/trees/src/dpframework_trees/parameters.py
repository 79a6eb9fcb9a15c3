"""The parameters that miners of trees and additive models have in common, with their checks and their defaults."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any

import attrs

from dpframework.facts import (
    Attribute,
    Boolean,
    Categorical,
    InputError,
    Numeric,
    Schema,
    is_whole_number,
    list_of_names,
    named_once,
    positive,
)
from dpframework.run import Example, Miner
from dpframework_trees.criteria import Criterion, criterion_named

MOST_COST = 1000  # the largest cost of an error


@attrs.frozen
class TargetMiner(Miner):
    """A miner that predicts an attribute.

    Parameters
    ----------
    target
        The attribute to predict.
    epsilon
        The budget.
    """

    target: str
    epsilon: Fraction = attrs.field(converter=positive)

    def values_read(self, schema: Schema) -> Collection[str]:
        """Return no attribute: only codes are read, since bins and tests are made from the schema's bins and cuts."""
        return ()


@attrs.frozen
class ModelMiner(TargetMiner):
    """A miner that predicts an attribute from all other attributes, or from some of them.

    Parameters
    ----------
    attributes
        The attributes to use; by default all but the target.
    """

    attributes: tuple[str, ...] | None = attrs.field(default=None, converter=list_of_names)


def validate_criterion(instance: Any, attribute: Any, value: str) -> None:
    """Validate a criterion's name."""
    criterion_named(value)


def costs_of_errors(given: Any) -> Any:
    """Return costs as a tuple, or None if none are given."""
    return None if given is None else tuple(given)


def validate_costs(instance: Any, attribute: Any, value: Any) -> None:
    """Validate costs of errors, and that the criterion takes costs."""
    if value is None:
        return
    if not value or not all(is_whole_number(cost, 1, MOST_COST) for cost in value):
        raise InputError(f"costs are {list(value)}; whole numbers from 1 to {MOST_COST} are needed, one for each class")
    if instance.criterion != "max":
        raise InputError(f"costs need the criterion 'max', not '{instance.criterion}'; set criterion = 'max'")


def criterion_with_costs(name: str, costs: tuple[int, ...] | None, target: Attribute) -> Criterion:
    """Return the criterion of a name, with the cost of an error on a row of each class.

    Raises
    ------
    InputError
        If the number of costs differs from the number of classes.
    """
    if costs is not None and len(costs) != target.size:
        labels = ", ".join(target.labels)
        raise InputError(f"costs has {len(costs)} numbers; '{target.name}' has {target.size} classes: {labels}")
    return attrs.evolve(criterion_named(name), costs=costs or ())


def class_and_attributes(
    schema: Schema, target: str, attributes: tuple[str, ...] | None
) -> tuple[Attribute, tuple[str, ...]]:
    """Return the class attribute and the names of the attributes that predict it, by default all others.

    Raises
    ------
    InputError
        If the class has a single value, if it is among the other attributes, or if one of these is named twice.
    """
    of_class = schema[target]
    if of_class.size < 2:
        raise InputError(f"target '{of_class.name}' has a single class; a classifier needs two or more")
    return of_class, other_attributes(schema, of_class, attributes)


def other_attributes(schema: Schema, target: Attribute, attributes: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the names of the attributes that predict a target, by default all but the target.

    Raises
    ------
    InputError
        If the target is among the given attributes, or an attribute is named twice.
    """
    split_on = attributes if attributes is not None else tuple(n for n in schema.names if n != target.name)
    if target.name in split_on:
        raise InputError(f"target '{target.name}' is also among the attributes that predict it; leave it out")
    named_once("attributes", split_on)
    return split_on


def nothing_to_split(target: Attribute) -> InputError:
    """Return the error for a schema without a candidate split."""
    return InputError(
        f"no attribute can be split for target '{target.name}'; add one with two or more values, or with a cut"
    )


def examples_of_grades(
    miner: type[Miner], variants: Mapping[str, Mapping[str, Any]], *, missing: bool = False
) -> dict[str, Example]:
    """Return an example for each choice of parameters. Its tree has one level if `max_depth` is not among these.

    Parameters
    ----------
    miner
        A miner of trees.
    variants
        For each example's name, its parameters besides the target and epsilon.
    missing
        Whether one attribute may have missing values.
    """
    schema = Schema(
        [
            Categorical("colour", ["red", "green", "blue"], missing=missing),
            Numeric("size", 0, 8, cuts=[3, 5]),
            Boolean("ripe"),
            Categorical("grade", ["good", "bad"]),
        ],
        max_rows=40,
    )
    every: dict[str, Any] = {"target": "grade", "epsilon": 2, "max_depth": 1}
    return {name: Example(schema, miner(**{**every, **variant})) for name, variant in variants.items()}
