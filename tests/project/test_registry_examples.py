"""Deployments of the public registry, written as studies: they plan with the registry's own figures."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dpframework as dpf
from dpframework.reports.dossier import Statements, dossier, registry_entry
from dpframework.study.study_file import load_study
from dpframework.verify import audit

FOLDER = Path(__file__).parents[2] / "docs" / "examples" / "registry"
#: The figures, units and relations of the registry's entries, as of July 2026.
LISTED: dict[str, tuple[dict[str, float], dpf.PrivacyUnit, str]] = {
    "pageviews": ({"rho": 0.015}, dpf.PrivacyUnit(None, 10, period="day", date="day"), "add-or-remove-one"),
    "detailed_characteristics": ({"rho": 19.776}, dpf.PrivacyUnit(), "replace-one"),
    "broadband": ({"epsilon": 0.2}, dpf.PrivacyUnit("user"), "add-or-remove-one"),
    "hiring": ({"epsilon": 4.8, "delta": 4e-10}, dpf.PrivacyUnit(), "add-or-remove-one"),
    "redistricting": ({"rho": 2.56}, dpf.PrivacyUnit(), "replace-one"),  # of 2.63; the rest is for housing units
    "births": ({"epsilon": 9.98}, dpf.PrivacyUnit(), "add-or-remove-one"),
    "accounts": ({"epsilon": 5.0}, dpf.PrivacyUnit("customer", 5), "add-or-remove-one"),
}
#: The registry's own addresses of the entries.
SLUGS = {
    "pageviews": "current-pageviews-wikimedia-foundation-2023",
    "detailed_characteristics": "disclosure-avoidance-system-for-detailed-demographic-and-housing-characteristics-"
    "file-a-u-s-census-bureau-2023",
    "broadband": "broadband-coverage-microsoft-2021",
    "hiring": "linkedin-hiring-reports-linkedin-2020",
    "redistricting": "disclosure-avoidance-system-for-redistricting-data-u-s-census-bureau-2021",
    "births": "israel-s-national-registry-of-live-births-of-2014-israeli-ministry-of-health-2024",
    "accounts": "synthetic-data-to-test-third-party-solutions-in-financial-services-nationwide-building-society-hazy-"
    "now-sas-data-maker--2020",
}


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def study_of(name: str) -> dpf.Study:
    made: dpf.Study = (
        program(name).study() if (FOLDER / f"{name}.py").exists() else load_study(FOLDER / f"{name}.toml").study
    )
    return made


@pytest.mark.parametrize("name", LISTED)
def test_a_deployment_costs_what_the_registry_lists(name: str) -> None:
    figures, unit, relation = LISTED[name]
    plan = study_of(name).plan()
    assert plan.refusals() == []
    assert (plan.unit, plan.relation) == (unit, relation)
    entry = registry_entry(plan, Statements.load(FOLDER / "owner.toml", name), name=name)
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"] == figures
    many, model = name == "pageviews", entry["deployment"]["deployment_model"]
    assert model["release_type"] == ("Many releases" if many else "One release")
    assert model["data_source_type"] == ("Dynamic" if name in ("pageviews", "broadband", "hiring") else "Static")
    assert ("Each day has a budget of its own" in model["release_type_details"]) == many
    assert entry["url_slug"] == SLUGS[name]


@pytest.mark.parametrize("name", LISTED)
def test_what_an_entry_does_not_say_is_open(name: str) -> None:
    found = dossier(study_of(name).plan(), Statements.load(FOLDER / "owner.toml", name))
    opened = {one.item.title for one in found.items if one.open}
    assert {"data collection", "side channels"} < opened
    assert "trust and actors" not in opened


def test_a_group_gets_the_detail_that_its_size_bears() -> None:
    module = program("detailed_characteristics")
    sizes: list[int] = [100, 3_000, 20_000]
    rng = np.random.default_rng(3)
    number = sum(sizes)
    schema = dpf.Schema(module.SCHEMA.attributes, rows=number)
    ages = rng.integers(0, 3, number)
    codes = [np.repeat([0, 1, 2], sizes), rng.integers(0, 2, number), ages, ages]
    study = dpf.Study(schema, epsilon=60, delta="1e-10", relation="replace-one")
    study.add("detail", module.AdaptiveDetail(module.RHO))
    found: dict[str, Any] = study.run(dpf.Table.from_codes(schema, codes), seed=1)["detail"]
    shapes = [None if one["table"] is None else np.size(one["table"]) for one in found.values()]
    assert shapes == [None, 2 * 4, 2 * 23]


def test_reports_show_employers_that_enough_hires_have() -> None:
    module = program("hiring")
    rng = np.random.default_rng(3)
    number = 4_000
    columns = {
        "employer": ["big"] * 2_500 + ["small"] * 1_499 + ["secret"],
        "country": rng.choice(["Austria", "Brazil", "Canada"], number),
        "industry": rng.choice(["Education", "Health", "Retail"], number),
        "this_month": rng.random(number) < 0.5,
    }
    found: dict[str, Any] = module.study().run(dpf.table_from_columns(columns, module.SCHEMA), seed=1)["reports"]
    assert len(found) == 1 + 3 + 3 + 9
    assert all(list(report) == ["big", "small", "other"] for report in found.values())
    assert sum(found["all"]["big"]) == pytest.approx(2_500, abs=100)  # fails with a probability below 1e-9


def test_adaptive_detail_by_group_size_is_audited(monkeypatch: pytest.MonkeyPatch) -> None:
    """On ten people, of whom a group of three gets few classes and one of six many."""
    module = program("detailed_characteristics")
    monkeypatch.setattr(module, "FEW", 3)
    monkeypatch.setattr(module, "MANY", 6)
    ages = [dpf.Numeric(name, 0, 116, cuts=cuts) for name, cuts in (("few", [45]), ("many", [18, 65]))]
    schema = dpf.Schema([module.SCHEMA["group"], module.SCHEMA["female"], *ages], rows=10)
    monkeypatch.setattr(module, "SCHEMA", schema)
    report = audit(module.AdaptiveDetail(2), schema, "replace-one", replays=200, delta="1e-6")
    assert report.passed, str(report)
    assert report.tail is not None


def test_a_deployment_with_secret_keys_is_audited() -> None:
    module = program("hiring")
    places = [dpf.Categorical("country", ["A"]), dpf.Categorical("industry", ["C"])]
    schema = dpf.Schema([module.SCHEMA["employer"], *places, module.SCHEMA["this_month"]])
    report = audit(module.HiringReports(), schema, "add-or-remove-one", replays=100, delta="4e-10")
    assert report.passed, str(report)
    assert float(report.claim) == 4.8
