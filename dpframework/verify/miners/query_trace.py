"""The queries that runs of a miner ask, with their inputs and their answers on neighbouring tables.

The facts of a query are what it declares, such as its sensitivities.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

import attrs
import numpy as np

from dpframework.facts.attributes import Attribute
from dpframework.facts.logical_descriptions_of_rows import Cases
from dpframework.facts.privacy_losses import Relation
from dpframework.mechanisms import Calibration, Mechanism
from dpframework.queries import Query
from dpframework.queries.exact_answers_hiding_undeclared_columns import answer_of
from dpframework.verify.mechanisms.neighbour_answers import Answers, invent_answers
from dpframework.verify.mechanisms.probe_query_answers import probes, probes_of_one
from dpframework.verify.mechanisms.sampler_check import serves
from dpframework.verify.miners.audit_subject import SCOPE, Subject
from dpframework.verify.miners.runs_steered_to_rare_code import steer
from dpframework.verify.miners.transcript import (
    DerivationEvent,
    PartitionEvent,
    ReleaseEvent,
    SampleEvent,
    Transcript,
    record,
)
from dpframework.verify.miners.value_comparison import same
from dpframework.verify.plugin_code_constants import is_foreign
from dpframework.verify.queries.telling_row_search import answer_among, climb_rows
from dpframework.verify.tables.neighbours import Rows, Universe
from dpframework.verify.tables.small_table_engine import RowsHandle

MOST_ALIKE = 24  # the most queries of a plugin with equal facts that are yielded
MOST_INPUTS = 4  # with how many inputs one query of a plugin is yielded
MOST_CLIMBED = 4  # for this many queries of a miner, a search looks for the rows that change the answer most


@final
@attrs.frozen(eq=False)
class QueryCall:
    """A query in a run, with its mechanism, its inputs, the attributes derived before it, and the path of its step.

    `in_parts` tells whether the query reads a part of the table.
    """

    query: Query
    mechanism: Mechanism
    inputs: Mapping[str, Any]
    derived: tuple[tuple[Attribute, Cases], ...]
    path: str = ""
    in_parts: bool = False

    def repeats(self, other: QueryCall, *, inputs: bool) -> bool:
        """Tell whether two calls have equal queries and, if `inputs` is true, equal inputs.

        Queries are equal if both their own comparison and a comparison of their contents say so.
        """
        equal = are_equal(self.query, other.query) and same(self.query, other.query)
        return equal and (not inputs or same(self.inputs, other.inputs))


def trace_queries(subject: Subject) -> Iterator[QueryCall]:
    """Yield the queries that some runs ask.

    Of queries with equal facts and a mechanism of the same name, only the first is yielded. For a plugin's queries, up
    to `MOST_ALIKE` are yielded if their contents differ. Contents are compared without the query's own `__eq__`, which
    may leave out something on which the answer depends. A plugin's query that gets inputs is yielded with up to
    `MOST_INPUTS` different inputs: the first inputs, and the last inputs of some runs.

    The runs may miss a rare branch. So if steps of a plugin's miner were never released, their queries are yielded at
    the end.
    """
    seen: dict[Any, list[QueryCall]] = {}
    asked = set[int]()
    for seed, size in enumerate((0, 3, 12, 60, 60, 60)):
        rows = bytes(k % subject.universe.kinds for k in range(size))
        yield from _new_calls(subject, record(subject, fit_rows(subject, rows), seed, flattening=3), seen, asked)
    if not is_foreign(subject.miner):
        return
    needs_inputs = False
    for step in subject.plan.steps():
        if id(step) in asked or not (is_foreign(step.query) or is_foreign(step.mechanism)):
            continue
        call = QueryCall(step.query, step.mechanism, {}, (), step.name, subject.plan.in_parts(step))
        try:
            evaluate(subject, call, fit_rows(subject, bytes(3)))
        except Exception:  # the query needs inputs or derived attributes, which steered runs may give it
            needs_inputs = True
        else:
            yield call
    if needs_inputs:
        tables = [fit_rows(subject, bytes(k % subject.universe.kinds for k in range(size))) for size in (12, 60)]
        for _, transcript in steer(subject, tables, subject.patience, 0):
            yield from _new_calls(subject, transcript, seen, asked)


def _new_calls(
    subject: Subject, transcript: Transcript, seen: dict[Any, list[QueryCall]], asked: set[int]
) -> Iterator[QueryCall]:
    """Yield the queries of a run that are unlike those of earlier runs (see `trace_queries`)."""
    derived: dict[int, tuple[tuple[Attribute, Cases], ...]] = {0: ()}
    others = dict[int, QueryCall]()  # the last call of each known query with inputs that it did not have before
    for event in transcript.events:
        before = derived[event.rows]
        match event:
            case PartitionEvent():
                derived.update(dict.fromkeys(event.parts, before))
            case SampleEvent():
                derived[event.result] = before
            case DerivationEvent():
                derived[event.result] = (*before, (event.attribute, event.cases))
            case ReleaseEvent(charge=charge):
                asked.add(id(charge.planned))
                path, in_parts = charge.path.removeprefix(SCOPE + "/"), subject.plan.in_parts(charge.planned)
                call = QueryCall(charge.step.query, charge.step.mechanism, event.inputs, before, path, in_parts)
                alike = seen.setdefault((call.query.facts(), call.mechanism.name), [])
                foreign = is_foreign(call.query)
                equal = [one for one in alike if foreign and same(call.query, one.query)]
                if not alike or (foreign and not equal and len(alike) < MOST_ALIKE):
                    alike.append(call)
                    yield call
                elif equal and len(equal) < MOST_INPUTS and not any(same(call.inputs, one.inputs) for one in equal):
                    others[id(equal[0])] = call
    for call in others.values():
        seen[call.query.facts(), call.mechanism.name].append(call)
        yield call


def are_equal(one: Any, other: Any) -> bool:
    """Tell whether two values are equal by their own comparison. Values that cannot be compared are not equal."""
    try:
        return one is other or bool(one == other)
    except Exception:
        return False


def fit_rows(subject: Subject, rows: Rows) -> Rows:
    """Return as many rows as the schema allows: some are cut off, or rows of the first kind are added."""
    least, most = subject.schema.rows or 0, subject.schema.row_bound
    return (rows + bytes(max(least - len(rows), 0)))[:most]


def rows_without_texts(subject: Subject) -> Rows:
    """Return a table of about 30 rows, with the kinds of a `Universe` that is made from the schema without texts."""
    kinds = Universe(subject.schema).kinds if subject.universe.texts else subject.universe.kinds
    return fit_rows(subject, bytes(k * k % kinds for k in range(30)))


def takes_any_answers(mechanism: Mechanism) -> bool:
    """Tell whether a mechanism accepts numbers or scores, and not only answers of a type of its own."""
    return any(serves(mechanism, probe) for probe in (*probes(), *probes_of_one()))


def call_answers(subject: Subject, asked: QueryCall, tables: Sequence[tuple[Rows, Rows]]) -> Answers:
    """Return a query's facts with pairs of answers, on which its mechanism's claims can be compared with losses.

    The answers are made up if the mechanism accepts numbers or scores. Otherwise they are answers on the given tables.
    """
    facts = asked.query.facts()
    if takes_any_answers(asked.mechanism):
        return invent_answers(facts)

    def evaluate_each(mechanism: Mechanism, calibration: Calibration, relation: Relation) -> Iterator[tuple[Any, Any]]:
        for pair in dict.fromkeys(tables):
            one, other = (evaluate(subject, asked, rows) for rows in pair)
            yield one, other

    return Answers(facts, evaluate_each)


def evaluate(subject: Subject, asked: QueryCall, rows: Rows) -> Any:
    """Return the answer to a query on a table of the subject's kinds of rows."""
    return answer_of(asked.query, subject.engine, RowsHandle(rows, asked.derived, 0), asked.inputs)


def with_climbed_rows(subject: Subject) -> Subject:
    """Return the subject with further kinds of rows: those that change the answers of a plugin's queries most.

    If the schema allows more kinds of rows than are tried, the worst kinds may be missing. The subject is returned as
    it is if all kinds are tried, if its plan samples, or if its miner is the project's own.
    """
    universe = subject.universe
    if not universe.sampled or universe.places is None or subject.plan.index.samples or not is_foreign(subject.miner):
        return subject
    found, least = [], max((subject.schema.rows or 0) - 1, 0)
    for asked in itertools.islice(trace_queries(subject), MOST_CLIMBED):
        climbed = climb_rows(universe, functools.partial(answer_among, asked.query, asked.derived, asked.inputs), least)
        found += [] if climbed is None else [climbed]
    places = np.concatenate([*found, universe.places], axis=1)
    kept = np.sort(np.unique(places, axis=1, return_index=True)[1])  # so that the climbed rows come first
    return attrs.evolve(subject, given_universe=universe.among(places[:, kept]))
