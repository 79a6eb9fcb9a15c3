"""Plans read back from JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from dpframework.facts.attributes import attribute_from_dict
from dpframework.facts.descriptions import Cases, Description, description_from_dict
from dpframework.facts.errors import InputError, nearest
from dpframework.facts.formats import require_form
from dpframework.facts.policies import OutOfDomain
from dpframework.facts.privacy import Relation
from dpframework.facts.unit import PrivacyUnit
from dpframework.mechanisms import BUILT_IN
from dpframework.mechanisms.base import Mechanism
from dpframework.plan.nodes import FromRelease, Node, Parts, Post, Step, either, parallel, repeat, sample, sequential
from dpframework.plan.plan import SCHEMA_VERSION, Budget, Plan, PublicFacts, hash_of
from dpframework.queries.base import Declared, QueryFacts, Sensitivity


def _read_parts(form: Any) -> Parts | None:
    if form is None:
        return None
    if "attribute" in form:
        return attribute_from_dict(form["attribute"], 0)
    if "released" in form:
        return FromRelease(form["released"], attributes=form.get("attributes", ()))
    if "cases" in form:
        return Cases(description_from_dict(d) for d in form["cases"])
    descriptions: tuple[Description, ...] = tuple(description_from_dict(d) for d in form["descriptions"])
    return descriptions


def _read_step(form: Mapping[str, Any], mechanisms: Mapping[str, type[Mechanism]]) -> Step:
    query = dict(form["query"])
    query["sensitivities"] = [Sensitivity(**declared) for declared in query["sensitivities"]]
    of_unit = tuple(Sensitivity(**declared) for declared in query.pop("for_rows", ()))
    parameters = dict(form["mechanism"])
    name = parameters.pop("name")
    if name not in mechanisms:
        raise InputError(
            f"the plan uses the mechanism '{name}', which no installed plugin brings; {nearest(name, mechanisms)}"
        )
    return Step(
        form["name"],
        Declared(QueryFacts(**query), of_unit),
        mechanisms[name](**parameters),
        uses=form["uses"],
        assumptions=form["assumptions"],
        threshold=form["threshold"],
    )


def _read_node(form: Mapping[str, Any], mechanisms: Mapping[str, type[Mechanism]]) -> Node:
    def read(part: Mapping[str, Any]) -> Node:
        return _read_node(part, mechanisms)

    match form["kind"]:
        case "step":
            return _read_step(form, mechanisms)
        case "post":
            return Post(form["name"], form["uses"])
        case "repeat":
            return repeat(form["times"], read(form["part"]))
        case "sample":
            return sample(form["rate"], read(form["part"]), name=form["name"])
        case "parallel":
            return parallel(*map(read, form["parts"]), by=_read_parts(form["by"]), name=form["name"])
        case "sequential":
            return sequential(*map(read, form["parts"]), name=form["name"])
        case "either":
            return either(*map(read, form["parts"]))
    raise InputError(f"a plan has no part of kind {form['kind']!r}")


P = TypeVar("P", bound=Plan)


def plan_from_json(
    text: str,
    mechanisms: Iterable[type[Mechanism]] = BUILT_IN,
    *,
    source: str = "plan",
    kind: type[P],
) -> P:
    """Read a plan that `Plan.to_json` wrote: it can be totalled and checked, and compared by its hash, not run.

    Parameters
    ----------
    text
        JSON.
    mechanisms
        The known mechanism classes (the registry's, for those of plugins).
    source
        The file's name, for errors.
    kind
        The class of plan to make.

    Raises
    ------
    InputError
        If the text is no plan, of another version, uses an unknown mechanism, or no longer fits its hash.
    """
    try:
        form = json.loads(text)
        version = form["schema_version"]
        if version != SCHEMA_VERSION:
            raise InputError(
                f"plan version {version!r} cannot be read; this dpframework reads version {SCHEMA_VERSION}"
            )
        require_form(form, "dpframework.plan", "plan.schema.json")
        known = {m.name: m for m in mechanisms}
        plan = kind(
            _read_node(form["root"], known),
            Relation.parse(form["relation"]),
            PublicFacts(**form["schema"]),
            Budget(**form["budget"]),
            miners=dict(form["miners"]),
            out_of_domain=OutOfDomain.parse(form.get("out_of_domain", OutOfDomain.CLAMP)),
            code=dict(form["code"]),
            unit=PrivacyUnit(**form.get("unit", {})),
        )
        claimed = form.pop("hash")
        hashes = {claimed, hash_of(form), plan.hash}  # of what the file shows, and of what follows from it
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        raise InputError(f"{source}: is not a plan that dpframework wrote") from None
    if len(hashes) > 1:
        raise InputError(f"{source}: the plan's content does not fit its hash; it was changed after it was written")
    return plan
