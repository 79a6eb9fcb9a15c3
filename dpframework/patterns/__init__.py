"""Patterns: literals and descriptions over a table's attributes, and redescriptions: pairs of them."""

from dpframework.patterns.descriptions import (
    And,
    Below,
    Cases,
    Description,
    Equals,
    Literal,
    Not,
    Or,
    description_from_dict,
    first_overlap,
)
from dpframework.patterns.noisy import Noisy
from dpframework.patterns.redescriptions import Redescription, Redescriptions, p_values
from dpframework.patterns.shortening import Shortener, shortened

__all__ = [
    "And",
    "Below",
    "Cases",
    "Description",
    "Equals",
    "Literal",
    "Noisy",
    "Not",
    "Or",
    "Redescription",
    "Redescriptions",
    "Shortener",
    "description_from_dict",
    "first_overlap",
    "p_values",
    "shortened",
]
