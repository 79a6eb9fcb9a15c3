"""Fixtures that every test may use, and the folder of the modules that several tests import."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import dpframework as dpf
from dpframework.accountant import PureAccountant
from dpframework.facts.privacy_unit import ROW
from dpframework.mechanisms.randomness import SeededRandomness, SystemRandomness
from dpframework.plan import Budget, Node, PublicFacts
from dpframework.run.gate import Gate
from dpframework.run.run_scopes_and_charges import Run

sys.path.insert(0, str(Path(__file__).parent))
from collecting import without_empty_doctests
from parts import mark_other_parts
from tiers import mark_slow

# the kit starts a process for each verification, a second each: `test_other_process.py` lets it
os.environ.setdefault("DPFRAMEWORK_ASKED_ELSEWHERE", "1")

# whether a property holds does not depend on how busy the machine is
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real data sets, or skip the test where there is none."""
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    folder = Path(os.environ.get("DPFRAMEWORK_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"real data is not at {folder}; set DPFRAMEWORK_DATA to its folder")
    return folder


@pytest.fixture
def example_with_data(data_dir: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that copies an example, and puts its real data set beside its study: returns the folder."""

    def copied(name: str) -> Path:
        examples = Path(__file__).resolve().parents[1] / "docs" / "examples"
        folder = Path(shutil.copytree(examples / name, tmp_path / name))
        shutil.copy(data_dir / name / f"{name}.csv", folder)
        return folder

    return copied


@pytest.fixture(scope="session")
def plan_of() -> Callable[..., dpf.StudyPlan]:
    """Return a function that binds nodes to a schema, a relation and a budget."""

    def make(
        node: Node,
        schema: dpf.Schema,
        relation: str = "add-or-remove-one",
        *,
        epsilon: Any = 1000,
        delta: Any = 0,
        allow: tuple[str, ...] = (),
        unit: dpf.PrivacyUnit = ROW,
    ) -> dpf.StudyPlan:
        facts, held_under = PublicFacts.of(schema), dpf.Relation.parse(relation)
        return dpf.StudyPlan(node, held_under, facts, Budget(epsilon, delta, allow), schema, unit=unit)

    return make


@pytest.fixture(scope="session")
def opened(plan_of: Callable[..., dpf.StudyPlan]) -> Callable[..., tuple[dpf.PrivateTable, Run]]:
    """Return a function that opens a run of some nodes on a table, private unless it is given a seed."""

    def make(
        node: Node,
        table: dpf.Table,
        relation: str = "add-or-remove-one",
        *,
        seed: int | None = 0,
        engine: dpf.Engine | None = None,
        observers: tuple[dpf.Observer, ...] = (),
    ) -> tuple[dpf.PrivateTable, Run]:
        run = PureAccountant(relation).open(plan_of(node, table.schema, relation))
        engine = engine or dpf.InMemory()
        gate = Gate(engine, SystemRandomness() if seed is None else SeededRandomness(seed), observers)
        return dpf.PrivateTable(table.schema, engine.load(table), run.scope(), gate), run

    return make


@pytest.fixture
def ledger(tmp_path: Path) -> dpf.Ledger:
    """Return a ledger with a data set of people and a cap of 3."""
    made = dpf.Ledger.create(tmp_path / "people.ledger")
    made.open("people", epsilon=3)
    return made


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that writes a study file beside the schema of some people, whose data is not there."""
    from people import SCHEMA_FILE

    (tmp_path / "people.schema.toml").write_text(SCHEMA_FILE)

    def written(text: str) -> Path:
        path = tmp_path / "study.toml"
        path.write_text(text)
        return path

    return written


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Return where the journal of a run may be."""
    return tmp_path / ".out.unfinished"


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for no examples in files of tests that have none."""
    return without_empty_doctests(file_path, (yield))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is slow or in another part, and put the tests of the site last.

    The site is being built beside the others (see .ci/run), and its tests wait for it.
    """
    mark_slow(config, items, Path(__file__).parent)
    mark_other_parts(config, items, Path(__file__).parent)
    items.sort(key=lambda item: item.path.name == "test_site.py")


def pytest_terminal_summary(terminalreporter) -> None:
    """Print the detection rate of the planted bugs (tests/verify/planted_bugs/test_bugs_seen_in_outputs.py)."""
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.getreports(outcome)]
    told = [(name, value) for report in reports for name, value in report.user_properties]
    for kind, words in (("planted bug", "planted bugs caught"), ("correct version", "correct versions passed")):
        outcomes = [value[1] for name, value in told if name == kind]
        if outcomes:
            terminalreporter.write_line(f"{words}: {sum(outcomes)} of {len(outcomes)}")
