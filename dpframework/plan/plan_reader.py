"""The functions that read plans from JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from dpframework.facts.domain_policies import OutOfDomain
from dpframework.facts.errors import InputError
from dpframework.facts.json_reader_and_schema_check import parsed_json, require_form
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.mechanisms import BUILT_IN
from dpframework.mechanisms.base import Mechanism
from dpframework.plan.node_kind_table import KINDS, read_node
from dpframework.plan.plan import SCHEMA_VERSION, Budget, Plan, PublicFacts, hash_of

P = TypeVar("P", bound=Plan)


def _add_kinds(schema: dict[str, Any]) -> None:
    """Extend the JSON Schema of plans by those kinds of nodes that define their own JSON forms."""
    node = schema["$defs"]["node"]
    for kind in KINDS.values():
        if kind.form is not None:
            shared = {"kind": True, "part": {"$ref": "#/$defs/node"}, "parts": {"$ref": "#/$defs/nodes"}}
            properties = {**shared, **kind.form["properties"]}
            schema["$defs"][kind.name] = {"additionalProperties": False, **kind.form, "properties": properties}
            node["properties"]["kind"]["enum"].append(kind.name)
            is_kind = {"properties": {"kind": {"const": kind.name}}}
            node["allOf"].append({"if": is_kind, "then": {"$ref": f"#/$defs/{kind.name}"}})


def plan_from_json(
    text: str,
    mechanisms: Iterable[type[Mechanism]] = BUILT_IN,
    *,
    source: str = "plan",
    kind: type[P],
) -> P:
    """Read the output of `Plan.to_json`. The plan can be totalled, checked and compared, but not run.

    Parameters
    ----------
    text
        The text of the file, in JSON.
    mechanisms
        The known classes of mechanisms. Give the registry's classes to include plugins.
    source
        The name of the file in error messages.
    kind
        The class of the returned plan.

    Raises
    ------
    InputError
        If the text is not a plan, has another version, uses an unknown mechanism, or was changed after it was written.
    """
    try:
        form = parsed_json(text)
        version = form["schema_version"]
        if version != SCHEMA_VERSION:
            raise InputError(
                f"plan version {version!r} cannot be read; this dpframework reads version {SCHEMA_VERSION}"
            )
        # Without `more`, the compiled schema is kept for later files. If there are kinds of nodes that the schema file
        # does not define, they are added to the schema, which is then compiled for each file.
        more = _add_kinds if any(kind.form is not None for kind in KINDS.values()) else None
        require_form(form, "dpframework.plan", "plan.schema.json", more=more)
        known = {m.name: m for m in mechanisms}
        plan = kind(
            read_node(form["root"], known),
            Relation.parse(form["relation"]),
            PublicFacts(**form["schema"]),
            Budget(**form["budget"]),
            miners=dict(form["miners"]),
            out_of_domain=OutOfDomain.parse(form.get("out_of_domain", OutOfDomain.CLAMP)),
            code=dict(form["code"]),
            unit=PrivacyUnit(**form.get("unit", {})),
            data=form.get("data", ()),
            engine=form.get("engine"),
        )
        claimed = form.pop("hash")
        # The written hash must equal the hash of the file's content and that of the plan made from it.
        hashes = {claimed, hash_of(form), plan.hash}
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        raise InputError(f"{source}: is not a plan that dpframework wrote") from None
    if len(hashes) > 1:
        raise InputError(f"{source}: the plan's content does not fit its hash; it was changed after it was written")
    return plan
