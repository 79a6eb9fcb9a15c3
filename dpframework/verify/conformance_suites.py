"""Conformance suites. Subclass one in a test module, name your component, and inherit the checks.

    class TestNoisyMode(MinerConformance):
        miner = NoisyMode

pytest collects the inherited tests. For a miner, it runs most tests once for each example and each relation under which
the example claims something.
"""

from __future__ import annotations

import copy
import functools
import json
import math
import pickle
from collections.abc import Mapping, Sequence
from fractions import Fraction
from reprlib import repr as short
from types import MappingProxyType
from typing import Any, ClassVar

import attrs
import numpy as np

from dpframework.facts.errors import DPFrameworkError, RunStopped
from dpframework.facts.json_reader_and_schema_check import parsed_json
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.schema import Schema
from dpframework.mechanisms import Mechanism
from dpframework.plan.nodes import step
from dpframework.plan.step_block_and_cut_json import read_step, write_step
from dpframework.queries import Count, Query
from dpframework.queries.exact_answers_hiding_undeclared_columns import answer_of, answers_of
from dpframework.results.json_safe import to_json_safe
from dpframework.run.miner_base_and_examples import Example, Miner
from dpframework.run.miner_chain import shown_miner
from dpframework.study.study import Study
from dpframework.study.study_plan_totals_and_findings import StudyPlan
from dpframework.tables.coded_table import Table
from dpframework.tables.in_process_engines import InMemory
from dpframework.verify.assertions import (
    assert_loses_as_claimed,
    assert_private,
    assert_samples_as_stated,
    assert_sensitivity_holds,
)
from dpframework.verify.mechanisms.neighbour_answers import Answers
from dpframework.verify.mechanisms.probe_query_answers import Probe
from dpframework.verify.miners.audit_report import MIN_TIGHTNESS
from dpframework.verify.miners.audit_subject import AMOUNTS, Subject
from dpframework.verify.miners.behaviour_from_releases_check import ADVICE
from dpframework.verify.miners.query_trace import takes_any_answers
from dpframework.verify.miners.step_sensitivity_and_mechanism_checks import StepChecks
from dpframework.verify.miners.value_comparison import same
from dpframework.verify.plugin_code_constants import is_foreign
from dpframework.verify.queries.answer_changes import coordinates_of, measure
from dpframework.verify.queries.answers_in_other_process import LocalAnswer, differences
from dpframework.verify.queries.miner_and_mechanism_parameter_variants import with_other_costs
from dpframework.verify.search_time_limit import Patience
from dpframework.verify.tables.block_tile_and_crosstab_engines import ByTables, Together
from dpframework.verify.tables.neighbours import Sizes, Universe
from dpframework.verify.tables.small_table_engine import SmallTables

# Values of epsilon or rho. With the first, outputs are almost pure noise. With the second, they have almost no noise.
EXTREMES = (Fraction(1, 10**6), Fraction(10**6))


def _study(example: Example, relation: Relation, *, delta: Fraction | None = None) -> Study:
    """Return a study of one example that allows its assumptions. `delta` defaults to what the example's plan needs."""
    subject = _subject(example, relation)
    allow, unit = list(subject.plan.assumptions), example.unit
    least = subject.delta_needed or 0 if delta is None else delta
    of: dict[str, Any] = {"unit": unit.id, "rows_per_unit": unit.rows}
    study = Study(example.schema, epsilon=10**30, delta=least, relation=relation, allow=allow, **of)
    study.add("example", example.miner)
    return study


def _subject(example: Example, relation: Relation) -> Subject:
    return Subject(example.miner, example.schema, relation, delta=example.delta, unit=example.unit)


def _table(example: Example, relation: Relation) -> Table:
    """Return a table of about 30 rows of an example's schema. All units but the first have as many rows as they may."""
    universe, most = Universe(example.schema), example.unit.rows
    sizes = Sizes.of(example.schema, relation, 30)
    rows = sizes.most + (relation is Relation.REPLACE_ONE)
    table = universe.table(bytes(k % universe.kinds for k in range(rows)))
    return attrs.evolve(table, unit=example.unit).with_units((np.arange(rows) + most - rows % most) // most)


class MinerConformance:
    """The tests that every miner must pass.

    Attributes
    ----------
    miner
        The miner's class. The tests run on its `examples`.
    replays
        About how many replays each audit makes.
    more_replays
        The number of replays for examples whose audits need more than `replays`, by the example's name.
    min_tightness
        The share of each example's pure claim that the search must reach, for all examples or by an example's name. A
        number below the default needs a reason in a comment, since the audit may then miss a mistake that multiplies
        the loss by less than 1 / `min_tightness`.
    """

    miner: ClassVar[type[Miner]]
    replays: ClassVar[int] = 4_000
    more_replays: ClassVar[Mapping[str, int]] = MappingProxyType({})
    min_tightness: ClassVar[float | Mapping[str, float]] = MIN_TIGHTNESS

    @classmethod
    def pytest_generate_tests(cls, metafunc: Any) -> None:
        """Make one test for each example, or for each example and relation under which it claims something."""
        examples = cls.miner.examples()
        if "relation" in metafunc.fixturenames:
            claimed = _find_claims(cls.miner)
            given = [(examples[name], relation) for name, relation in claimed]
            metafunc.parametrize(("example", "relation"), given, ids=[f"{name}-{rel}" for name, rel in claimed])
        elif "example" in metafunc.fixturenames:
            metafunc.parametrize("example", list(examples.values()), ids=list(examples))

    def test_it_names_and_documents_itself(self) -> None:
        """Study files need the name, and lists show the docstring's first line."""
        whose = self.miner.__name__
        assert isinstance(getattr(self.miner, "name", None), str), f"{whose} has no name; set `name`, for study files"
        assert self.miner.name, f"the name of {whose} is empty"
        assert (self.miner.__doc__ or "").strip(), f"{whose} has no docstring; its first line is shown in lists"
        assert attrs.has(self.miner), f"{whose} is no attrs class; decorate it with @attrs.frozen"

    def test_it_has_examples_with_a_claim(self) -> None:
        """Without examples nothing of the miner's privacy is tested."""
        examples = self.miner.examples()
        assert examples, f"define {self.miner.__name__}.examples()"
        for name, example in examples.items():
            kind = type(shown_miner(example.miner))
            assert kind is self.miner, f"example '{name}' is of {kind.__name__}"
            needed = [_subject(example, relation).delta_needed for relation in Relation]
            assert any(delta is not None for delta in needed), f"example '{name}' claims no finite epsilon"

    def test_its_plan_follows_from_schema_and_parameters(self, example: Example, relation: Relation) -> None:
        """A copy of the miner has the same plan, and the plan is the same after it was written to a file and read."""
        plan = _study(example, relation).plan()
        copied = attrs.evolve(example, miner=pickle.loads(pickle.dumps(copy.deepcopy(example.miner))))
        assert _study(copied, relation).plan() == plan, (
            "a copy of the miner has another plan: the plan must follow from schema and parameters alone"
        )
        mechanisms = {type(step.mechanism) for step in plan.steps()}  # a miner's own mechanisms need not be registered
        again = StudyPlan.from_json(plan.to_json(), mechanisms=mechanisms)
        assert again == plan, "the plan differs after it was written to a plan file and read back"
        assert again.total() == plan.total(), (
            "the plan's total differs after the plan was written to a plan file and read back"
        )

    def test_its_plan_passes_the_checks(self, example: Example, relation: Relation) -> None:
        """No check refuses the plan if its assumptions are allowed."""
        refusals = [str(finding) for finding in _study(example, relation).plan().refusals()]
        assert refusals == [], "\n".join(refusals)

    def test_its_result_can_be_printed_and_written(self, example: Example, relation: Relation) -> None:
        """The result has a text and a JSON form, and the run spends no more than the plan."""
        results = _study(example, relation).run(_table(example, relation), seed=0)
        assert str(results["example"]), "the result prints as an empty text; define its __str__"
        json.dumps(to_json_safe(results["example"]), allow_nan=False)
        spent, planned = results.spent, results.plan.total().epsilon or math.inf
        assert spent is not None and spent.epsilon is not None, "the run spent no finite epsilon"  # noqa: PT018
        assert spent.epsilon <= planned, f"the run spent {float(spent.epsilon):g}; its plan allows {float(planned):g}"

    def test_it_runs_with_hardly_any_noise_and_with_hardly_anything_else(
        self, example: Example, relation: Relation
    ) -> None:
        """The miner runs if `epsilon` or `rho` is a millionth or a million, or refuses such a value before it runs."""
        for amount in EXTREMES:
            given = {
                name: amount for name in ("epsilon", "rho") if isinstance(getattr(example.miner, name, None), AMOUNTS)
            }
            try:
                changed = attrs.evolve(example, miner=attrs.evolve(example.miner, **given))
                results = _study(changed, relation, delta=example.delta).run(_table(example, relation), seed=0)
            except RunStopped as stopped:
                raise AssertionError(f"with {given} it fails: {stopped.__cause__!r}") from stopped
            except DPFrameworkError:
                continue
            assert str(results["example"])

    def test_blocks_of_rows_make_no_difference(self, example: Example, relation: Relation) -> None:
        """With the same seed, the result is the same whether the rows are counted in one block or in three."""
        table = _table(example, relation)
        one, again, three = (
            to_json_safe(_study(example, relation).run(table, seed=3, engine=engine)["example"])
            for engine in (InMemory(), InMemory(), Together())
        )
        assert same(one, again), f"two runs with the same seed differ: {ADVICE}"
        assert same(one, three), (
            "the result from three blocks differs from that of all rows: some query's counts do not add up over "
            f"blocks, or depend on their order. From one block: {short(one)}; from three: {short(three)}"
        )

    def test_it_spends_no_more_than_its_parameter_says(self, example: Example, relation: Relation) -> None:
        """The plan's total is at most `epsilon` or `rho`, also if a plugin's integers or budget change."""
        overspent = _subject(example, relation).overspent
        assert overspent is None, overspent
        for how, miner in with_other_costs(example.miner, example.schema) if is_foreign(example.miner) else ():
            try:
                overspent = _subject(attrs.evolve(example, miner=miner), relation).overspent
            except Exception:  # the miner does not accept this parameter, and so claims nothing for it
                continue
            assert overspent is None, f"{how}, {overspent}"

    def test_each_step_holds_what_it_declares(self, example: Example, relation: Relation) -> None:
        """No answer changes by more than its query declares, and the plugin's mechanisms draw and lose as they claim.

        pytest's report with -rP says which share of each claim the searches reached.
        """
        checks = _steps_of(self.miner, self.replays // 4)
        checks.steps.clear()
        checks.check(_subject(example, relation), Patience())
        assert checks.problems() == [], "\n".join(checks.problems())
        print("\n".join(f"{step}: {reached}" for step, reached in checks.steps.items()))

    def test_no_transcript_loses_more_than_the_plan_claims(self, example: Example, relation: Relation) -> None:
        """The audit finds no larger loss than claimed, and reaches the share `min_tightness` of a pure claim."""
        names = [name for name, known in self.miner.examples().items() if known.miner == example.miner]
        least = self.min_tightness
        if isinstance(least, Mapping):
            least = min(least.get(name, MIN_TIGHTNESS) for name in names)
        report = assert_private(
            example.miner,
            example.schema,
            relation,
            delta=example.delta,
            replays=max((self.more_replays.get(name, self.replays) for name in names), default=self.replays),
            min_tightness=least,
            witnesses=example.witnesses,
            unit=example.unit,
        )
        print(report.verdict)  # in pytest's report with -rP


@functools.cache
def _find_claims(miner: type[Miner]) -> list[tuple[str, Relation]]:
    """Return the names of a miner's examples, each with a relation under which the example claims something."""
    return [
        (name, relation)
        for name, example in miner.examples().items()
        for relation in Relation
        if _subject(example, relation).delta_needed is not None
    ]


@functools.cache
def _steps_of(miner: type[Miner], replays: int) -> StepChecks:
    """Return the checks of a miner's steps, shared by its examples so that equal steps are checked once."""
    return StepChecks(replays, 0, [], foreign=True)


class QueryConformance:
    """The tests that every query must pass.

    Attributes
    ----------
    queries
        Queries by name, each with a schema and with the inputs that a run gives it.
    pairs
        How many pairs of neighbours each search tries.
    min_tightness
        The share of every declared sensitivity that the search must reach, for all queries or by a query's name. A
        number below the default needs a reason, as for a miner.
    """

    queries: ClassVar[Mapping[str, tuple[Query, Schema, Mapping[str, Any]]]]
    pairs: ClassVar[int] = 1_500
    min_tightness: ClassVar[float | Mapping[str, float]] = MIN_TIGHTNESS

    @classmethod
    def pytest_generate_tests(cls, metafunc: Any) -> None:
        """Make one test for each query, or for each query and relation."""
        if "relation" in metafunc.fixturenames:
            both = [(given, relation) for given in cls.queries.values() for relation in Relation]
            ids = [f"{name}-{relation}" for name in cls.queries for relation in Relation]
            metafunc.parametrize(("given", "relation"), both, ids=ids)
        elif "given" in metafunc.fixturenames:
            metafunc.parametrize("given", list(cls.queries.values()), ids=list(cls.queries))

    def test_declared_sensitivities_hold(self, given: tuple[Query, Schema, Any], relation: Relation) -> None:
        """The search finds no larger change than declared, and reaches the share `min_tightness` of it."""
        query, schema, inputs = given
        assert query.facts().sensitivities, f"{query.name} declares no sensitivity"
        if any(declared.change.under(relation) is not None for declared in query.facts().sensitivities):
            least = self.min_tightness
            if isinstance(least, Mapping):
                names = [name for name, known in self.queries.items() if known is given]
                least = min(least.get(name, MIN_TIGHTNESS) for name in names)
            assert_sensitivity_holds(query, schema, relation, inputs=inputs, pairs=self.pairs, min_tightness=least)

    def test_the_order_and_the_blocks_of_rows_make_no_difference(self, given: tuple[Query, Schema, Any]) -> None:
        """The answer is the same for rows in another order, in several blocks, and when answered with another query."""
        query, schema, inputs = given
        universe, rows = Universe(schema), _rows(schema)
        engine = SmallTables(universe)
        answer = answer_of(query, engine, engine.hold(rows), inputs)
        backwards = answer_of(query, engine, engine.hold(rows[::-1]), inputs)
        assert _is_unchanged(query, answer, backwards), f"{query.name} answers differently if the rows are reordered"
        threads = Together()
        loaded = threads.load(universe.table(rows))
        in_blocks = answer_of(query, threads, loaded, inputs)
        assert _is_unchanged(query, answer, in_blocks), f"{query.name} answers differently on three blocks of the rows"
        for again in answers_of(threads, [(query, loaded, inputs), (query, loaded, inputs)]):
            assert _is_unchanged(query, answer, again), f"{query.name} answers differently together with another query"

    def test_its_tables_give_what_it_counts(self, given: tuple[Query, Schema, Any]) -> None:
        """The answer is the same if it is computed from the cross tables that the query names (see `Query.tables`)."""
        import pytest

        query, schema, inputs = given
        if not query.has_tables:
            pytest.skip("the query names no cross tables; engines that count nothing else refuse it")
        table = Universe(schema).table(_rows(schema))
        answers = [answer_of(query, one, one.load(table), inputs) for one in (Together(), ByTables())]
        assert _is_unchanged(query, *answers), f"{query.name} answers differently if counted from its tables"

    def test_answers_are_the_same_in_another_process(self) -> None:
        """A plugin's query gives the same answer in a new process, which lacks what this process keeps in memory."""
        asked = {
            name: LocalAnswer.of(query, schema, _rows(schema), (), inputs)
            for name, (query, schema, inputs) in self.queries.items()
            if is_foreign(query)
        }
        found = zip(asked, differences(list(asked.values())), strict=True)
        problems = [f"query '{name}' {problem}" for name, problem in found if problem is not None]
        assert not problems, "\n".join(problems)


def _rows(schema: Schema) -> bytes:
    """Return a table of up to 30 rows, one byte per row (see `Universe`), with as many kinds of rows as fit in."""
    kinds = Universe(schema).kinds
    return bytes(k % kinds for k in range(Sizes.of(schema, Relation.ADD_OR_REMOVE_ONE, 30).most))


def _is_unchanged(query: Query, answer: Any, again: Any) -> bool:
    one, other = coordinates_of(query, answer), coordinates_of(query, again)
    return np.shape(one) == np.shape(other) and measure(one, other)["linf"] <= 1e-9


class MechanismConformance:
    """The tests that every mechanism must pass.

    Attributes
    ----------
    mechanisms
        The mechanisms to test, with parameters between 0.1 and 5.
    probes
        Answers for which outputs are drawn, if the mechanisms take answers of a type of their own; else None.
    answers
        Pairs of answers on which losses are compared with claims, for such mechanisms; else None.
    draws
        How many outputs are drawn for each probe from each source of randomness. More are drawn if these are too few to
        tell the claimed scale of the noise from another one.
    min_tightness
        The share of a mechanism's claims that its losses must reach. A number below the default needs a reason, as for
        a miner.
    """

    mechanisms: ClassVar[Sequence[Mechanism]]
    probes: ClassVar[Sequence[Probe] | None] = None
    answers: ClassVar[Sequence[Answers] | None] = None
    draws: ClassVar[int] = 2_000
    min_tightness: ClassVar[float] = MIN_TIGHTNESS

    @classmethod
    def pytest_generate_tests(cls, metafunc: Any) -> None:
        """Make one test for each mechanism."""
        if "mechanism" in metafunc.fixturenames:
            metafunc.parametrize("mechanism", list(cls.mechanisms), ids=list(map(str, cls.mechanisms)))

    def test_it_draws_what_it_states(self, mechanism: Mechanism) -> None:
        """The mechanism draws from the distribution that it states (see `check_sampler`)."""
        assert_samples_as_stated(mechanism, given=self.probes, draws=self.draws)

    def test_it_loses_no_more_than_it_claims(self, mechanism: Mechanism) -> None:
        """By its log-density, the mechanism loses no more than it claims, and at least the share `min_tightness` of it.

        A mechanism for answers of a type of its own is tested only if `answers` are given.
        """
        if self.answers is None and not takes_any_answers(mechanism):
            return
        assert_loses_as_claimed(mechanism, given=self.answers, min_tightness=self.min_tightness)

    def test_it_survives_pickling(self, mechanism: Mechanism) -> None:
        """Plans may be sent to other processes, so a mechanism must survive pickling unchanged."""
        assert pickle.loads(pickle.dumps(mechanism)) == mechanism, f"{mechanism.name} differs after it was pickled"

    def test_a_plan_file_holds_its_parameters(self, mechanism: Mechanism) -> None:
        """A plan's hash covers what is written, so no parameter may be lost."""
        form = parsed_json(json.dumps(write_step(step("release", Count(), mechanism), None, 1)))
        again = read_step(form, {mechanism.name: type(mechanism)}).mechanism
        assert again == mechanism, f"a plan file gives {again} back; does each field have a converter?"
