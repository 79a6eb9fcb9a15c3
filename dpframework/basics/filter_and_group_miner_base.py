"""The base class of miners that can select rows by a description (`where`) and divide them into groups (`by`).

Whether a row is used, and its group, depend on the row's own values and on public facts: a description with public
thresholds, and the labels that the schema lists. The list of groups does not depend on the rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from dpframework.basics.released_row_cap_miner_base import RowsMiner
from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import Below, Description, Equals, description_from_dict
from dpframework.facts.open_attribute import Open
from dpframework.facts.parameter_checks import named_once
from dpframework.facts.schema import Schema
from dpframework.plan.error_bounds_by_result import PlannedPart
from dpframework.results.error_bounds import WORST_ROWS, rows_text
from dpframework.results.estimates import Estimate, QuantileEstimate
from dpframework.results.groups import Groups

MOST_GROUPS = 100_000


def as_description(where: Description | Mapping[str, Any] | None, name: str = "where") -> Description | None:
    """Return a description, or read one from the output of `Description.to_dict`. None is returned as None.

    Raises
    ------
    InputError
        If the value has another type, or cannot be read as a description.
    """
    if where is None or isinstance(where, Description):
        return where
    if not isinstance(where, Mapping):
        raise InputError(f'{name} is {where!r}; a description is needed, such as {{ equals = ["sex", "Male"] }}')
    return description_from_dict(where)


def require_description(schema: Schema, *descriptions: Description | None) -> None:
    """Refuse descriptions that test a value outside the schema, or compare an attribute that is not numeric.

    Raises
    ------
    InputError
        If there is such a test, or if the schema does not have the attribute of a test.
    """
    for literal in literals_of(*descriptions):
        if isinstance(literal, Equals) and not isinstance(schema[literal.attribute], Open):
            literal.code(schema)
        elif isinstance(literal, Below):
            literal.numeric(schema)


def literals_of(*descriptions: Description | None) -> Iterator[Any]:
    """Yield each test of one attribute (a literal) in the descriptions."""
    return itertools.chain.from_iterable(one.literals() for one in descriptions if one is not None)


def values_compared(schema: Schema, *descriptions: Description | None) -> list[str]:
    """Return the names of the attributes that descriptions compare with a number that is not a public cut."""
    tests = literals_of(*descriptions)
    return list(dict.fromkeys(one.attribute for one in tests if isinstance(one, Below) and not one.is_cut(schema)))


def _by(names: str | Iterable[str]) -> tuple[str, ...]:
    given = (names,) if isinstance(names, str) else tuple(names)
    if not all(isinstance(name, str) for name in given):
        raise InputError(f"by is {names!r}; the name of an attribute, or a list of names, is needed")
    named_once("by", given)
    return given


@attrs.frozen
class GroupedMiner(RowsMiner):
    """The base class of miners with the parameters `where` and `by`, which select and group rows.

    Attributes
    ----------
    by
        The names of the attributes that make the groups, or one name. There is one group for each combination of their
        labels in the schema. By default there are no groups.
    where
        A description of the rows that are used, or the output of `Description.to_dict`. None for all rows.
    """

    by: tuple[str, ...] = attrs.field(default=(), converter=_by, kw_only=True)
    where: Description | None = attrs.field(default=None, converter=as_description, kw_only=True)

    def groups(self, schema: Schema) -> tuple[Attribute, ...]:
        """Return the attributes of the groups.

        Raises
        ------
        InputError
            If the schema does not have one of the attributes, if one of them is open, if there are more than
            `MOST_GROUPS` groups, or if `require_description` refuses `where`.
        """
        require_description(schema, self.where)
        found = tuple(schema[name] for name in self.by)
        for one in found:
            if isinstance(one, Open):
                raise InputError(
                    f"attribute '{one.name}' is open, so its groups are not known beforehand; use the miner 'keys' "
                    f'with its parameter each, such as attribute = "{one.name}", each = {{ mean = "NAME" }}'
                )
        number = math.prod(one.size for one in found)
        if number > MOST_GROUPS:
            raise InputError(f"by makes {number} groups, more than {MOST_GROUPS}; take fewer attributes or bins")
        return found

    @property
    def where_text(self) -> str:
        """The text " where ..." with the description; "" without a description."""
        return "" if self.where is None else f" where {self.where}"

    @property
    def group_text(self) -> str:
        """The text " by ..." with the names of the attributes that make the groups; "" without groups."""
        return f" by {' by '.join(repr(name) for name in self.by)}" if self.by else ""

    def group_count(self, part: PlannedPart) -> int:
        """Return the number of groups. Without `by` all rows are one group."""
        return 1 if part.schema is None else math.prod(one.size for one in self.groups(part.schema))

    def expected_rows(self, part: PlannedPart) -> float | None:
        """Return the approximate number of rows that are used in an average group; None if unknown, as with `where`."""
        return None if self.where is not None or part.rows is None else part.rows / self.group_count(part)

    def rows_compared(self, part: PlannedPart) -> str:
        """Return words for the rows with which an error is compared, such as "about 7,000 rows"."""
        if not self.by or part.rows is None:
            return part.size.text
        return f"an average group of {rows_text(part.rows / self.group_count(part))} rows"

    def worst_rows_note(self, part: PlannedPart) -> str:
        """Return the note of an error bound that holds for any table with the expected number of rows."""
        return f"{WORST_ROWS} of {self.rows_compared(part)} (more in smaller groups)" if self.by else WORST_ROWS

    def errors_by_rows(self, error: Callable[[float], float]) -> str:
        """Return a note with the errors for 1,000 and for 100,000 rows."""
        some = ", ".join(f"±{error(rows):.3g} for {rows:,}" for rows in (1000, 100_000))
        return f"depends on the number of {'rows of a group' if self.by else 'rows'} ({some})"

    def table_of(
        self, schema: Schema, what: str, results: Iterable[Estimate] | Iterable[QuantileEstimate], note: str = ""
    ) -> Groups:
        """Return a table with the results of all groups. `results` must be in the order of the groups' labels."""
        labels = itertools.product(*(one.labels for one in self.groups(schema)))
        return Groups(self.by, what, labels, results, note)
