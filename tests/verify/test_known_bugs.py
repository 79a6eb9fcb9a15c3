"""Published bugs: each is caught in a sentence that names it, and its honest twin passes.

More patience: `python tests/known_bugs/run.py --patient`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from known_bugs import already, control, noise, sums, vectors
from known_bugs.catalogue import ADD
from verify.planted_bugs import test_bugs_seen_in_outputs, test_bugs_unseen_in_outputs

from dpframework.verify.mechanisms.randomness_checks import draw_problems

ALL = [*sums.BUGS, *vectors.BUGS, *noise.BUGS, *control.BUGS]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "known-bugs.md"


@pytest.mark.parametrize("bug", ALL, ids=lambda bug: bug.name)
def test_published_bug_is_caught_in_a_sentence_that_names_it(bug, record_property):
    found = bug.found(right=False)
    named = bug.named(found)
    record_property("planted bug", (bug.name, named is not None))
    assert named is not None, f"nothing like '{bug.says}' in {found}"


@pytest.mark.parametrize("bug", ALL, ids=lambda bug: bug.name)
def test_honest_twin_passes(bug, record_property):
    found = bug.found(right=True)
    record_property("correct version", (bug.name, not found))
    assert found == []


def test_a_mark_for_no_release_is_no_cut_of_the_noise():
    mechanism = noise.Threshold(1, right=True)
    calibration = mechanism.calibrate(noise.OneTown().facts(), ADD)
    assert list(draw_problems(mechanism, np.array([5]), calibration, 1.0)) == []


def test_page_lists_every_bug_and_its_test():
    text = PAGE.read_text(encoding="utf-8")
    for bug in ALL:
        assert f"| {bug.name} | {bug.had} | " in text, "run `python tests/known_bugs/run.py --write`"


def test_bugs_that_are_planted_elsewhere_are_there():
    known = {*test_bugs_seen_in_outputs.PLANTED, *test_bugs_unseen_in_outputs.PLANTED}
    assert {name for _, _, name in already.PLANTED} <= known
