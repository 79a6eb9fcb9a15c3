"""An entry for the public registry of differential-privacy deployments (https://registry.opendp.org).

The registry sorts its entries into tiers by how much they tell. The fields here are those of the third tier. Most are
computed from the plan, and the others come from the owner's statements. If a statement is missing that only the third
tier needs, the entry is of the second tier.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from dpframework.accountant import PureAccountant
from dpframework.facts.errors import InputError
from dpframework.facts.json_reader_and_schema_check import require_form
from dpframework.facts.output_overwrite_rule import FileKind
from dpframework.facts.privacy_losses import PrivacyLoss, Relation, readable
from dpframework.plan.error_bounds_by_result import parts_of
from dpframework.plan.verification_records_file import code_verdicts
from dpframework.reports.dossier.dossier_content import DossierSubject, LedgerState
from dpframework.reports.dossier.owner_statements import Statements
from dpframework.reports.plan_and_node_losses import loss_text, whole_rho
from dpframework.study.study_plan_totals_and_findings import StudyPlan
from dpframework.version import __version__

#: The pattern by which files that `registry_text` wrote are recognized.
ENTRY_FILE = FileKind.of_pattern("an entry for the registry", r"^url_slug: ")
#: The statement that fills each field of an entry's basic facts, by the name of the field.
_STATED = {"name": "product.name", "data_curators": "owner.organisation", "description": "product.description",
           "intended_use": "product.intended_use", "data_product_type": "product.type",
           "data_product_region": "product.region", "publication_date": "product.publication_date"}  # fmt: skip


def registry_entry(
    plan: StudyPlan, statements: Statements, *, name: str = "study", ledger: LedgerState | None = None
) -> dict[str, Any]:
    """Return a study's entry for the registry, JSON-safe, in the registry's form.

    Parameters
    ----------
    plan
        The plan of the study.
    statements
        The owner's statements.
    name
        The name that stands in the entry's address if the statements give no letters or digits for it.
    ledger
        The ledger's entries about the study's data set, if there is a ledger.

    Raises
    ------
    InputError
        If the plan has no valid total, if a statement is missing that the registry asks of every entry, or if a
        statement does not fit its field.
    """
    lacking = [place for place in _STATED.values() if not statements[place]]
    if lacking:
        raise InputError(
            f"the registry needs these statements in every entry, and they are still open: {', '.join(lacking)}"
        )
    subject = DossierSubject(plan, statements, ledger)
    authors = (statements["owner.authors"] or statements["owner.organisation"]).split(",")
    stated: dict[str, Any] = {field: statements[place] for field, place in _STATED.items()}
    stated |= {"data_curators": [stated["data_curators"]], "data_product_sector": statements["product.sector"]}
    deployment: dict[str, Any] = {
        "basic": stated,
        "dp_variant": _variant(subject),
        "privacy_loss": _loss(subject),
        "deployment_model": _model(subject),
        "accounting": _accounting(subject),
        "implementation": _implementation(subject),
        "administrative": {
            "sources": statements["product.sources"],
            "registry_authors": [author.strip() for author in authors if author.strip()],
        },
    }
    deployment = {part: {key: value for key, value in fields.items() if value} for part, fields in deployment.items()}
    open_fields = [field for part in (_MODEL, _IMPLEMENTATION) for field, place in part if not statements[place]]
    named = [statements[place] for place in ("product.name", "owner.organisation", "product.publication_date")]
    pieces = (re.sub(r"[^a-z0-9]+", "-", piece.lower()) for piece in (*named[:2], named[2][:4]))
    entry = {
        # The registry makes its addresses in this way, so a name that ends in a bracket is followed by two hyphens.
        "url_slug": "-".join(pieces).strip("-") or name,
        "status": "Draft",
        "tier": 2 if open_fields else 3,
        "deployment": deployment,
    }
    require_form(entry, "dpframework.reports.dossier", "registry.schema.json")
    try:
        datetime.date.fromisoformat(deployment["basic"]["publication_date"])
    except ValueError:
        raise InputError("the publication date is no date; write it as YYYY-MM-DD") from None
    return entry


def _notion(plan: StudyPlan) -> tuple[str, dict[str, float], str]:
    """Return the notion of privacy of the smallest total: its name in the registry, its parameters, and a remark."""
    total = plan.smallest_total()
    if total is None or total.epsilon is None:
        raise InputError("the plan has no valid total, so no entry can say what it guarantees")
    rho = whole_rho(plan)
    if not total.delta:
        return "Pure DP", {"epsilon": float(total.epsilon)}, ""
    if rho is not None:
        totals = plan.totals()
        more = f"rho {readable(rho)}, from which {loss_text(totals.get('zcdp'))} follows"
        more += "".join(
            f"; by {name} accounting, {loss_text(loss)}"
            for name, loss in totals.items()
            if name != "zcdp" and loss == total
        )
        return "Zero-concentrated DP", {"rho": float(rho)}, more
    return "Approximate DP", {"epsilon": float(total.epsilon), "delta": float(total.delta)}, ""


def _variant(subject: DossierSubject) -> dict[str, Any]:
    plan = subject.plan
    facts = plan.facts
    names = "" if plan.schema is None else ", ".join(plan.schema.names)
    clear = "None by this plan."
    if facts.rows is not None:
        clear = f"The number of rows, {facts.rows}."
    elif facts.row_bound is not None:
        clear = f"That there are at most {facts.row_bound} rows."
    if facts.inferred:
        clear += f" The schema was inferred from the rows: {'; '.join(facts.inferred)}."
    if subject.ledger is not None and subject.ledger.outside:
        clear += f" Outside this study: {' '.join(subject.ledger.outside)}"
    domain = f"Tables with the attributes {names}, whose domains are public." if names else ""
    return {"variant_name": _notion(plan)[0], "data_domain": domain, "unprotected_quantities": clear}


def _loss(subject: DossierSubject) -> dict[str, Any]:
    plan = subject.plan
    _, parameters, more = _notion(plan)
    change = {
        Relation.ADD_OR_REMOVE_ONE: "Neighbouring tables differ by the presence of",
        Relation.REPLACE_ONE: "Neighbouring tables have the same public size and differ in",
    }[plan.relation]
    return {
        "privacy_unit": str(plan.unit),
        "privacy_unit_details": f"{change} {plan.unit} ({plan.relation}).",
        "privacy_parameters": parameters,
        "privacy_parameters_details": more,
    }


#: Fields about the deployment that only the third tier needs, each with the statement that fills it.
_MODEL = (("actors", "trust.actors"), ("release_type_details", "product.releases"))


def _model(subject: DossierSubject) -> dict[str, Any]:
    said, unit = subject.statements["product.releases"], subject.plan.unit
    each = f"Each {unit.period} has a budget of its own; {unit.gap}." if unit.period is not None else ""
    many = unit.period is not None or said.lower().startswith("many")
    return {
        "model_name": "Central",
        "model_name_details": "Noise is added by dpframework where the rows lie; only releases leave.",
        "actors": subject.statements["trust.actors"],
        "release_type": "Many releases" if many else "One release",
        "release_type_details": f"{said} {each}".strip(),
        "data_source_type": subject.statements["product.data_source"] or ("Dynamic" if many else "Static"),
        "access_type": "Non-interactive",
        "access_type_details": "All releases stand in a plan, which is approved before the rows are read.",
    }


def _accounting(subject: DossierSubject) -> dict[str, Any]:
    plan = subject.plan
    totals = "; ".join(f"{name} accounting: {loss_text(loss)}" for name, loss in plan.totals().items())
    by_result = []
    for name, part in parts_of(plan):
        amount = PureAccountant(plan.relation).amount_of(part.node, plan).under(plan.relation)
        by_result.append(f"{name}: {loss_text(PrivacyLoss(amount) if amount is not None else None)}")
    composed = f"{len(plan.index.steps)} planned releases, composed as the plan says. {totals}."
    if subject.ledger is not None:
        composed += f" {' '.join(subject.ledger.sentences)}"
    return {
        "post_processing": "Results are computed from releases and public facts only, and read no further rows.",
        "composition": f"{composed} By result, in pure epsilon: {'; '.join(by_result)}.",
    }


#: Fields about the implementation that only the third tier needs, each with a statement that it quotes.
_IMPLEMENTATION = (
    ("preprocessing_and_hyperparameter_tuning", "choices.looks"),
    ("mechanisms", "security.access"),
    ("justification", "justification.epsilon"),
)


def _implementation(subject: DossierSubject) -> dict[str, Any]:
    plan, said = subject.plan, subject.statements
    names = dict.fromkeys(step.mechanism.name for step in plan.steps())
    rounding = "drawn exactly, over integers" if "real-arithmetic" not in plan.assumptions else "in floating point"
    lines = [
        f"Mechanisms: {', '.join(names)}, of dpframework {__version__}, {rounding}, from the system's generator.",
        *(f"{one}." for one in (code_verdicts(plan, plan.verified) if plan.verified is not None else ())),
        *(said[place] for place in ("security.timing", "security.access", "security.measures") if said[place]),
    ]
    reasons = [said[place] for place in ("justification.epsilon", "justification.process") if said[place]]
    looks = [said[place] for place in ("choices.bounds", "choices.looks") if said[place]]
    return {
        "preprocessing_and_hyperparameter_tuning": " ".join(looks),
        "mechanisms": "\n".join(f"- {line}" for line in lines),
        "justification": " ".join(reasons),
    }


def registry_text(entry: Mapping[str, Any]) -> str:
    r"""Return an entry as YAML. A text stands in double quotes, or in a block if it has several lines.

    Examples
    --------
    >>> print(registry_text({"tier": 3, "basic": {"name": "Yearly: counts", "notes": "a\nb"}}), end="")
    tier: 3
    basic:
      name: "Yearly: counts"
      notes: |-
        a
        b
    """
    return "".join(_yaml_lines(entry, ""))


def _yaml_lines(form: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, value in form.items():
        match value:
            case Mapping():
                yield f"{indent}{key}:\n"
                yield from _yaml_lines(value, indent + "  ")
            case list():
                yield f"{indent}{key}:\n"
                yield from (f"{indent}  - {json.dumps(one, ensure_ascii=False)}\n" for one in value)
            case str() if "\n" in value and _is_block(value):
                yield f"{indent}{key}: |-\n"
                yield from (f"{indent}  {line}\n" for line in value.splitlines())
            case _:
                odd = isinstance(value, str) and not value.isprintable()
                yield f"{indent}{key}: {json.dumps(value, ensure_ascii=odd)}\n"


def _is_block(text: str) -> bool:
    """Tell whether YAML reads a text back from lines of its own, with one indent for all."""
    lines = text.split("\n")
    return lines[0][:1].strip() != "" and lines[-1] != "" and all(line.isprintable() for line in lines)
