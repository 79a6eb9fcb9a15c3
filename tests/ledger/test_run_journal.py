"""The place of one run's journal: a file only while it is needed, and nothing at all for a run that keeps none."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpframework as dpf
from dpframework.ledger.entry_hash_chain import Chain
from dpframework.ledger.journal_key_file import journal_key
from dpframework.ledger.release_journal import Journal, Owner, RunJournal

OWNER = Owner("ledger", "people", "plan", "run", b"k" * 32)


@pytest.fixture
def chain(ledger: dpf.Ledger) -> Chain:
    return Chain(ledger.path)


def test_a_run_without_a_journal_keeps_nothing(chain: Chain, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    one = RunJournal(chain, None)
    one.open(make=True)
    one.claim(OWNER)
    one.keep("run", 1, "n", "", "1")
    assert (one.opened, one.owner, one.releases("run", ())) == (False, None, {})
    with one.visited() as found:
        assert found is None
    one.leave()
    one.remove()
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("claimed", [False, True])
def test_a_journal_that_nothing_depends_on_is_removed_when_it_is_left(
    chain: Chain, journal: Path, claimed: bool
) -> None:
    one = RunJournal(chain, journal)
    one.open(make=True)
    assert one.opened
    if claimed:
        one.claim(OWNER)
        assert one.owner == OWNER
    one.leave()
    assert journal.exists() == claimed
    one.remove()
    assert not journal.exists()


def test_a_removed_journal_is_closed(chain: Chain, journal: Path) -> None:
    """Else every run would leave an open file behind, and its space on the disk would stay taken."""
    one = Journal(journal, b"k" * 32)
    one.claim(OWNER)
    one.remove()
    with pytest.raises(dpf.InputError, match="closed database"):
        _ = one.owner


def test_a_journal_is_made_only_where_that_is_asked_for(chain: Chain, journal: Path) -> None:
    one = RunJournal(chain, journal)
    one.open(make=False)
    assert not one.opened
    assert not journal.exists()


def test_what_was_stored_is_found_when_the_run_is_resumed(chain: Chain, journal: Path) -> None:
    one = RunJournal(chain, journal)
    one.open(make=True)
    one.claim(OWNER)
    one.keep("run", 1, "n", "trace", "[1]")
    one.leave()
    again = RunJournal(chain, journal)
    with again.visited() as found:
        assert found is not None
        assert found.owner == OWNER
    again.open(make=False)
    (stored,) = again.releases("run", ()).values()
    assert (stored.path, stored.origin) == ("n", "trace")
    assert not again.disposable
    again.leave()
    assert journal.exists()


def test_another_process_cannot_take_what_is_open(chain: Chain, journal: Path) -> None:
    journal_key(chain, make=True)
    one = RunJournal(chain, journal)
    one.open(make=True)
    with pytest.raises(dpf.InputError, match="another process"):
        RunJournal(chain, journal).open(make=True)
    one.leave()
