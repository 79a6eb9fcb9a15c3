"""Reading attributes from the form in which schema files, plans and results hold them."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from dpframework.facts.attributes import Attribute, Boolean, Categorical, Numeric
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.open_attribute import Open
from dpframework.facts.toml import refuse_unknown

_WRITE = {
    "lower": "write the least value that can occur, from a code book and not from the rows",
    "upper": "write the largest value that can occur, from a code book and not from the rows",
    "values": "list the values that can occur, from a code book and not from the rows",
}
_KINDS: dict[str, type[Attribute]] = {kind.kind: kind for kind in (Boolean, Categorical, Numeric, Open)}


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
