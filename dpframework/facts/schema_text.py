"""Write a schema in a JSON-safe form, which is also the content of its TOML file, and read this form back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from dpframework.facts.attributes import Attribute, Boolean, Categorical, Numeric
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.open_attribute import Open
from dpframework.facts.toml import refuse_unknown, toml_lines

if TYPE_CHECKING:
    from dpframework.facts.schema import Schema

_WRITE = {
    "lower": "write the least value that can occur, from a code book and not from the rows",
    "upper": "write the largest value that can occur, from a code book and not from the rows",
    "values": "list the values that can occur, from a code book and not from the rows",
}
_KINDS: dict[str, type[Attribute]] = {kind.kind: kind for kind in (Boolean, Categorical, Numeric, Open)}


def schema_form(schema: Schema) -> dict[str, Any]:
    """Return a schema in a JSON-safe form, with the keys and the order of a schema file."""
    form: dict[str, Any] = {}
    for name in ("rows", "max_rows", "about_rows"):
        if getattr(schema, name) is not None:
            form[name] = getattr(schema, name)
    if schema.inferred:
        form["inferred"] = list(schema.inferred)
    files = schema.in_files
    if not files.read.is_plain:
        form["read"] = files.read.to_dict()
    form["attribute"] = [attribute.to_dict() for attribute in files.columns]
    if schema.derivation:
        form["derive"] = [column.to_dict() for column in schema.derivation]
    return form


def schema_text(schema: Schema) -> str:
    """Return a schema as the text of a schema file."""
    form, read, tables = schema_form(schema), schema.in_files.read, ("read", "attribute", "derive")
    facts = {key: value for key, value in form.items() if key not in tables}
    blocks = [toml_lines(facts)] if facts else []
    blocks += [] if read.is_plain else [read.dumps()]
    blocks += [f"[[{name}]]\n" + toml_lines(entry) for name in tables[1:] for entry in form.get(name, ())]
    return "\n".join(blocks)


def schema_facts(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `Schema` for the JSON-safe form of a schema.

    Raises
    ------
    InputError
        If a key is unknown, or an attribute is wrong. The other facts are checked by `Schema`.
    """
    refuse_unknown(form, ("rows", "max_rows", "about_rows", "inferred", "read", "attribute", "derive"), "unknown key")
    entries = form.get("attribute", [])
    if not isinstance(entries, list | tuple):
        raise InputError("each attribute must be written under its own [[attribute]] heading")
    attributes = tuple(attribute_from_dict(entry, k) for k, entry in enumerate(entries, start=1))
    return {"attributes": attributes, **{name: fact for name, fact in form.items() if name != "attribute"}}


def attribute_from_dict(form: object, position: int) -> Attribute:
    """Read the output of `Attribute.to_dict`. `position`, counted from 1, identifies an attribute without a name."""
    if not isinstance(form, Mapping):
        raise InputError(f"attribute number {position} must be a table of facts, written as [[attribute]]")
    name = form.get("name")
    where = f"attribute '{name}': " if isinstance(name, str) else f"attribute number {position}: "
    if "name" not in form:
        raise InputError(f'{where}has no name; write the name of its column, such as name = "age"')
    if "kind" not in form:
        raise InputError(f"{where}has no kind; accepted are {', '.join(map(repr, _KINDS))}")
    kind = form["kind"]
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InputError(f"{where}kind {kind!r} is unknown; {nearest(str(kind), _KINDS)}")
    fields = attrs.fields(_KINDS[kind])
    refuse_unknown(form, ["kind", *(field.name for field in fields)], f"{where}unknown key")
    for field in fields:
        if field.default is attrs.NOTHING and field.name not in form:
            raise InputError(f"{where}a {kind} attribute needs '{field.name}'; {_WRITE.get(field.name, 'add it')}")
    return _KINDS[kind](**{key: value for key, value in form.items() if key != "kind"})
