"""Write public expressions over codes and values in SQL, for engines that count in a database.

The SQL contains columns' names that an engine chose, whole numbers and thresholds. It contains no label, no cell and no
name that a user gave. It is standard SQL, such as comparisons, `and`, `or`, `case`, `coalesce` and `floor`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import final

import attrs

from dpframework.facts.attributes import Attribute
from dpframework.facts.errors import InputError
from dpframework.facts.logical_descriptions_of_rows import And, Below, Cases, Description, Equals, Not, Or
from dpframework.facts.open_attribute import Open
from dpframework.facts.row_partitions import Cut
from dpframework.facts.schema import Schema
from dpframework.tables.crosstab_engine_base import CaseColumn, Selection
from dpframework.tables.crosstab_expressions import Column, UnitPlaces, WholeSteps, as_cases
from dpframework.tables.encoded_row_blocks import without_values
from dpframework.tables.sql_connection import double


@final
@attrs.frozen
class SqlColumns:
    """The SQL expressions of a table's codes and values, and of public expressions over them.

    Attributes
    ----------
    schema
        The schema, with derived attributes.
    codes
        For each attribute, by its name, the expression of its code, a whole number that is never null.
    values
        For each numeric attribute whose values are kept, the expression of its value, null where missing.
    number
        A function that writes a real number in SQL.
    unit_place
        The expression of a row's place within its unit, a whole number from 0. Empty if places are not known.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean, Numeric
    >>> schema = Schema([Boolean("ill", missing=True), Numeric("age", 0, 90, cuts=[30])])
    >>> columns = SqlColumns(schema, {"ill": "c0", "age": "c1"})
    >>> columns.holds(Or([Not(Equals("ill", "true")), Below("age", 30)]))
    '((c0 <> 1 and c0 <> 2) or c1 <= 0)'
    """

    schema: Schema
    codes: Mapping[str, str]
    values: Mapping[str, str] = attrs.field(factory=dict)
    number: Callable[[float], str] = double
    unit_place: str = ""

    def with_derived(self, attribute: Attribute, cases: Cases) -> SqlColumns:
        """Return the columns with one more attribute."""
        schema = attrs.evolve(self.schema, attributes=(*self.schema.attributes, attribute))
        return attrs.evolve(self, schema=schema, codes={**self.codes, attribute.name: self.cell(cases)})

    def holds(self, description: Description) -> str:
        """Return the expression that is true where a description holds, and false elsewhere. It is never null.

        Raises
        ------
        InputError
            If the description is of a kind that has no SQL, or reads a value that is not kept, or an open attribute,
            whose values no schema lists.
        """
        return self._truth(description, True)

    def _truth(self, description: Description, wanted: bool) -> str:
        """Return the expression that is true where a description holds or, if `wanted` is False, where it does not.

        For a missing value, a test and its negation are both false, except the test for missing values. So SQL's `not`
        cannot express `Not`.
        """
        match description:
            case Equals():
                attribute = self.schema[description.attribute]
                if isinstance(attribute, Open):
                    attribute.refuse()
                column, code = self.codes[description.attribute], description.code(self.schema)
                same, missing = f"{column} {'=' if wanted else '<>'} {code}", attribute.missing_code
                return same if wanted or missing in (None, code) else f"({same} and {column} <> {missing})"
            case Below() if description.is_cut(self.schema):
                numeric = description.numeric(self.schema)
                column, code = self.codes[numeric.name], numeric.interior_cuts.index(description.threshold)
                same, missing = f"{column} {'<=' if wanted else '>'} {code}", numeric.missing_code
                return same if wanted or missing is None else f"({same} and {column} <> {missing})"
            case Below():
                threshold = self.number(description.threshold)
                return f"coalesce({self.value(description.attribute)} {'<' if wanted else '>='} {threshold}, false)"
            case Not():
                return self._truth(description.part, not wanted)
            case And() | Or():
                together = isinstance(description, And) is wanted
                parts = [self._truth(part, wanted) for part in description.parts]
                if not parts:
                    return "true" if together else "false"
                return f"({(' and ' if together else ' or ').join(parts)})"
        raise InputError(
            f"a description of the kind '{type(description).__name__}' cannot be written in SQL; use an engine that "
            "counts outside a database, such as memory"
        )

    def value(self, name: str) -> str:
        """Return the expression of a numeric attribute's value, null where it is missing.

        Raises
        ------
        InputError
            If the values are not kept.
        """
        if name not in self.values:
            raise without_values(name)
        return self.values[name]

    def cell(self, column: Column) -> str:
        """Return the expression of a row's cell in a column of a cross table, a whole number that is never null."""
        found = as_cases(column, self.schema)
        if isinstance(found, Attribute):
            return self.codes[found.name]
        if isinstance(found, UnitPlaces):
            if not self.unit_place:
                raise InputError(
                    "this table was opened without the places of rows in their units; open it with placed=True"
                )
            reached = " ".join(f"when {self.unit_place} < {cut} then {k}" for k, cut in enumerate(found.cuts))
            return f"case {reached} else {len(found.cuts)} end"
        if isinstance(found, WholeSteps):
            value = self.value(found.attribute)
            return f"case when {value} is null then {found.number} else {self.steps(found)} - ({found.ends[0]}) end"
        if not found.descriptions:
            return "0"
        tests = " ".join(f"when {self.holds(one)} then {k}" for k, one in enumerate(found.descriptions))
        return f"case {tests} else {len(found.descriptions)} end"

    def steps(self, steps: WholeSteps) -> str:
        """Return the expression of a value in steps (see `WholeSteps`), a whole number, null where it is missing."""
        value, (low, high) = self.value(steps.attribute), map(self.number, (steps.lower, steps.upper))
        clamped = f"(case when {value} < {low} then {low} when {value} > {high} then {high} else {value} end)"
        exact = f"(({clamped} - {self.number(steps.origin)}) / {self.number(steps.step)})"
        if steps.half_up:
            return f"cast(floor({exact} + 0.5e0) as bigint)"
        under = f"floor({exact})"
        # A half is rounded to the even whole number.
        # This difference is exact, except for numbers between -0.5 and 0. For these it is at least 0.5, even after
        # rounding. If it is 0.5, the result is still 0, the nearest whole number, since the floor is -1, which is odd.
        rest = f"({exact} - {under})"
        odd = f"cast({under} as bigint) % 2 <> 0"
        return f"(cast({under} as bigint) + case when {rest} > 0.5e0 or ({rest} = 0.5e0 and {odd}) then 1 else 0 end)"

    def parts(self, by: Cut) -> dict[int, str]:
        """Return, for the number of each part of a cut (see `Cut`), the SQL test that the rows of the part pass.

        If several tests hold for a row, the row is in the part whose test comes first.
        """
        if isinstance(by, Attribute):
            return {code: f"{self.codes[by.name]} = {code}" for code in range(by.size)}
        if isinstance(by, Cases):
            return {k: self.holds(one) for k, one in enumerate(by.descriptions)} | {len(by.descriptions): "true"}
        return {k: self.holds(by[k]) for k in range(len(by) - 1, -1, -1)}

    def selected(self, lineage: Sequence[Selection]) -> tuple[SqlColumns, str]:
        """Return the columns after the steps of a lineage, and the clause that selects the rows it leads to.

        A lineage is the list of steps from the whole table to some of its rows. The clause is empty, or has a leading
        space.
        """
        columns, chosen = self, []
        for step in lineage:
            if isinstance(step, CaseColumn):
                columns = columns.with_derived(step.attribute, step.cases)
            else:
                parts = " ".join(f"when {test} then {part}" for part, test in columns.parts(step.by).items())
                chosen.append(f"case {parts} end = {step.part}")
        return columns, f" where {' and '.join(chosen)}" if chosen else ""
