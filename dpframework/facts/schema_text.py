"""A schema as a JSON-safe form, and as the text of a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpframework.facts.read_options import ReadOptions
from dpframework.facts.toml import toml_lines

if TYPE_CHECKING:
    from dpframework.facts.schema import Schema


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


def schema_text(form: Mapping[str, Any], read: ReadOptions) -> str:
    """Return the text of a schema.

    Parameters
    ----------
    form
        The schema as `schema_form` returns it.
    read
        The options for reading its files.
    """
    tables = ("read", "attribute", "derive")
    facts = {key: value for key, value in form.items() if key not in tables}
    blocks = [toml_lines(facts)] if facts else []
    blocks += [] if read.is_plain else [read.dumps()]
    blocks += [f"[[{name}]]\n" + toml_lines(entry) for name in tables[1:] for entry in form.get(name, ())]
    return "\n".join(blocks)
