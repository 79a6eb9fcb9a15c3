"""The schema, which holds the public facts about a table (its attributes, row counts and file options) but no data.

A schema is complete before a run opens the private table. So every value in it may be shown, also in plans and errors.
"""

from __future__ import annotations

import functools
import hashlib
import json
import operator
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, final

import attrs

from dpframework.facts.argument_type_checks import typechecked
from dpframework.facts.attributes import Attribute, View
from dpframework.facts.derived_columns import DerivedColumn, Input, derived_columns
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.files import read_text, write_whole
from dpframework.facts.notebook_html import html_table
from dpframework.facts.output_overwrite_rule import FileKind
from dpframework.facts.public_lookup_tables import with_tables
from dpframework.facts.read_options import ReadOptions, as_read_options
from dpframework.facts.schema_text import schema_facts, schema_form, schema_text
from dpframework.facts.schema_with_derived_columns import (
    UnitRows,
    inputs_of,
    split_by_unit,
    with_derived,
    with_inputs,
    without_derived,
)
from dpframework.facts.toml import parse_toml, prefix_errors
from dpframework.facts.value_checks import MOST_ROWS as MOST_ROWS, check_counts, printable_name, require_list

#: The kind of the files that `Schema.dump` writes.
SCHEMA_FILE = FileKind.of_pattern("a schema", r"(^|\n)\[\[attribute\]\]\n")


def _as_attributes(attributes: Iterable[Attribute]) -> tuple[Attribute, ...]:
    return require_list(attributes, "attributes")


def _as_inferred(inferred: Iterable[str]) -> tuple[str, ...]:
    return require_list(inferred, "inferred")


@final
@attrs.frozen(slots=False)
class Schema:
    """The public facts about a table, namely its attributes in column order and bounds on its size.

    Attributes
    ----------
    attributes
        The attributes, at least one. Their names differ.
    rows
        The public exact number of rows, or None where it is secret.
    max_rows
        A public upper bound on the number of rows, or None. No table has more than `MOST_ROWS`, 2,147,483,647.
    about_rows
        About how many rows the table has, as is publicly known, or None. Plans compare errors with this number. No
        claim and no noise depends on it, so it is not part of the fingerprint. It must not be given beside `rows`.
    inferred
        One text for each fact that was taken from private data to make this schema. Empty if it was written by hand.
    read
        How the table is written in its files, as `ReadOptions` or a mapping of such options. The options are part of
        the fingerprint, and so of every plan.
    derive
        Columns that are computed from other columns (see `dpframework.derive`), in the order of their computation. A
        file need not hold them. They become attributes, after the given ones. If some are computed per unit, the table
        has one row for each unit. Its attributes are then these columns, and the columns that are computed from them.
    per_unit
        How the row of each unit is computed, if some columns are computed per unit, else None. It follows from
        `derive`.

    Raises
    ------
    InputError
        If a name occurs twice, there is no attribute, a count is below 1 or above `MOST_ROWS`, `rows` or `about_rows`
        exceeds `max_rows`, or `rows` and `about_rows` are both given. If `read` does not fit an attribute, or a derived
        column has no public domain.

    Examples
    --------
    >>> from dpframework.facts.attributes import Boolean, Numeric
    >>> schema = Schema([Boolean("smokes"), Numeric("age", 17, 90, bins=4)], max_rows=1000)
    >>> schema.names, schema.index("age"), schema["age"].size, schema.row_bound
    (('smokes', 'age'), 1, 4, 1000)
    >>> Schema.loads(schema.dumps()) == schema
    True
    """

    attributes: tuple[Attribute, ...] = attrs.field(converter=_as_attributes)
    rows: int | None = None
    max_rows: int | None = None
    inferred: tuple[str, ...] = attrs.field(default=(), converter=_as_inferred)
    about_rows: int | None = attrs.field(default=None, kw_only=True)
    read: ReadOptions = attrs.field(default=None, converter=as_read_options, kw_only=True)
    derive: tuple[DerivedColumn, ...] = attrs.field(default=(), converter=derived_columns, kw_only=True)
    per_unit: UnitRows | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if not self.attributes:
            raise InputError("a schema needs at least one attribute")
        for attribute in self.attributes:
            if not isinstance(attribute, Attribute):
                raise InputError(f"a schema holds attributes, not {type(attribute).__name__}")
        if self.per_unit is None and any(column.per_unit for column in self.derive):
            # This schema becomes the schema of a table with one row for each unit.
            of_rows, of_units, after = split_by_unit(self.derive)
            rows = UnitRows(Schema(self.attributes, read=self.read, derive=of_rows), tuple(of_units))
            for name, found in (
                ("per_unit", rows), ("attributes", rows.attributes()), ("read", ReadOptions()), ("derive", tuple(after))
            ):  # fmt: skip
                object.__setattr__(self, name, found)
        if self.derive:
            object.__setattr__(self, "attributes", with_derived(self.attributes, self.derive, self.read))
        if len(self._positions) < len(self.attributes):
            names = self.names
            twice = next(name for k, name in enumerate(names) if name in names[:k])
            raise InputError(f"attribute '{twice}' is listed twice; rename one of the two, or leave it out")
        for field, count in check_counts(self.rows, self.max_rows, self.about_rows).items():
            object.__setattr__(self, field, count)
        for text in self.inferred:
            printable_name(text, "each text in inferred")
        if self.read.columns:
            for attribute in self.attributes:
                self.read.require_fit(attribute)

    @functools.cached_property
    def in_files(self) -> Schema:
        """The schema of the rows that files hold. It differs from this one only if the table has one row per unit."""
        return self if self.per_unit is None else self.per_unit.schema

    @functools.cached_property
    def derivation(self) -> tuple[DerivedColumn, ...]:
        """All derived columns: first columns of rows in files, then columns per unit, then columns of units' rows."""
        return self.derive if self.per_unit is None else (*self.in_files.derive, *self.per_unit.columns, *self.derive)

    @functools.cached_property
    def derivation_inputs(self) -> Mapping[str, Input]:
        """Each attribute that derived columns may read, by name, with the unit in which its dates are counted."""
        return inputs_of(self.attributes, self.derive, self.read)

    @functools.cached_property
    def columns(self) -> tuple[Attribute, ...]:
        """The attributes that are not derived from others in the same row, in column order (see `in_files`)."""
        return without_derived(self.attributes, self.derive) if self.derive else self.attributes

    @functools.cached_property
    def column_names(self) -> tuple[str, ...]:
        """The names of `columns`."""
        return tuple(map(operator.attrgetter("name"), self.columns))

    @functools.cached_property
    def _positions(self) -> dict[str, int]:
        return {attribute.name: k for k, attribute in enumerate(self.attributes)}

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names, in column order."""
        return tuple(map(operator.attrgetter("name"), self.attributes))

    @property
    def row_bound(self) -> int | None:
        """The public row count if there is one, else the public upper bound, else None."""
        return self.rows if self.rows is not None else self.max_rows

    def _repr_html_(self) -> str:
        """Return the attributes with their kinds and public domains, for a notebook."""
        size = f"exactly {self.rows:,} rows" if self.rows is not None else ""
        size = size or (f"at most {self.max_rows:,} rows" if self.max_rows is not None else "a secret number of rows")
        size += f", about {self.about_rows:,}" if self.about_rows is not None else ""
        rows = [(a.name, type(a).__name__, a.domain_text, a.view or "") for a in self.attributes]
        return html_table(("attribute", "kind", "values", "view"), rows, f"Schema of a table of {size}")

    @functools.cached_property
    def fingerprint(self) -> str:
        """The SHA-256, in hex, of the schema's facts. Equal schemas have equal fingerprints on every machine.

        The texts in `inferred` are among these facts, so a schema that loses them has another fingerprint. `about_rows`
        is not one of them, so that an approval still holds when more rows have come.
        """
        facts = {name: fact for name, fact in self.to_dict().items() if name != "about_rows"}
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def index(self, name: str) -> int:
        """Return the position of the attribute with a name.

        Raises
        ------
        InputError
            If there is no such attribute. The message names the nearest one.
        """
        if name in self:
            return self._positions[name]
        name = str(name)
        if self.per_unit is not None and name in self.in_files:
            raise InputError(
                f"attribute {name!r} belongs to single rows, and the table has one row for each unit; derive a column "
                f'of units from it, such as first({name}) with per = "unit"'
            )
        raise InputError(f"attribute {name!r} is not in the schema; {nearest(name, self.names)}")

    def __getitem__(self, name: str) -> Attribute:
        """Return the attribute with a name, or raise as `index` does."""
        known = isinstance(name, str) and name in self._positions
        return self.attributes[self._positions[name] if known else self.index(name)]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._positions

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    def view(self, view: View | str) -> tuple[Attribute, ...]:
        """Return the attributes of one view, in column order.

        Examples
        --------
        >>> from dpframework.facts.attributes import Boolean
        >>> schema = Schema([Boolean("a", view="left"), Boolean("b", view="right")])
        >>> [attribute.name for attribute in schema.view("right")]
        ['b']
        """
        side = View.parse(view)
        return tuple(attribute for attribute in self.attributes if attribute.view is side)

    def select(self, names: Iterable[str]) -> Schema:
        """Return the schema of the named attributes only, in the order of `names`, with derived attributes last.

        If a named attribute is derived, the schema also has the attributes that it is computed from.

        Raises
        ------
        InputError
            If a name is unknown or occurs twice, or no name is given.
        """
        kept = [self[name] for name in require_list(names, "names")]
        kept, derive = with_inputs(kept, self.attributes, self.derive)
        gone = set(self.names) - {attribute.name for attribute in kept}
        rows = None if self.per_unit is None else self.per_unit.select(kept)
        return attrs.evolve(self, attributes=kept, read=self.read.without(gone), derive=derive, per_unit=rows)

    def replace(self, *attributes: Attribute) -> Schema:
        """Return the schema with the attributes of the same names replaced, each in its place.

        Raises
        ------
        InputError
            If a name is unknown, or the attribute of that name is derived.

        Examples
        --------
        >>> from dpframework.facts.attributes import Boolean
        >>> Schema([Boolean("a"), Boolean("b")]).replace(Boolean("b", missing=True))["b"].missing
        True
        """
        replaced = list(self.columns)
        for attribute in attributes:
            place = self.index(attribute.name)
            if self.per_unit is not None or self.attributes[place] not in replaced:
                raise InputError(f"attribute '{attribute.name}' is derived; change its expression instead")
            replaced[replaced.index(self.attributes[place])] = attribute
        return attrs.evolve(self, attributes=replaced)

    def of_part(self) -> Schema:
        """Return the schema of a part or a sample of the table, whose number of rows is secret and has only a bound.

        Use it to plan releases from a part. The parts of a private table have this schema (see
        `PrivateTable.partition`).

        Examples
        --------
        >>> from dpframework.facts.attributes import Boolean
        >>> part = Schema([Boolean("a")], rows=500).of_part()
        >>> part.rows, part.max_rows
        (None, 500)
        """
        if self.rows is None and self.about_rows is None:
            return self
        return attrs.evolve(self, rows=None, max_rows=self.row_bound, about_rows=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the schema in a JSON-safe form, with the keys and the order of a schema file."""
        return schema_form(self)

    @classmethod
    @typechecked
    def from_dict(cls, form: Mapping[str, Any]) -> Schema:
        """Read the output of `to_dict`.

        Raises
        ------
        InputError
            If a key is unknown (the message names the nearest known one) or is missing, or a fact is wrong.
        """
        return cls(**schema_facts(form))

    @classmethod
    @typechecked
    def loads(cls, text: str, source: str = "schema") -> Schema:
        '''Read a schema from the text of a TOML file.

        Parameters
        ----------
        text
            TOML: `rows`, `max_rows`, `about_rows`, `inferred`, `[read]`, and `[[attribute]]` and `[[derive]]` tables.
        source
            The name of the text in error messages, usually the file's name.

        Raises
        ------
        InputError
            If the text is not TOML or does not describe a schema.

        Examples
        --------
        >>> text = """
        ... [[attribute]]
        ... name = "sex"
        ... kind = "categorical"
        ... values = ["Female", "Male"]
        ... """
        >>> Schema.loads(text).names
        ('sex',)
        '''
        with prefix_errors(f"{source}: "):
            return cls(**schema_facts(parse_toml(text, "a schema file")))

    @classmethod
    @typechecked
    def load(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema from a TOML file in UTF-8.

        Raises
        ------
        InputError
            If the file is missing, cannot be read, or does not describe a schema. The message names the file.
        """
        return read_schema(Path(path))

    def dumps(self) -> str:
        """Return the schema as the text of a TOML file, which `loads` reads back as an equal schema.

        Examples
        --------
        >>> from dpframework.facts.attributes import Boolean
        >>> print(Schema([Boolean("smokes")], max_rows=500).dumps(), end="")
        max_rows = 500
        <BLANKLINE>
        [[attribute]]
        name = "smokes"
        kind = "boolean"
        """
        return schema_text(self)

    @typechecked
    def dump(self, path: str | os.PathLike[str]) -> None:
        """Write the schema to a TOML file, whole or not at all.

        Raises
        ------
        InputError
            If the file cannot be written, or exists and is not a schema. An existing file then stays as it is.
        """
        write_whole(Path(path), self.dumps(), SCHEMA_FILE)


def read_schema(path: Path, private: Iterable[Path] = ()) -> Schema:
    """Read a schema as `Schema.load` does, for the framework's own code, whose types mypy has checked.

    Checking types at run time would take a tenth of the time in which a command plans a study. `private` are the files
    of the private table, which are not accepted as public tables.
    """
    text = read_text(path, "a schema file in TOML")
    with prefix_errors(f"{path.name}: "):
        return Schema(**schema_facts(with_tables(parse_toml(text, "a schema file"), path.parent, private)))
