"""The questions of a dossier, and how a plan, its verification, a ledger and the owner's statements answer them."""

from __future__ import annotations

from collections.abc import Iterator

from dpframework.checks import ASSUMPTIONS
from dpframework.facts.privacy_losses import Relation, readable
from dpframework.facts.privacy_unit import ROWS_ASSERTED
from dpframework.plan.node_kind_table import KINDS
from dpframework.plan.verification_records_file import code_verdicts
from dpframework.reports.dossier.dossier_content import Answer, Answers, Basis, DossierSubject, Item
from dpframework.reports.dossier.owner_statements import TOPICS
from dpframework.reports.epsilon_as_odds import certainty_gains, certainty_sentence
from dpframework.reports.plan_and_node_losses import loss_text, whole_rho
from dpframework.reports.planned_result_rows import bias_rows, bound_line, result_rows, size_sentence
from dpframework.reports.report_headlines import stated_row_number
from dpframework.study.study_plan_totals_and_findings import StudyPlan
from dpframework.version import __version__

#: The layers of the pyramid (see `dossier_content`), from the top.
TOP, MIDDLE, DEPLOYMENT, BASE = (
    "the guarantee",
    "the algorithms",
    "the deployment",
    "the data",
)


def _of_plan(text: str) -> Answer:
    return Answer(Basis.PLAN, text)


def _findings(plan: StudyPlan, code: str) -> Iterator[Answer]:
    """Yield one answer for each finding that the check with this code has about a plan."""
    yield from (_of_plan(f"{finding}.") for finding in plan.check() if finding.code == code)


def _state(subject: DossierSubject, *names: str) -> Iterator[Answer]:
    """Yield the owner's statements with these names, such as "trust.actors".

    If a statement is missing, yield an open answer with the owner's question instead.
    """
    for name in names:
        topic, key = name.split(".")
        question = TOPICS[topic][key]
        text = subject.statements[name]
        if text:
            yield Answer(Basis.STATED, text)
        else:
            yield Answer(Basis.OPEN, f"{question} Not stated yet: [{topic}] {key}.")


def _epsilon(subject: DossierSubject) -> Iterator[Answer]:
    plan = subject.plan
    total = plan.smallest_total()
    if total is None:
        yield Answer(Basis.OPEN, "No total is valid, so nothing bounds what somebody can learn.")
        return
    meaning = certainty_sentence(certainty_gains(total, plan.relation, plan.unit))
    yield _of_plan(f"At most {loss_text(total)}, for {plan.unit} under {plan.relation}: {meaning}.")
    yield _of_plan("What holds for people in general can be learned whether or not somebody's rows are in the table.")
    yield from _findings(plan, "DP026")


def _delta(subject: DossierSubject) -> Iterator[Answer]:
    plan = subject.plan
    total = plan.smallest_total()
    if total is None or not total.delta:
        yield _of_plan("Pure differential privacy: the guarantee has no delta.")
    else:
        losses = ", ".join(f"{name} accounting: {loss_text(loss)}" for name, loss in plan.totals().items())
        rho = whole_rho(plan)
        before = (
            ""
            if rho is None
            else f" The zcdp total is converted from rho {readable(rho)}. From this rho, anybody can compute the "
            "epsilon at another delta."
        )
        yield _of_plan(f"Approximate differential privacy at delta {float(total.delta):g}: {losses}.{before}")
        own = plan.exact_delta(plan.root)
        yield _of_plan(
            f"Releases have a delta of {float(own):g} of their own: with that probability they may reveal everything "
            "about somebody."
            if own
            else "No release has a delta of its own. The delta comes from the accounting: no event reveals everything "
            "about somebody."
        )
        yield _of_plan("Compare this epsilon only with one at the same delta and for the same unit.")
    yield from _findings(plan, "DP011")


def _unit(subject: DossierSubject) -> Iterator[Answer]:
    plan = subject.plan
    yield _of_plan(f"The plan protects {plan.unit}. Guarantees for other units cannot be compared with it.")
    if plan.unit.gap:
        yield _of_plan(f"A unit of one period: {plan.unit.gap}.")
    if plan.unit.is_row:
        if "one-row-per-person" in plan.budget.allow:
            yield Answer(Basis.STATED, "Nobody has a second row ('one-row-per-person').")
        else:
            yield Answer(Basis.OPEN, "May a person have several rows? The study does not say so, and it names no unit.")


def _contributions(subject: DossierSubject) -> Iterator[Answer]:
    unit = subject.plan.unit
    if unit.groups_rows:
        yield _of_plan(
            f"At most {unit.rows} rows of each {unit.id} are kept. They are chosen while reading, by a private random "
            "key. The noise is calibrated for all of them."
        )
    elif subject.plan.facts.per_unit:
        yield _of_plan(
            f"All rows of each {unit.id} are combined into one row, which is computed from these rows alone."
        )
    elif unit.id is not None:
        yield _of_plan(f"One row of each {unit.id} is kept. It is chosen while reading, by a private random key.")
    elif ROWS_ASSERTED in subject.plan.assumptions:
        yield Answer(Basis.STATED, f"Nobody has more than {unit.rows} rows. No column of ids enforces this.")
    else:
        yield _of_plan("Each row counts alone. Nothing bounds how many rows a person has.")


def _neighbours(subject: DossierSubject) -> Iterator[Answer]:
    plan = subject.plan
    if plan.relation is Relation.ADD_OR_REMOVE_ONE:
        yield _of_plan("Whether somebody is in the table is protected, and so is the number of rows.")
    else:
        yield _of_plan(
            "The values of somebody's rows are protected. Whether somebody is in the table is not protected, nor is "
            "the number of people."
        )
    facts = plan.facts
    if facts.rows is not None:
        yield _of_plan(f"Unprotected: the number of rows, {facts.rows}, is public.")
    elif facts.row_bound is not None:
        yield _of_plan(f"Unprotected: that there are at most {facts.row_bound} rows; a run ends if there are more.")
    else:
        yield _of_plan("This plan publishes nothing about the rows without noise.")


def _others(subject: DossierSubject) -> Iterator[Answer]:
    if subject.ledger is None:
        yield Answer(Basis.OPEN, "What else was released about the same people? No ledger was named (--ledger).")
        return
    for text in subject.ledger.outside:
        yield Answer(Basis.STATED, text)
    if not subject.ledger.outside:
        yield Answer(Basis.LEDGER, "The ledger holds no release outside its own runs.")


def _composition(subject: DossierSubject) -> Iterator[Answer]:
    plan = subject.plan
    found = {placed.kind.name for placed in plan.index.nodes}
    rules = [f"{kind.name}: {kind.rule[plan.relation]}" for kind in KINDS.values() if kind.name in found]
    yield _of_plan(
        f"Losses of the {len(plan.index.steps)} planned releases are composed by these rules ({'; '.join(rules)})."
    )
    for text in subject.ledger.sentences if subject.ledger is not None else ():
        yield Answer(Basis.LEDGER, text)


def _correctness(subject: DossierSubject) -> Iterator[Answer]:
    plan = subject.plan
    sources = list(dict.fromkeys(one.source for step in plan.steps() for one in step.facts.sensitivities if one.source))
    more = f", and {len(sources) - 3} more" if len(sources) > 3 else ""
    yield _of_plan(f"Each sensitivity names its source: {'; '.join(sources[:3])}{more}.")
    others = dict.fromkeys(
        one["name"] for one in plan.code["components"] if one["class"].partition(".")[0] not in _OURS
    )
    if others:
        names = ", ".join(others)
        yield _of_plan(f"The code of {names} is not dpframework's own, so only a verification vouches for it.")
    else:
        yield _of_plan(
            f"All miners, queries and mechanisms are dpframework {__version__}'s own, which its tests cover."
        )
    if plan.verified is None:
        yield Answer(
            Basis.OPEN, "Was the code tested? No record of 'dpframework verify --record' was named (--verified)."
        )
        return
    for one in code_verdicts(plan, plan.verified):
        yield Answer(Basis.TESTED if one.passed else Basis.OPEN, f"{one}.")


#: The packages whose code counts as dpframework's own.
_OURS = ("dpframework", "dpframework_trees", "dpframework_greedy", "dpframework_distance", "dpframework_tables")


def _assumptions(subject: DossierSubject) -> Iterator[Answer]:
    plan = subject.plan
    stated = stated_row_number(plan.facts)
    if stated:
        yield _of_plan(f"The claim assumes that {stated}.")
    elif not plan.assumptions:
        yield _of_plan("The claim assumes nothing beyond its theorems and the code.")
    for name in plan.assumptions:
        what = ASSUMPTIONS.get(name, ("A plugin's assumption.", ""))[0]
        allowed = "accepted by name" if name in plan.budget.allow else "not accepted by name"
        yield _of_plan(f"'{name}', {allowed}: {what}")


def _utility(subject: DossierSubject) -> Iterator[Answer]:
    yield _of_plan(f"In 95 % of releases, the error stays below the bound given here. {size_sentence(subject.plan)}")
    for row in result_rows(subject.plan):
        yield _of_plan(f"'{row.name}': {'; '.join(map(bound_line, row.published)) or 'no error bound is known'}.")


def _bias(subject: DossierSubject) -> Iterator[Answer]:
    rows = result_rows(subject.plan)
    for row in rows:
        for bound in row.published:
            if bound.group_text:
                yield _of_plan(f"'{row.name}', {bound.what}: {bound.group_text}.")
    for names, bias in bias_rows(rows):
        yield _of_plan(f"{names}: {bias}.")
    yield _of_plan("Noise itself is not biased. It hides small groups more than large ones.")
    yield from _state(subject, "justification.harm")


def _bounds(subject: DossierSubject) -> Iterator[Answer]:
    plan = subject.plan
    if plan.facts.inferred:
        yield _of_plan(
            f"The schema was inferred from the rows, which no epsilon covers: {'; '.join(plan.facts.inferred)}."
        )
    else:
        yield _of_plan(f"The schema is not marked as inferred. {_OUTSIDE[plan.out_of_domain]}")
    if plan.facts.derive:
        made = "; ".join(plan.facts.derive)
        yield _of_plan(f"Some columns are made of others, by public expressions: {made}.")
    unlisted = [f"'{path}'" for path, step in plan.placed_steps() if step.facts.unlisted]
    if unlisted:
        yield _of_plan(
            f"No list names the keys that {', '.join(unlisted)} may release. A key is shown only if its noisy count "
            "exceeds a threshold, which the loss of the release covers."
        )
    others = "All other groups" if unlisted else "All groups"
    yield _of_plan(f"{others} and candidates are listed before the rows are read, so no row can add one.")
    yield from _state(subject, "choices.bounds")


#: What happens to values outside of the schema's bounds, for each way to read them.
_OUTSIDE = {
    "clamp": "Values outside its bounds are clamped, or made missing.",
    "missing": "Values outside its bounds are made missing.",
    "error": "A value outside its bounds ends the run.",
}


def _postprocessing(subject: DossierSubject) -> Iterator[Answer]:
    plan = subject.plan
    names = dict.fromkeys(written.get("miner", "") for written in plan.miners.values() if written.get("miner"))
    who = f"the miners {', '.join(names)}" if names else "no miner"
    yield _of_plan(
        f"Results are computed by {who} from releases and public facts only. A run refuses any other look at the "
        "rows, so computing the results costs nothing more."
    )


def _choices(subject: DossierSubject) -> Iterator[Answer]:
    if subject.ledger is not None:
        for text in subject.ledger.looks:
            yield Answer(Basis.STATED, text)
    yield from _state(subject, "choices.looks")


def _randomness(subject: DossierSubject) -> Iterator[Answer]:
    plan = subject.plan
    exact = "real-arithmetic" not in plan.assumptions
    yield _of_plan(
        "Noise is drawn from the operating system's cryptographic generator. "
        + (
            "Numbers and selections are drawn exactly, over integers, so that rounding leaks nothing."
            if exact
            else "Some of it is drawn in floating point, which the study assumes to be as good as exact."
        )
    )
    if subject.results is not None and not subject.results.private:
        yield Answer(Basis.OPEN, "The run was seeded or its schema inferred: it is NOT private.")


def _side_channels(subject: DossierSubject) -> Iterator[Answer]:
    yield _of_plan(
        "Errors, warnings and logs of a run hold no cell and no count. Two things are not hidden: how long a run "
        "takes, and whether an assertion about the rows stopped it."
    )
    yield from _state(subject, "security.timing")


def _trust(subject: DossierSubject) -> Iterator[Answer]:
    places = ", ".join(subject.plan.data) or "not named in the plan"
    engine = "" if subject.plan.engine is None else f" Counts are evaluated at {subject.plan.engine}."
    yield _of_plan(
        f"The central model: whoever runs the study reads the rows, and only releases leave. Data: {places}.{engine}"
    )
    yield from _state(subject, "trust.actors")


def _only(*names: str) -> Answers:
    return lambda subject: _state(subject, *names)


def _justification(subject: DossierSubject) -> Iterator[Answer]:
    total = subject.plan.smallest_total()
    if total is not None and total.epsilon is not None:
        left = subject.plan.budget.epsilon - total.epsilon
        yield _of_plan(
            f"The planned epsilon is {readable(total.epsilon)}, and {readable(max(left, left * 0))} stays unused."
        )
    yield from _state(subject, "justification.epsilon", "justification.process")


#: The questions of a dossier, from the top of the pyramid.
ITEMS: tuple[Item, ...] = (
    Item(TOP, "epsilon", "How much can anybody learn about one person?", _epsilon),
    Item(TOP, "variant and delta", "Which notion of privacy holds, and can it fail?", _delta),
    Item(TOP, "unit of privacy", "Who or what is protected?", _unit),
    Item(TOP, "contributions", "How much can one person contribute?", _contributions),
    Item(TOP, "what is not protected", "Which tables are neighbours, and what stays in the clear?", _neighbours),
    Item(TOP, "other releases", "What else was released from these data, with noise or without?", _others),
    Item(TOP, "composition", "How do the losses of several releases add up, and who keeps count?", _composition),
    Item(MIDDLE, "correctness", "Are mechanisms and sensitivities right, and was the code tested?", _correctness),
    Item(MIDDLE, "assumptions", "What else must hold for the guarantee?", _assumptions),
    Item(MIDDLE, "utility", "How accurate are the results?", _utility),
    Item(MIDDLE, "bias and small groups",
         "For whom does noise distort results most, and what else shifts them?", _bias),
    Item(MIDDLE, "bounds and domains", "Where do bounds, cuts and values come from?", _bounds),
    Item(MIDDLE, "post-processing", "What happens to releases afterwards?", _postprocessing),
    Item(MIDDLE, "choices made by looking", "Was anything tuned or explored on the rows?", _choices),
    Item(DEPLOYMENT, "randomness and rounding", "Where does the noise come from, and can rounding leak?", _randomness),
    Item(DEPLOYMENT, "side channels", "What else can be seen of a run?", _side_channels),
    Item(DEPLOYMENT, "trust and actors", "Who must be trusted, and with what?", _trust),
    Item(DEPLOYMENT, "security and access", "Who can reach the rows?",
         _only("security.access", "security.measures")),
    Item(BASE, "data collection", "How were the rows collected, and how long are they kept?",
         _only("collection.how", "collection.retention")),
    Item(BASE, "justification", "Why these choices, and who decided?", _justification),
)  # fmt: skip

#: Topics of the documents named in `dossier_content` that no study of this framework touches, each with the reason.
OUT_OF_SCOPE: tuple[tuple[str, str], ...] = (
    ("local and shuffle models", "all rows are in one place, and noise is added there"),
    ("computing on encrypted or distributed rows", "counts are evaluated where the rows lie, in the clear"),
    ("unstructured data", "a table has attributes with public domains; texts and images are not such attributes"),
    ("queries by strangers at any time", "all releases stand in a plan, which is approved before the rows are read"),
    ("synthetic data without privacy", "all that leaves is computed from the releases of a plan"),
    ("neural networks", "no miner trains one"),
)
