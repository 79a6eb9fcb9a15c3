"""A little of the standing attacks (`python tests/attacks/run.py`), and that they find what they look for."""

from __future__ import annotations

import attrs
import numpy as np
from attacks import draws, runs, tightness
from mechanisms.test_mechanisms import CASES, SOURCES, calibrated, expected

from dpframework.facts.privacy_losses import Relation
from dpframework.ledger.ledger_run import LedgerRun


def test_a_run_resumed_on_other_rows_draws_nothing_again(tmp_path):
    assert [found for _, found in runs.resumed(1, tmp_path)] == [None]


def test_a_release_that_is_drawn_again_is_found(tmp_path, monkeypatch):
    made = LedgerRun.output_of

    def other(self, path, draw):
        kept = made(self, path, draw)
        return kept + 1 if self.before else kept

    monkeypatch.setattr(LedgerRun, "output_of", other)
    ((_, found),) = runs.resumed(1, tmp_path)
    assert "have a second output" in found


def test_a_million_draws_tell_noise_three_percent_wider():
    mechanism, of, _, _ = CASES["discrete-laplace"]
    honest = calibrated(mechanism, of)
    chances = np.array(expected("discrete-laplace", honest))
    wider = attrs.evolve(honest, scale=honest.scale * 103 / 100)
    assert draws.wrong(draws.counted("discrete-laplace", honest, SOURCES["seeded"](), 10**6), chances) is None
    assert draws.wrong(draws.counted("discrete-laplace", wider, SOURCES["seeded"](), 10**6), chances)


def test_an_output_that_is_stated_to_be_impossible_is_wrong_if_it_comes_once():
    chances = np.array([0.5, 0.0, 0.5])
    assert draws.wrong(np.array([500, 0, 500]), chances) is None
    assert draws.wrong(np.array([500, 1, 499]), chances) == "an output came that is stated to be impossible"
    assert draws.wrong(np.array([700, 0, 300]), chances).startswith("the draws do not have the stated probabilities")


def test_a_claim_that_no_search_comes_near_is_wrong_unless_it_says_why(monkeypatch):
    monkeypatch.setattr(tightness, "REPLAYS", (100,))
    example = dict(tightness.examples(["count"]))["count (rows)"]
    one, replaced = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE
    assert tightness.reached(example, one) == ("1.00 of the claim at 100 replays", None)
    said, wrong = tightness.reached(example, replaced)
    assert (said, wrong) == (f"0.00 of the claim at 100 replays; {example.loose}", None)
    _, wrong = tightness.reached(attrs.evolve(example, loose=""), replaced)
    assert wrong == "0.9 is asked, and no ceiling is given"
