"""The changelog: no public name of the version before is lost, and what it says is so."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "changelog.md"
NAME = re.compile(r"`((?:dpf|dpframework\w*)(?:\.\w+)+)`")

# What the packages listed in `__all__` before the core was divided into rooms, and the modules that there were.
LISTED = {
    "dpframework": """
        Accountant And Attribute Below Boolean Cases Categorical Check ConcentratedAccountant DPFrameworkError
        Description Engine Equals Example Finding InMemory InputError Ledger LedgerRun LedgerTampered Literal
        Mechanism Miner Node Not Numeric Observer Or PLDAccountant PlanRefused PrivacyLoss PrivateTable
        PureAccountant Query Relation Release ReleaseRefused Released Results RunStopped Schema Sensitivity
        Severity Shard Study StudyPlan Table Threads View either hookimpl infer_schema infer_two_view_schema
        mechanisms miner parallel patterns post queries read_table read_two_views repeat sequential step
        table_from_columns table_from_frame
    """,
    "dpframework.accountant": """
        Accountant BUILT_IN Charge ConcentratedAccountant PLDAccountant PureAccountant Run Scope accountants
        concentrated_to_epsilon totals
    """,
    "dpframework.checks": "BUILT_IN Check Finding Severity findings",
    "dpframework.ledger": "Approval Books DataSet Head Ledger LedgerRun LedgerTampered RecordedRun opening",
    "dpframework.mechanisms": """
        BUILT_IN Calibration DiscreteLaplace Exponential ExponentialInterval Gaussian Laplace Losses Mechanism
        PermuteAndFlip Preview PureMechanism bounded_range_losses permute_and_flip_log_probability
    """,
    "dpframework.patterns": """
        And Below Cases Description Equals Literal Noisy Not Or Redescription Redescriptions Shortener
        description_from_dict first_overlap p_values shortened
    """,
    "dpframework.plan": """
        Budget Either Node Parallel Plan Post PublicFacts Released Repeat SCHEMA_VERSION Sequential Step either
        parallel plan_from_json post repeat scopes sequential step walk within_scope
    """,
    "dpframework.queries": """
        CandidateScores Count Declared Histogram JointHistogram Norm PiecewiseScores Query QueryFacts
        Sensitivity Supports histogram_sensitivities
    """,
    "dpframework.reports": "NodeRow Ran StepRow markdown_report node_tree step_rows terminal_report",
    "dpframework.verify": """
        AuditReport Audited Distinguished Measured Probe SamplerReport SensitivityReport Tail TailReport
        Verification Violation assert_not_told_apart assert_private assert_samples_as_stated
        assert_sensitivity_holds audit check_sampler check_tail distinguish search_sensitivity verify_examples
    """,
    "dpframework.evaluation": """
        Correlations Encoded Encoding Friedman MEASURES MannWhitney Matching Measure PageTrend Pattern
        Prediction RedescriptionQuality Retention Trial cart correlations distribution_preserving_noise
        exact_counts folds friedman mann_whitney matched measure page_trend prediction_of redescription_quality
        retention_of select_rows uniform_noise
    """,
    "dpframework.experiment": "Experiment Outcome load_experiment run_experiment",
    "dpframework.difference": "Change Difference Mark Merged Side Topic difference loss_of",
}
MODULES = """
    dpframework dpframework.accountant dpframework.accountant.base dpframework.accountant.concentrated
    dpframework.accountant.pld dpframework.accountant.pure dpframework.accountant.run dpframework.boundaries
    dpframework.checks dpframework.checks.base dpframework.checks.budget dpframework.checks.claims
    dpframework.checks.noise dpframework.checks.structure dpframework.cli dpframework.cli.creating
    dpframework.cli.demo dpframework.cli.experimenting dpframework.cli.ledgers dpframework.cli.listing
    dpframework.cli.planning dpframework.cli.progress dpframework.cli.running dpframework.cli.schemas
    dpframework.cli.shared dpframework.cli.verifying dpframework.clinic dpframework.demo dpframework.difference
    dpframework.difference.base dpframework.difference.nodes dpframework.difference.whole
    dpframework.difference.wording dpframework.drawing dpframework.encoding dpframework.engines dpframework.errors
    dpframework.evaluation dpframework.evaluation.classifiers dpframework.evaluation.comparison
    dpframework.evaluation.correlation dpframework.evaluation.distances dpframework.evaluation.measures
    dpframework.evaluation.noise dpframework.evaluation.prediction dpframework.evaluation.redescriptions
    dpframework.evaluation.retention dpframework.evaluation.rows dpframework.evaluation.trial dpframework.experiment
    dpframework.experiment.code dpframework.experiment.file dpframework.experiment.grid
    dpframework.experiment.groups dpframework.experiment.job dpframework.experiment.planning
    dpframework.experiment.plots dpframework.experiment.results dpframework.experiment.running
    dpframework.experiment.spread dpframework.experiment.store dpframework.experiment.summary
    dpframework.experiment.tables dpframework.forms dpframework.hookspecs dpframework.inference dpframework.ledger
    dpframework.ledger.books dpframework.ledger.chain dpframework.ledger.journal dpframework.ledger.ledger
    dpframework.ledger.run dpframework.ledger.sqlite dpframework.ledger.values dpframework.mechanisms
    dpframework.mechanisms.base dpframework.mechanisms.gaussian dpframework.mechanisms.interval
    dpframework.mechanisms.laplace dpframework.mechanisms.selection dpframework.miner dpframework.observers
    dpframework.outputs dpframework.patterns dpframework.patterns.descriptions dpframework.patterns.noisy
    dpframework.patterns.redescriptions dpframework.patterns.shortening dpframework.plan dpframework.plan.alignment
    dpframework.plan.graph dpframework.plan.nodes dpframework.plan.plan dpframework.plan.reading
    dpframework.plan.writing dpframework.preview dpframework.privacy dpframework.private_table dpframework.queries
    dpframework.queries.base dpframework.queries.counts dpframework.queries.scores dpframework.randomness
    dpframework.registry dpframework.reports dpframework.reports.boxes dpframework.reports.facts
    dpframework.reports.html dpframework.reports.markdown dpframework.reports.terminal dpframework.schema
    dpframework.shard dpframework.skeleton dpframework.study dpframework.studyfile dpframework.table
    dpframework.verify dpframework.verify.assertions dpframework.verify.auditing dpframework.verify.conformance
    dpframework.verify.distinguishing dpframework.verify.replay dpframework.verify.sameness
    dpframework.verify.samplers dpframework.verify.search dpframework.verify.sensitivity dpframework.verify.subject
    dpframework.verify.tables dpframework.verify.tail dpframework.verify.transcript dpframework.verify.verification
    dpframework.version dpframework_distance dpframework_distance.contexts dpframework_distance.distances
    dpframework_distance.embedding dpframework_distance.estimates dpframework_distance.evaluation
    dpframework_distance.kernels dpframework_distance.metric dpframework_distance.miner dpframework_distance.plain
    dpframework_distance.queries dpframework_distance.sensitivities dpframework_distance.subsets
    dpframework_distance.transformer dpframework_greedy dpframework_greedy.baseline dpframework_greedy.budgets
    dpframework_greedy.choices dpframework_greedy.kernels dpframework_greedy.language dpframework_greedy.queries
    dpframework_greedy.scores dpframework_greedy.serenade dpframework_trees dpframework_trees.budgets
    dpframework_trees.complete dpframework_trees.criteria dpframework_trees.dptree dpframework_trees.estimates
    dpframework_trees.estimator dpframework_trees.extraction dpframework_trees.id3 dpframework_trees.kernels
    dpframework_trees.pairing dpframework_trees.parameters dpframework_trees.queries dpframework_trees.redescribe
    dpframework_trees.sampling dpframework_trees.splits dpframework_trees.tree
"""


def found(name: str) -> Any:
    """Return the module or what a module has under a dotted name; AttributeError if there is none."""
    module, _, rest = re.sub(r"^dpf\.", "dpframework.", name).partition(".")
    thing = importlib.import_module(module)
    for part in rest.split(".") if rest else ():
        module = f"{module}.{part}"
        try:
            thing = getattr(thing, part)
        except AttributeError:
            try:
                thing = importlib.import_module(module)
            except ModuleNotFoundError:
                raise AttributeError(f"{module} is not there") from None
    return thing


def is_there(name: str) -> bool:
    try:
        found(name)
    except AttributeError:
        return False
    return True


def rows() -> Iterator[tuple[str, str]]:
    """Yield the two cells of each row of a table of old and new names."""
    text = PAGE.read_text(encoding="utf-8")
    yield from re.findall(r"^\| (`dpf[^|]*) \| ([^|]+) \|$", text, re.MULTILINE)


OLD = {re.sub(r"^dpf\.", "dpframework.", name) for was, _ in rows() for name in NAME.findall(was)}


def told(name: str) -> bool:
    """Say whether the changelog has a name, or a package or module that holds it."""
    parts = name.split(".")
    return any(".".join(parts[:k]) in OLD for k in range(2, len(parts) + 1))


@pytest.mark.parametrize("name", MODULES.split())
def test_no_module_is_lost(name: str) -> None:
    assert is_there(name) or told(name)


@pytest.mark.parametrize("package", LISTED)
def test_no_listed_name_is_lost(package: str) -> None:
    for name in LISTED[package].split():
        full = f"{package}.{name}"
        assert is_there(full) or told(full), full


@pytest.mark.parametrize(("was", "now"), list(rows()))
def test_a_row_leads_from_what_is_gone_to_what_is_there(was: str, now: str) -> None:
    assert NAME.findall(now)
    for name in NAME.findall(now):
        assert is_there(name), name
    for name in NAME.findall(was):
        # two modules gave their names to something else: a room, and a function
        assert not is_there(name) or name in ("dpframework.study", "dpframework.miner"), f"{name} is still there"
