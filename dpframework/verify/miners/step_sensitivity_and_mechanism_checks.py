"""Checks of each step of a miner's runs: the sensitivity of its query, and the draws and claims of its mechanism."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from reprlib import repr as short
from typing import Any, final

import attrs

from dpframework.facts.privacy_losses import Relation
from dpframework.mechanisms import Mechanism
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.queries import Query, QueryFacts
from dpframework.verify.mechanisms.loss_claim_check import UNIT, check_losses
from dpframework.verify.mechanisms.loss_report import LossReport
from dpframework.verify.mechanisms.neighbour_answers import invent_answers
from dpframework.verify.mechanisms.probe_query_answers import Probe
from dpframework.verify.mechanisms.sampler_check import SamplerReport, check_sampler
from dpframework.verify.miners.audit_subject import Subject
from dpframework.verify.miners.audit_subject_variants import SubjectVariant, subject_variants
from dpframework.verify.miners.query_trace import (
    QueryCall,
    are_equal,
    call_answers,
    evaluate,
    fit_rows,
    rows_without_texts,
    takes_any_answers,
    trace_queries,
)
from dpframework.verify.miners.schema_and_parameter_variant_replays import files_of_plan, run_problems
from dpframework.verify.miners.stated_error_check import error_problems
from dpframework.verify.miners.value_comparison import same
from dpframework.verify.plugin_code_constants import is_foreign
from dpframework.verify.queries.answers_in_other_process import LocalAnswer, OtherProcess, differences
from dpframework.verify.queries.miner_and_mechanism_parameter_variants import SPENT, related_mechanisms
from dpframework.verify.queries.sensitivity_report import SensitivityReport
from dpframework.verify.queries.sensitivity_search import STILL, search_sensitivity, search_smallest_tables
from dpframework.verify.search_time_limit import Patience

ALIKE = 3  # how many queries of one name, with the same sensitivities, are searched in full
SAMPLED = 2  # of mechanisms that differ only in how much they spend, the draws of this many are tested
DRAWN = 6_000  # about how many outputs the tests draw from a mechanism that takes answers of a type of its own
UNITS = (UNIT, 2 * UNIT + 1)  # numbers of rows in a unit: a claim that holds for few rows may fail for more
#: For plugins also even numbers, since a claim may hold for odd numbers only. The last is more than authors think of.
MORE_UNITS = (UNIT - 1, 20, 1_000)
#: Of mechanisms that differ only in how much they spend, claims are compared for this many queries under each relation.
COMPARED = 2


@final
class StepChecks:
    """Checks of the queries that runs ask, and of the draws and claims of some of their mechanisms.

    Parameters
    ----------
    replays
        The number of replays of an audit. Each query is searched on an eighth of this number of pairs, at least on 60.
    seed
        The seed of the searches.
    left_out
        The list that gets a text for each check that is left out, for lack of time or because a query cannot be sent to
        another process.
    tell
        A function that shows progress. It is called with a text that says what is about to be done.
    foreign
        Whether only plugins' mechanisms are checked. The project's own mechanisms have suites of their own.

    Attributes
    ----------
    steps
        A text for each step and relation, which says how near the searches came to the declared sensitivities and to
        the mechanism's claim.
    sensitivities
        The reports of the searches for the sensitivities of queries.
    runs
        A text for each way in which a run on another schema, or with other parameters, depends on more than releases.
    samplers
        The reports on the draws of mechanisms.
    losses
        The comparisons of mechanisms' claims with their losses, by mechanism, facts of the query, and relation.
    """

    def __init__(
        self,
        replays: int,
        seed: int,
        left_out: list[str],
        tell: Callable[[str], None] = lambda what: None,
        *,
        foreign: bool = False,
    ) -> None:
        self._pairs, self._seed, self._left_out, self._tell = max(replays // 8, 60), seed, left_out, tell
        self._foreign = foreign
        self.steps: dict[str, str] = {}
        self.sensitivities: dict[Any, SensitivityReport] = {}
        self._local_answers: dict[Any, LocalAnswer] = {}
        self._other: OtherProcess | None = None
        self._searched: dict[Any, list[tuple[Query, dict[str, Any]]]] = {}
        self._units: set[Any] = set()
        self._related: dict[Any, list[Query]] = {}
        self._alike: dict[Any, list[tuple[str, SensitivityReport]]] = {}
        self._mechanisms: list[tuple[Mechanism, Any]] = []
        self.runs: list[str] = []
        self.samplers: dict[Any, SamplerReport] = {}
        self.losses: dict[tuple[Any, QueryFacts, Relation], LossReport] = {}

    def check(self, subject: Subject, patience: Patience) -> None:
        """Check the queries and mechanisms of a subject's runs, except those that were checked before.

        A plugin's miner is tried on other schemas and with other parameters too.
        """
        if self._other is None and is_foreign(subject.miner):
            self._other = OtherProcess()  # started now, before the miner's code sees a table
        own: list[QueryCall] = []
        for asked in trace_queries(subject):
            own.append(asked)
            if patience.over:
                self._left_out.append(f"the sensitivity of {asked.query.text}")
            else:
                searched = self._search(subject, asked, patience)
                self._check_mechanism(subject, asked, searched, patience)
                self._search_unit(subject, asked, patience)
                self._search_part(subject, asked, patience)
                self._note(subject, asked, searched)
        if is_foreign(subject.miner):
            wrong = (*files_of_plan(subject), *error_problems(subject, self._seed, patience, self._left_out))
            self.runs += [f"{subject.relation}: {what}" for what in wrong]
            for variant in subject_variants(subject):
                self._check_variant(variant, own, patience)

    def _check_variant(self, variant: SubjectVariant, own: Sequence[QueryCall], patience: Patience) -> None:
        """Search the queries that a plugin's miner makes on another schema or with another parameter, and replay a run.

        Nothing is searched if the miner claims nothing there. If the miner makes an equal query for its example, the
        query depends on neither schema nor parameter, and may be meant for the example's attributes only. So it is not
        searched again, with two exceptions: on a schema that differs only in its bound on the rows, and on one with
        more attributes if the query gets other inputs there. In these cases, what the query declares must hold.
        """
        subject, how, own = variant.subject, variant.how, [] if variant.more_rows else own
        try:
            if subject.delta_needed is None:
                return
            asked = list(trace_queries(subject))
        except Exception:  # the miner does not accept this schema or parameter, and so claims nothing for it
            return
        if not patience.over:
            self.runs += [
                f"{subject.relation}, {how}: {found}" for found in run_problems(subject, self._seed, patience)
            ]
        for one in asked:
            # A query may hold a function, such as a lambda, that is made anew for each schema. Then it is searched.
            if not is_foreign(one.query) or any(one.repeats(call, inputs=variant.more_attributes) for call in own):
                continue
            if patience.over:
                self._left_out.append(f"the sensitivity of {one.query.text} {how}")
                continue
            facts = one.query.facts()
            like = facts.name, facts.sensitivities, subject.relation, how
            known = self._related.setdefault(like, [])
            if any(same(one.query, query) for query in known):
                continue
            self._tell(f"searching the sensitivity of {one.query.text} {how}")
            # If a query with the same claim was searched, the smallest tables are enough.
            found = (
                self._search_smallest(subject, one, patience)
                if known or variant.brief
                else self._search_sensitivity(subject, one, self._pairs // 2, patience)
            )
            # A query about values of the example's schema alone may answer the same on all tables. That is no fault.
            wrong = () if variant.may_fail else (what for what in found.wrong if not what.startswith(STILL))
            found = attrs.evolve(found, wrong=tuple(wrong))
            known.append(one.query)
            self.sensitivities[like, len(known)] = attrs.evolve(found, query=f"{found.query}, {how}")
            if not variant.brief:
                self._search_unit(subject, one, patience, how)
                self._search_part(subject, one, patience, how)

    def evaluate_in_new_process(self) -> None:
        """Evaluate the queries again in one new process, and note those whose answers differ there."""
        if not self._local_answers:
            return
        answered, self._local_answers = self._local_answers, {}
        other, self._other = self._other, None
        for (key, one), problem in zip(answered.items(), differences(list(answered.values()), other), strict=True):
            if problem is not None:
                found = self.sensitivities[key]
                self.sensitivities[key] = attrs.evolve(found, wrong=(*found.wrong, problem))
            if one.pickled is None:
                self._left_out.append(f"asking {one.query.text} in another process, to which it cannot be sent")

    def problems(self) -> list[str]:
        """Return the failed claims, in words."""
        self.evaluate_in_new_process()
        return [
            *(f"{one.relation}: {one}" for one in self.sensitivities.values() if not one.passed),
            *self.runs,
            *(str(one) for one in self.samplers.values() if not one.passed),
            *(str(one) for one in self.losses.values() if not one.passed),
        ]

    def _note(self, subject: Subject, asked: QueryCall, searched: SensitivityReport | None) -> None:
        """Write down how near the searches came to the sensitivities of a step's query and to its mechanism's claim."""
        found = ["an equal query was searched before"]
        if searched is not None:
            found = [
                f"reached {one.ratio:.0%} of the {one.norm} change that its query declares" for one in searched.measured
            ]
        compared = self.losses.get((self._key(asked.mechanism), asked.query.facts(), subject.relation))
        if compared is not None:
            found.append(f"reached {compared.tightness:.0%} of what its mechanism claims")
        self.steps[f"step '{asked.path}', {subject.relation}"] = ", ".join(found)

    def _search(self, subject: Subject, asked: QueryCall, patience: Patience) -> SensitivityReport | None:
        """Search a query's sensitivity, or return the earlier report of an equal query on the same schema.

        None if enough queries with the same name and sensitivities were searched, but all on other schemas.
        """
        facts, schema = asked.query.facts(), subject.schema.fingerprint
        rows = subject.by.rows if asked.query.for_rows(subject.by.rows) else 1
        key = facts, subject.relation, schema
        alike = self._alike.setdefault((facts.name, facts.sensitivities, subject.relation), [])
        if key in self.sensitivities or len(alike) >= ALIKE:
            # A plugin's query may be wrong although one with equal facts is right. So it is searched too, on the
            # smallest tables.
            known = self._searched.setdefault(key, [])
            call = asked.query, dict(asked.inputs)
            if is_foreign(asked.query) and not any(same(call, one) for one in known):
                known.append(call)
                smallest = self._search_smallest(subject, asked, patience)
                if not smallest.passed:
                    given = f", given {short(dict(asked.inputs))}" if asked.inputs else ""
                    self.sensitivities[key, len(known)] = attrs.evolve(
                        smallest, query=f"{smallest.query}, of step '{asked.path}'{given}"
                    )
            return self.sensitivities.get(key) or next((found for at, found in alike if at == schema), None)
        self._tell(f"searching the sensitivity of {asked.query.text}")
        self.sensitivities[key] = self._search_sensitivity(subject, asked, self._pairs, patience, rows)
        self._searched.setdefault(key, []).append((asked.query, dict(asked.inputs)))
        alike.append((schema, self.sensitivities[key]))
        if is_foreign(asked.query):
            some = rows_without_texts(subject)
            self._local_answers[key] = LocalAnswer.of(asked.query, subject.schema, some, asked.derived, asked.inputs)
        return self.sensitivities[key]

    def _search_sensitivity(
        self, subject: Subject, asked: QueryCall, pairs: int, patience: Patience, rows: int = 1
    ) -> SensitivityReport:
        return search_sensitivity(
            asked.query,
            subject.schema,
            subject.relation,
            inputs=asked.inputs,
            derived=asked.derived,
            pairs=pairs,
            seed=self._seed,
            seconds=patience.left / 2,
            rows=rows,
        )

    def _search_smallest(self, subject: Subject, asked: QueryCall, patience: Patience) -> SensitivityReport:
        given = asked.query, subject.schema, subject.relation
        return search_smallest_tables(*given, inputs=asked.inputs, derived=asked.derived, seconds=patience.left / 2)

    def _search_unit(self, subject: Subject, asked: QueryCall, patience: Patience, how: str = "") -> None:
        """Search the sensitivities that a query declares for units of several rows.

        If the subject's unit has several rows, the search of the query itself has tested them. `how` says how schema or
        parameters differ from the example's. If they differ, units of one size are enough.
        """
        facts, bound = asked.query.facts(), subject.schema.row_bound
        for rows in (UNIT,) if how else (*UNITS, *MORE_UNITS) if is_foreign(asked.query) else UNITS:
            declared = asked.query.for_rows(rows)
            like = facts.name, tuple(declared), subject.relation, rows, *((how,) if how else ())
            if subject.by.rows > 1 or not declared or like in self._units or patience.over:
                return
            if bound is not None and bound <= rows:
                return  # beside such a unit there is no room for another row
            self._units.add(like)
            found = self._search_sensitivity(subject, asked, self._pairs // 2, patience, rows)
            where = f", {how}" if how else ""
            self.sensitivities[like] = attrs.evolve(found, query=f"{found.query}, of a unit of {rows} rows{where}")

    def _search_part(self, subject: Subject, asked: QueryCall, patience: Patience, how: str = "") -> None:
        """Search what a plugin's query declares for an added row, if it reads a part under replace-one.

        A replaced row may leave one part and enter another. So noise in parts is scaled by the change for an added or
        removed row, which the search under replace-one does not look at.
        """
        if subject.relation is Relation.ADD_OR_REMOVE_ONE or not asked.in_parts or not is_foreign(asked.query):
            return
        facts = asked.query.facts()
        like = "in parts", facts.name, facts.sensitivities, how
        known = self._related.setdefault(like, [])
        if patience.over or any(same(asked.query, query) for query in known):
            return
        part = attrs.evolve(subject, schema=subject.schema.of_part(), relation=Relation.ADD_OR_REMOVE_ONE)
        found = self._search_sensitivity(part, asked, self._pairs // 2, patience)
        known.append(asked.query)
        where = f", {how}" if how else ""
        self.sensitivities[like, len(known)] = attrs.evolve(found, query=f"{found.query}, in parts{where}")

    def _key(self, mechanism: Mechanism) -> Any:
        """Return the key of a mechanism's reports.

        The key is the mechanism itself. A number is added if an earlier mechanism is equal to it but holds something
        else, such as in a field that the class leaves out of comparisons.
        """
        for known, key in self._mechanisms:
            if same(known, mechanism):
                return key
        equal = sum(are_equal(known, mechanism) for known, _ in self._mechanisms)
        self._mechanisms.append((mechanism, (mechanism, equal) if equal else mechanism))
        return self._mechanisms[-1][1]

    def _check_mechanism(
        self, subject: Subject, asked: QueryCall, searched: SensitivityReport | None, patience: Patience
    ) -> None:
        mechanism, facts = asked.mechanism, asked.query.facts()
        if self._foreign and not is_foreign(mechanism):
            return
        made_up = takes_any_answers(mechanism)
        if patience.over:
            self._left_out.append(f"the draws and claims of {mechanism.name} on {facts.text}")
            return
        if not made_up and not _can_be_drawn(subject, asked, patience):
            self._left_out.append(f"sampling {mechanism.name} on {facts.text}, since one draw takes too long")
            return
        key, like = self._key(mechanism), _without_amounts(mechanism)
        alike = [
            own
            for known, own in self._mechanisms
            if known.name == mechanism.name and same(_without_amounts(known), like)
        ]
        if key not in self.samplers and sum(own in self.samplers for own in alike) < SAMPLED:
            self._tell(f"sampling {mechanism.name}")
            drawn_from, beside = _probes(subject, asked)
            foreign = is_foreign(mechanism)  # the project's own mechanisms are tried in every setting by their suites
            self.samplers[key] = check_sampler(mechanism, given=drawn_from, beside=beside, settings=foreign)
        compared = [known for by, known, at in self.losses if by in alike and at is subject.relation]
        tables = [] if searched is None else [measured.tables for measured in searched.measured]
        if (tables or made_up) and len(compared) < COMPARED and facts.name not in [known.name for known in compared]:
            self._tell(f"comparing the claims of {mechanism.name}")
            given = [call_answers(subject, asked, tables)]
            relations = [subject.relation]
            found = check_losses(mechanism, given=given, relations=relations, seconds=patience.left / 2)
            if found.cut_short:
                self._left_out.append(f"comparing all claims of {mechanism.name} on {facts.text}")
            self.losses[key, facts, subject.relation] = found
            if made_up and is_foreign(mechanism):
                self._check_spending(mechanism, facts, subject.relation, patience)

    def _check_spending(self, mechanism: Mechanism, facts: QueryFacts, relation: Relation, patience: Patience) -> None:
        """Test a plugin's mechanism with less and with more to spend than in its example."""
        for how, other in related_mechanisms(mechanism):
            key = self._key(other)
            if key in self.samplers or patience.over:
                continue
            self._tell(f"sampling {mechanism.name} {how}")
            drawn = check_sampler(other, settings=False)
            given = [invent_answers(facts)]
            lost = check_losses(other, given=given, relations=[relation], seconds=patience.left / 2)
            self.samplers[key] = attrs.evolve(drawn, mechanism=f"{drawn.mechanism}, {how}")
            self.losses[key, facts, relation] = attrs.evolve(lost, mechanism=f"{lost.mechanism}, {how}")


def _without_amounts(mechanism: Mechanism) -> dict[str, Any]:
    """Return the fields of a mechanism that do not say how much it spends.

    Two mechanisms of one name whose other fields differ may draw by different code, so each is tested.
    """
    fields = attrs.fields(type(mechanism)) if attrs.has(type(mechanism)) else ()
    return {field.name: getattr(mechanism, field.name) for field in fields if field.init and field.name not in SPENT}


def _can_be_drawn(subject: Subject, asked: QueryCall, patience: Patience) -> bool:
    """Tell whether there is time for the draws that a mechanism's tests make from an answer of the plan."""
    answer = evaluate(subject, asked, fit_rows(subject, bytes(1)))
    calibration = asked.mechanism.calibrate(asked.query.facts(), subject.relation)
    if calibration is None:
        return True
    randomness = SeededRandomness(0).handed(asked.mechanism.assumptions)
    return patience.allows(DRAWN, lambda: asked.mechanism.release(answer, calibration, randomness))


def _probes(subject: Subject, asked: QueryCall) -> tuple[Sequence[Probe] | None, Sequence[Probe]]:
    """Return the probes that replace the kit's probes (None: keep the kit's), and the probes that are added to them.

    A probe is an answer from which a mechanism draws. A mechanism that takes only answers of a type of its own draws
    from the plan's answer alone. Any other mechanism of a plugin draws from the kit's probes and from the plan's
    answer.
    """
    made_up = takes_any_answers(asked.mechanism)
    if made_up and not is_foreign(asked.mechanism):
        return None, ()
    rows = fit_rows(subject, bytes(k * k % subject.universe.kinds for k in range(30)))
    answer = evaluate(subject, asked, rows)
    own = Probe(asked.query.facts(), lambda scale: answer)
    return (None, [attrs.evolve(own, relation=subject.relation, by=subject.by)]) if made_up else ([own], ())
