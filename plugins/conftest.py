"""The tests of plugins have the same tiers and parts, and the same patience as those of the core."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from collecting import without_empty_doctests
from parts import mark_other_parts
from tiers import mark_slow

# whether a property holds does not depend on how busy the machine is
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for no examples in files of tests that have none."""
    return without_empty_doctests(file_path, (yield))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is slow or in another part."""
    mark_slow(config, items, Path(__file__).parent)
    mark_other_parts(config, items, Path(__file__).parent)
