"""A schema as a form and as the text of a file: what is read back is the same schema."""

from __future__ import annotations

import json
import tomllib

import pytest

from dpframework.facts import Boolean, Categorical, Numeric, Open, Schema, derive
from dpframework.facts.schema_text import schema_form, schema_text

ATTRIBUTES = [Boolean("ill"), Numeric("age", 0, 100, bins=4), Categorical("c", ["x", 'y "quoted"']), Open("town")]
READ = {"separator": ";", "columns": {"age": {"null": ["?"]}}}
SCHEMAS = {
    "plain": Schema(ATTRIBUTES),
    "counted": Schema(ATTRIBUTES, max_rows=100, about_rows=50),
    "inferred": Schema(ATTRIBUTES, inferred=["values of c"]),
    "read": Schema(ATTRIBUTES, read=READ),
    "derived": Schema(ATTRIBUTES, derive=[derive("old", "age >= 65"), derive("both", "old and ill")]),
    "of units": Schema(ATTRIBUTES[:2], derive=[derive("oldest", "max(age)", per="unit")]),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_text_of_a_schema_gives_the_schema(name: str) -> None:
    schema = SCHEMAS[name]
    form = schema_form(schema)
    assert json.loads(json.dumps(form)) == form
    text = schema_text(schema)
    assert Schema.from_dict(tomllib.loads(text)) == schema
    assert Schema.from_dict(form).fingerprint == schema.fingerprint


def test_a_form_states_only_what_the_schema_states() -> None:
    assert list(schema_form(SCHEMAS["plain"])) == ["attribute"]
    assert list(schema_form(SCHEMAS["counted"])) == ["max_rows", "about_rows", "attribute"]
    assert [one["name"] for one in schema_form(SCHEMAS["of units"])["attribute"]] == ["ill", "age"]
