"""A run that is recorded in a ledger. It is charged before its releases are drawn, and can be resumed after a kill.

These steps follow one another, and each is stored on disk before the next one begins:

1. The journal, if there is one, gets the run's id.
2. The ledger records that the table will now be read.
3. After the reading, the ledger charges the whole total of the plan.
4. For each release, the ledger records the charge. Then the output is drawn, stored in the journal and returned.
5. The ledger records the end of the run.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, final

from dpframework.facts.errors import InputError, NotOpened, PlanRefused, QueryStopped, ReleaseRefused, is_failure
from dpframework.facts.fork_detection import this_process
from dpframework.ledger.approvals import data_digests
from dpframework.ledger.data_sets import DataSet
from dpframework.ledger.entry_hash_chain import START, Chain, Entry, Transaction
from dpframework.ledger.ledger_state import Records, refusal
from dpframework.ledger.recorded_run import RecordedRun
from dpframework.ledger.release_journal import Owner, RunJournal, StoredRelease, encode_output, require_as_left
from dpframework.ledger.resumable_release_gate import JournaledGate
from dpframework.ledger.run_results_person_and_purpose import RunSubject
from dpframework.mechanisms.randomness import Randomness, seed_of
from dpframework.plan.plan import Plan
from dpframework.run.gate import Gate
from dpframework.run.observers import Observer
from dpframework.run.run_recorder_interface import Recorder
from dpframework.run.run_scopes_and_charges import Charge, require_own
from dpframework.tables.contribution_bounding import KEY_BYTES
from dpframework.tables.engine_base import Engine
from dpframework.version import __version__


@final
class LedgerRun(Observer, Recorder):
    """One run of a study that is charged to a data set of a ledger. `Ledger.run` returns it, for `Study.run`.

    Attributes
    ----------
    id
        The id of the run in the ledger.
    before
        The number of releases that the run had made before it was resumed.
    unfinished
        Whether the run is recorded in the ledger and has not ended. An unfinished run with a journal can be resumed.
    data
        The files from which the run's table is read. They are needed if the approval is limited to certain files.
    key
        The key, for `read_table`, that decides which rows of each unit are kept. A resumed run has the same key.
    subject
        The study's name, the person who runs it, the purpose, and the period.
    """

    def __init__(self, chain: Chain, data_set: str, journal: Path | None, subject: RunSubject) -> None:
        self.subject = subject
        self.id = secrets.token_hex(8)
        self.key = secrets.token_bytes(KEY_BYTES)
        self.before, self.unfinished = 0, False
        self.data: Sequence[Path] = ()
        self.lock = threading.RLock()
        self.origin = ""  # a fingerprint of the rows and inputs of the current release
        self._chain, self._name = chain, data_set
        self._journal = RunJournal(chain, journal)
        self._plan: Plan | None = None
        self._classes: frozenset[type[Any]] = frozenset()  # the classes of objects that outputs may hold
        self._files: list[bytes] = []  # digests of the data files, if the approval is limited to certain files
        self._bound: dict[str, str] = {}  # the part of the run's entries about these files
        self._reads = self._ended = self._failed = self._drawing = False
        self._charged: list[str] = []  # the paths of the releases in the ledger
        self._kept: dict[int, StoredRelease] = {}  # the releases in the journal
        self._number, self._head, self._process = 0, START, this_process()  # `_number` counts releases

    @property
    def period(self) -> str:
        """The period whose rows the run reads; empty for a study without periods."""
        return self.subject.period

    @property
    def resumable(self) -> bool:
        """Whether the run has a journal, and so can be resumed."""
        return self._journal.at is not None

    @property
    def continues(self) -> bool:
        """Whether the run was resumed after it had made releases, and has not ended."""
        return self.before > 0 and not self._ended

    @property
    def head(self) -> str:
        """The hash of the ledger's last entry about this run, by which a replaced ledger can be detected later."""
        return self._head.hash

    @contextlib.contextmanager
    def recording(self, plan: Plan, randomness: Randomness) -> Iterator[None]:
        """Return a context that refuses a plan that may not be run, and that records how the `with` block ends.

        In the block, `open` charges the plan. The run stays unfinished if the block is interrupted or the ledger fails.

        Raises
        ------
        PlanRefused
            If the plan is not approved, if it does not fit the cap, or if the run cannot be resumed.
        InputError
            If the run is seeded, or if the ledger or the journal cannot be used.
        """
        if not randomness.private:
            raise InputError("a seeded run is not private, and a ledger records private runs; leave out the seed")
        with self.lock:  # of two threads that make the run at once, only one goes on
            if self._plan is not None:
                raise InputError("this run was made before; ask the ledger for a new one")
            self._plan = plan
        self._classes = frozenset(kind for step in plan.steps() for kind in step.mechanism.outputs)
        try:
            self._journal.open(make=False)
            with self._chain.reading() as transaction:
                binds = Records(self._chain.path, transaction.read()).data_set(self._name).binds(plan.hash)
            if binds:  # outside a transaction, since reading large files takes long
                self._files = data_digests(self.data)
            with self._chain.reading() as transaction:
                self._look(transaction)
            yield
        except BaseException as error:
            # A miner that failed would fail again, so the run ends. After other failures the run can be resumed.
            failed = is_failure(error) and not getattr(error, "interrupted", False)
            if failed and self.unfinished and not self._failed and self._here:
                if not self._reads:
                    self._end(f"stopped: {error.kind}" if isinstance(error, QueryStopped) else "stopped")
                elif isinstance(error, NotOpened | PlanRefused):  # these failures do not depend on the rows
                    self._take_back_reading()
                else:
                    self.refused("table cannot be read")
            raise
        else:
            if self.unfinished:
                self._end("finished")
        finally:
            try:
                self._leave_journal()
            finally:  # again, since Ctrl-C may have stopped the first call before it began to delay interrupts
                self._leave_journal()

    @property
    def _here(self) -> bool:
        """Whether this is the process that makes the run. A copy in a fork must not write or close anything."""
        return this_process() == self._process

    def _leave_journal(self) -> None:
        if self._here:
            self._journal.leave()

    def discard(self) -> None:
        """Remove the journal if the run has ended. Store the results elsewhere first."""
        if self._ended and self._here:
            self._journal.remove()

    def discard_of(self, run: str) -> None:
        """Remove the journal if the given run has ended and owns it. Store its results elsewhere first."""
        with self._journal.visited() as journal:
            if journal is None or journal.owner is None or journal.owner.run != run:
                return
            with self._chain.reading() as transaction:
                recorded = Records(self._chain.path, transaction.read()).data_set(self._name).runs.get(run)
            if recorded is not None and recorded.end is not None:
                journal.remove()

    def read(self) -> None:
        """Record that the table will now be read. This uses up one approved run: rows may decide how the run ends.

        Raises
        ------
        PlanRefused
            As in `recording`, if the ledger was changed in the meantime.
        """
        with self._entering() as (transaction, _, recorded):
            if recorded is None:
                transaction.append("reading", self._entry())
            elif not recorded.charged and recorded.end is None:
                transaction.append("resumption", {"run": self.id, "dpframework": __version__})
        self._reads = recorded is None or not recorded.charged
        self.unfinished = not self._ended

    def open(self) -> None:
        """Charge the whole total of the plan, or resume a run that was charged before.

        Raises
        ------
        PlanRefused
            As in `recording`, if the ledger was changed in the meantime.
        """
        assert self._plan is not None
        with self._entering() as (transaction, data_set, recorded):
            if recorded is None or not recorded.charged:
                transaction.append("run", self._entry(**data_set.charges(self._plan, self.period)))
            elif recorded.end is None:
                transaction.append("resumption", {"run": self.id, "dpframework": __version__})
        self._reads = False
        self.unfinished = not self._ended

    @contextlib.contextmanager
    def _entering(self) -> Iterator[tuple[Transaction, DataSet, RecordedRun | None]]:
        """Write the run's id to the journal, and yield a transaction with the data set and run that `_look` returns."""
        assert self._plan is not None
        require_own(self._process)
        self._journal.open(make=True)
        try:
            with self._chain.writing() as transaction:
                data_set, recorded = self._look(transaction)
                # The journal gets the id first, so that every run in the ledger can be found and resumed.
                self._journal.claim(Owner(self._ledger, self._name, self._plan.hash, self.id, self.key))
                yield transaction, data_set, recorded
                self._head = transaction.head
        except BaseException as error:
            self._failed = not isinstance(error, PlanRefused)  # any other error means that ledger or journal failed
            raise

    def _entry(self, **charges: Any) -> dict[str, Any]:
        """Return the content of an entry about the whole run."""
        assert self._plan is not None
        content = {"run": self.id, "data_set": self._name, "plan": self._plan.hash, **charges}
        return {**content, "dpframework": __version__, **self._bound, **self.subject.entry(self._plan)}

    def refused(self, why: str) -> None:
        """Record that the run ended while the table was read. This uses up one approved run.

        Whether the rows can be read, and fit what their owner states, depends on the rows. No epsilon bounds what this
        reveals, so nothing is charged, and a retry needs another approved run.

        Raises
        ------
        PlanRefused
            As in `recording`, if the ledger was changed in the meantime.
        """
        assert self._plan is not None
        require_own(self._process)
        with self._chain.writing() as transaction:
            _, recorded = self._look(transaction)
            if recorded is None:
                transaction.append("refusal", self._entry(why=why))
            elif recorded.end is None:
                transaction.append("end", {"run": self.id, "releases": len(self._charged), "how": refusal(why)})
        self._journal.disposable |= self._reads
        self.unfinished, self._ended = False, True

    def _take_back_reading(self) -> None:
        """Record that no row was read, so that the approved run is not used up."""
        with self._chain.writing() as transaction:
            self._news(transaction)
            transaction.append("unread", {"run": self.id})
        self.unfinished, self._journal.disposable = False, True

    def _look(self, transaction: Transaction) -> tuple[DataSet, RecordedRun | None]:
        """Read the ledger, refuse a run that may not go on, and return its data set and its record (None if new)."""
        assert self._plan is not None
        records = Records(self._chain.path, transaction.read())
        data_set, self._ledger = records.data_set(self._name), records.id
        owner = self._journal.owner
        if owner is not None:
            owner.require(self._ledger, self._name, self._plan.hash, str(self._journal.at))
            self.id, self.key = owner.run, owner.key
        recorded = data_set.runs.get(self.id)
        if recorded is not None:
            # For an unfinished run, the ledger and the journal must agree.
            cannot = f"run {self.id} cannot be resumed"
            if recorded.approval.revoked is not None:
                raise PlanRefused(f"{cannot}; {recorded.approval.revoked} revoked its approval")
            approved = recorded.approval.data
            if approved is not None and not approved.holds(self._files):
                raise PlanRefused(f"{cannot}; it was begun on other data, which was approved for it")
            if recorded.subject.period != self.period:
                raise PlanRefused(f"{cannot}; it was begun on period '{recorded.subject.period}'")
            self._ended = recorded.end is not None
            self._charged = list(recorded.charges)
            self._kept = dict(self._journal.releases(self.id, self._classes))
            self.before = len(self._kept)
            require_as_left(self.id, self._charged, self._kept, str(self._journal.at))
            return data_set, recorded
        if self._journal.releases(self.id, self._classes):
            raise PlanRefused(
                f"{self._journal.at}: holds releases of run {self.id}, not in this ledger; the ledger is an older copy"
            )
        self._journal.disposable = True
        binding = data_set.require_approved(self._plan, self._files).data
        self._bound = {} if binding is None else {"data": binding.digest}
        data_set.charges(self._plan, self.period)
        return data_set, None

    def gate(self, engine: Engine, randomness: Randomness, observers: Iterable[Observer]) -> Gate:
        """Return the gate through which the run's releases go."""
        if not self.resumable:
            return Gate(engine, randomness, observers, self, public_seed=seed_of("run", self.id))
        return JournaledGate(engine, randomness, observers, self, public_seed=seed_of("run", self.id), run=self)

    def charged(self, charge: Charge) -> None:
        """Record a charge. If the run was resumed, charges that are on record are not recorded again.

        Raises
        ------
        ReleaseRefused
            If the run may not make this release.
        InputError
            If the ledger cannot be written.
        """
        require_own(self._process)
        self._require_not_failed(charge.path)
        with self.lock, self._failing():
            number = self._number + 1
            on_record = number <= len(self._charged)
            if on_record and charge.path != self._charged[number - 1]:
                raise ReleaseRefused(self._other(charge.path))
            if number in self._kept:
                if self._kept[number].origin != self.origin:
                    raise ReleaseRefused(self._other(charge.path))
            elif self._ended:
                raise ReleaseRefused(f"step '{charge.path}': run {self.id} has ended and makes no more releases")
            else:
                self._record("redraw" if on_record else "charge", number, charge.path)
            self._number, self._drawing = number, self._journal.opened
            if not on_record:
                self._charged.append(charge.path)

    def _record(self, kind: str, number: int, path: str) -> None:
        with self._chain.writing() as transaction:
            for entry in self._news(transaction):
                if entry.kind == "revocation" and self._plan and entry.content["plan"] == self._plan.hash:
                    raise ReleaseRefused(f"step '{path}': {entry.content['by']} revoked the approval of its run")
            transaction.append(kind, {"run": self.id, "number": number, "path": path})
            self._head = transaction.head

    def _news(self, transaction: Transaction) -> list[Entry]:
        """Return the data set's new entries, and refuse if another process has resumed the run."""
        require_own(self._process)
        news = transaction.read(self._head)
        if any(entry.content.get("run") == self.id for entry in news):
            self._failed = True
            raise ReleaseRefused(
                f"run {self.id} was taken up by another process, which has written to the ledger for it"
            )
        return [entry for entry in news if entry.content.get("data_set") == self._name]

    def _other(self, path: str) -> str:
        return (
            f"step '{path}': run {self.id} made another release here before it was resumed; "
            "a miner must do the same again when it is given the same releases"
        )

    def _require_not_failed(self, path: str) -> None:
        if self._drawing:
            raise ReleaseRefused(f"step '{path}': the release before it failed; run {self.id} makes no more")

    @contextlib.contextmanager
    def asking(self, first: str) -> Iterator[None]:
        """Return a context in which to evaluate several queries. If its block fails, the run makes no more releases.

        Raises
        ------
        ReleaseRefused
            If an earlier release has failed. The message names `first`, the path of the first release.
        """
        self._require_not_failed(first)
        self._drawing = True
        yield
        self._drawing = False

    def output_of(self, path: str, draw: Callable[[], Any]) -> Any:
        """Return the output of the last charged release. If it is not stored yet, draw and store it first."""
        kept = self._kept.get(self._number)
        output = draw() if kept is None else kept.output
        require_own(self._process)  # checked after the draw, which may have forked
        if kept is None and self._journal.opened:
            text = encode_output(output, self._classes)
            with self._failing():
                self._journal.keep(self.id, self._number, path, self.origin, text)
        self._drawing = False
        return output

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """Stop the run if the ledger or the journal fails in the `with` block."""
        if self._failed:
            raise ReleaseRefused(f"run {self.id} has stopped and makes no more releases")
        try:
            yield
        except BaseException:
            self._failed = True
            raise

    def _end(self, how: str) -> None:
        """Record the end of the run."""
        with self._chain.writing() as transaction:
            self._news(transaction)
            transaction.append("end", {"run": self.id, "releases": len(self._charged), "how": how})
        self.unfinished, self._ended = False, True
