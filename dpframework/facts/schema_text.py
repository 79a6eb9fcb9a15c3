"""A schema as the text of a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpframework.facts.read_options import ReadOptions
from dpframework.facts.toml import toml_lines


def schema_text(form: Mapping[str, Any], read: ReadOptions) -> str:
    """Return the text of a schema.

    Parameters
    ----------
    form
        What `Schema.to_dict` returns.
    read
        How its files are written.
    """
    tables = ("read", "attribute", "derive")
    facts = {key: value for key, value in form.items() if key not in tables}
    blocks = [toml_lines(facts)] if facts else []
    blocks += [] if read.is_plain else [read.dumps()]
    blocks += [f"[[{name}]]\n" + toml_lines(entry) for name in tables[1:] for entry in form.get(name, ())]
    return "\n".join(blocks)
