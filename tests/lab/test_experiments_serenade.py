"""Serenade's experiments: what stands beside their files measures and runs what it says."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from dpframework_greedy import SerenadeCS, SerenadeES

import dpframework as dpf
from dpframework.facts.logical_descriptions_of_rows import Equals
from dpframework.lab.clinic import clinic_table
from dpframework.lab.evaluation.exact_redescription_quality import exact_counts
from dpframework.lab.evaluation.trial_record import Trial
from dpframework.lab.experiment.user_functions import Code
from dpframework.redescriptions.redescription import Redescription
from dpframework.redescriptions.redescriptions import Redescriptions
from dpframework.results.noisy_count_with_interval import Noisy

FOLDER = Path(__file__).parents[2] / "docs" / "experiments" / "serenade"
TABLE = clinic_table(2000)
BOUNDS = {"min_support": 200, "max_support": 1400}
SIDES = Equals("obesity", "true"), Equals("hypertension", "true")


def function(place):
    return Code(place, FOLDER).load()


def reporting(*jaccards):
    """Return a trial of redescriptions, each of which reports a Jaccard index; and what theirs truly is."""
    found = [
        Redescription(
            *SIDES, both=Noisy(1000 * one, 1), left_only=Noisy(1000 * (1 - one), 1), right_only=Noisy(0, 1), rows=2000
        )
        for one in jaccards
    ]
    (exact,) = exact_counts(found[:1], TABLE)
    return Trial(Redescriptions(found), TABLE), exact.jaccard


def test_redescriptions_that_report_little_are_removed():
    trial, true = reporting(0.1, 0.29, 0.3, 0.8)
    shown = function("measures.py:reported_above")(trial, least=0.3)
    assert shown["count"] == 2
    assert shown["jaccard"] == true  # of the rows, not what is reported
    assert np.isnan(function("measures.py:reported_above")(trial, least=0.9)["jaccard"])


def test_honesty_compares_what_is_reported_with_the_rows():
    trial, true = reporting(0.01, 0.3, 0.6, 0.9)
    assert 0.2 < true < 0.5  # one reports far too little, two far too much
    found = function("measures.py:honesty")(trial, by=0.1)
    assert found == {"reported": pytest.approx(0.45), "flattering": 0.5, "modest": 0.25}
    assert np.isnan(function("measures.py:honesty")(Trial(Redescriptions([]), TABLE))["reported"])


def test_rounds_and_age_follow_from_the_pairs(monkeypatch):
    made, make = [], dpf.miner
    monkeypatch.setattr(dpf, "miner", lambda name, **given: made.append((name, given)) or make(name, **given))
    found = function("baselines.py:engine_side")(TABLE, seed=1, epsilon=5, pairs=3, budget="d1", **BOUNDS)
    assert len(found) == 3
    expected = {"epsilon": 5, "score": "logistic", "pairs": 3, "rounds": 12, "max_age": 6, "budget": "d1", **BOUNDS}
    assert made == [("serenade-es", expected)]


def test_greedy_mining_is_exact():
    found = function("baselines.py:greedy")(TABLE, seed=1, pairs=3, extensions=1, **BOUNDS)
    assert len(found) == 3
    assert [one.jaccard for one in found] == [one.jaccard for one in exact_counts(found, TABLE)]


@pytest.mark.parametrize(("name", "kind"), [("ES as published", SerenadeES), ("CS as published", SerenadeCS)])
def test_published_miners_are_those_of_the_figures(name, kind):
    file = tomllib.loads((FOLDER / "methods.toml").read_text(encoding="utf-8"))
    (method,) = [one for one in file["method"] if one["name"] == name]
    values = file["data"][0]["values"]
    filled = {key: values.get(str(value).strip("{}"), value) for key, value in method["params"].items()}
    paper = kind.published(2, min_support=values["least"], rows=values["unlimited"] // 2)
    assert paper == dpf.miner(method["miner"], epsilon=2, **filled)
    assert kind.published(2, 10, 100, pairs=3).pairs == 3


def test_a_reading_is_chosen_in_each_of_four_ways():
    def counted(index: float, deviation: float) -> Redescription:
        """Return an intersection of so many of 200 rows on the left side, and of no others on the right one."""
        both, rest = (Noisy(200 * share, deviation) for share in (index, 1 - index))
        return Redescription(*SIDES, both=both, left_only=rest, right_only=Noisy(0, deviation), rows=1000)

    def found(reported: float, true: float, star: bool = False):
        return counted(reported, 1), star, counted(true, 0)

    chosen = function("readings.py:chosen")
    every = [found(0.5, 0.4), found(0.9, 0.1), found(0.6, 0.8, star=True), found(0.9, 0.2)]
    assert chosen(every, "reported index") is every[1], "the first of equal ones"
    assert chosen(every, "reported index, with a star") is every[2]
    assert chosen(every, "true index, not private") is every[2]
    assert chosen(every[:2], "reported index, with a star") is None
    likely = [one[0].p_value for one in every]
    assert chosen(every, "reported p-value") is every[int(np.argmin(likely))]
    assert chosen([], "reported index") is None


def test_readings_stand_on_the_page_as_they_are_committed():
    page = FOLDER.with_suffix(".md").read_text(encoding="utf-8")
    on_page = Code("table_files.py:on_page", FOLDER.parent).load()
    for name in ("readings", "readings-ways"):
        text = (FOLDER / "results" / f"{name}.csv").read_text(encoding="utf-8")
        assert f"<!-- {name} -->\n\n| data" in page
        assert on_page(page, name, text) == page
