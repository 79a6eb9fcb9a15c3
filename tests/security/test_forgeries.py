"""Forged ledgers: what somebody can do who writes the file, makes its hashes anew, and has no signer's key.

Each forgery aims at one thing: that a plan runs which nobody approved, or no longer, or over the cap. None may run in a
ledger with signers. Each is shown to run once the guard that stops it is taken away, so that no forgery is refused only
because it was made badly.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

import dpframework as dpf
from dpframework.cli import main
from dpframework.ledger import LedgerTampered, read_signers
from dpframework.ledger.entry_hash_chain import _OBJECTS, Chain, canonical, hash_entry
from dpframework.ledger.ledger_pin_file import Pin
from dpframework.ledger.ledger_state import Records
from dpframework.ledger.ssh_signatures import text_to_sign

SCHEMA = dpf.Schema([dpf.Boolean("ill"), dpf.Boolean("old")])
TABLE = dpf.Table.from_codes(SCHEMA, [[0, 1, 1], [1, 0, 1]])
NAME, OTHER = "people", "staff"

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no ssh-keygen to sign with")

Content = dict[str, Any]


def study_of(attribute: str = "ill") -> dpf.Study:
    study = dpf.Study(SCHEMA, epsilon="1/2")
    study.add("counts", dpf.miner("histogram", attribute=attribute, epsilon="1/2"))
    return study


APPROVED, NEVER = study_of("ill"), study_of("old")  # a study that the board approves, and one that it does not


@attrs.define
class Entry:
    """An entry as a forger writes it; its place in the chain follows."""

    kind: str
    text: str
    time: str = "2026-01-02T03:04:05Z"

    @classmethod
    def of(cls, kind: str, content: Content) -> Entry:
        return cls(kind, canonical(content))

    @property
    def content(self) -> Content:
        found: Content = json.loads(self.text)
        return found

    def changed(self, **fields: Any) -> Entry:
        return attrs.evolve(self, text=canonical({**self.content, **fields}))


@attrs.define
class World:
    """A ledger with signers, their keys, a stranger's key, and a pin of the owner's.

    `study` and `data_set` are the ones that the forger wants to run.
    """

    folder: Path
    path: Path
    study: dpf.Study = APPROVED
    data_set: str = NAME

    def key(self, name: str) -> Path:
        return self.folder / name

    @property
    def pin(self) -> Path:
        return self.folder / "pin"

    @property
    def ledger(self) -> dpf.Ledger:
        return dpf.Ledger(self.path, Pin(self.pin))

    def approve(self, study: dpf.Study = APPROVED, data_set: str = NAME, *, runs: int = 1, key: str = "board") -> None:
        self.ledger.approve(data_set, study.plan(), by="The board", runs=runs, key=self.key(key))

    def revoke(self, study: dpf.Study = APPROVED) -> None:
        self.ledger.revoke(NAME, study.plan().hash, by="The board", key=self.key("board"))

    def run(self, *, pinned: bool = True) -> None:
        ledger = self.ledger if pinned else dpf.Ledger(self.path)
        self.study.run(TABLE, ledger=ledger.run(self.data_set))

    def entries(self) -> list[Entry]:
        with sqlite3.connect(self.path) as connection:
            rows = connection.execute("SELECT kind, content, time FROM entry ORDER BY number").fetchall()
        connection.close()
        return [Entry(*row) for row in rows]

    def previous(self, entries: list[Entry]) -> str:
        """Return the hash of the last of some entries."""
        found = "0" * 64
        for number, entry in enumerate(entries, 1):
            found = hash_entry(found, number, entry.time, entry.kind, entry.text)
        return found

    def write(self, entries: list[Entry]) -> None:
        """Make the file anew, with hashes that fit, and all that protects it."""
        with sqlite3.connect(self.path) as connection:
            for sql in _OBJECTS[1:]:
                connection.execute(f"DROP TRIGGER {sql.split()[2]}")
            connection.execute("DELETE FROM entry")
            previous = "0" * 64
            for number, entry in enumerate(entries, 1):
                own = hash_entry(previous, number, entry.time, entry.kind, entry.text)
                row = (number, entry.time, entry.kind, entry.text, previous, own)
                connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", row)
                previous = own
            for sql in _OBJECTS[1:]:
                connection.execute(sql)
        connection.close()

    def sql(self, *statements: str) -> None:
        with sqlite3.connect(self.path) as connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()

    def signature(
        self, key: str, entries: list[Entry], kind: str, content: Content, namespace: str = "dpframework-approval"
    ) -> str:
        """Sign an entry that is to follow others, as whoever has the key can."""
        text = text_to_sign(entries[0].content["id"], self.previous(entries), kind, content)
        command = ["ssh-keygen", "-Y", "sign", "-f", str(self.key(key)), "-n", namespace]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout

    def append(self, key: str | None, kind: str, content: Content) -> None:
        """Append a decision, signed by a key."""
        entries = self.entries()
        signed = {} if key is None else {"signature": self.signature(key, entries, kind, content)}
        self.write([*entries, Entry.of(kind, {**content, **signed})])


def approval(study: dpf.Study, data_set: str = NAME, **fields: Any) -> Content:
    return {"data_set": data_set, "plan": study.plan().hash, "by": "The board", "runs": 1, "note": "", **fields}


def plan_entry(study: dpf.Study, data_set: str = NAME) -> Entry:
    plan = study.plan()
    return Entry.of("plan", {"data_set": data_set, "plan": {**plan.content(), "hash": plan.hash}})


def at(entries: list[Entry], kind: str) -> int:
    return [entry.kind for entry in entries].index(kind)


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the keys of the board, of its chair and of a stranger, and a file that names two."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("board", "chair", "stranger"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(command, check=True)
    public = {name: (folder / f"{name}.pub").read_text() for name in ("board", "chair", "stranger")}
    (folder / "signers").write_text(f"# who decides\nboard@example.org {public['board']}chair {public['chair']}")
    (folder / "strangers").write_text(f"stranger {public['stranger']}")
    return folder


def world_in(folder: Path, *, epsilon: object = 5, name: str = "a.ledger") -> World:
    path = folder / name
    pin = Pin(folder / "pin", create=True)
    dpf.Ledger.create(path, signers=read_signers(folder / "signers"), pin=pin)
    world = World(folder, path)
    world.ledger.open(NAME, epsilon=epsilon, key=world.key("board"))  # type: ignore[arg-type]
    return world


@pytest.fixture
def world(keys: Path, tmp_path: Path) -> World:
    return world_in(Path(shutil.copytree(keys, tmp_path / "world")))


# What stops a forgery: the signatures; the look at the file's tables; one text for one content; or the owner's pin.
SIGNATURES, TABLES, PIN = "signatures", "tables", "pin"

Forgery = Callable[[World], None]
FORGERIES: dict[str, tuple[str, Forgery]] = {}


def forgery(guard: str) -> Callable[[Forgery], Forgery]:
    def note(forge: Forgery) -> Forgery:
        FORGERIES[forge.__name__] = guard, forge
        return forge

    return note


@forgery(SIGNATURES)
def stripped_signature(world: World) -> None:
    world.approve()
    world.run()
    entries = world.entries()
    k = at(entries, "approval")
    content = {key: value for key, value in entries[k].content.items() if key != "signature"}
    entries[k] = Entry.of("approval", {**content, "runs": 500})
    world.write(entries)


@forgery(SIGNATURES)
def more_runs_under_the_same_signature(world: World) -> None:
    world.approve()
    world.run()
    entries = world.entries()
    k = at(entries, "approval")
    entries[k] = entries[k].changed(runs=500)
    world.write(entries)


@forgery(SIGNATURES)
def raised_cap(world: World) -> None:
    world.approve(runs=20)
    for _ in range(10):
        world.run()
    entries = world.entries()
    k = at(entries, "data set")
    entries[k] = entries[k].changed(epsilon="500")
    world.write(entries)


@forgery(SIGNATURES)
def raised_cap_without_a_signature(world: World) -> None:
    world.approve(runs=20)
    for _ in range(10):
        world.run()
    entries = world.entries()
    k = at(entries, "data set")
    content = {key: value for key, value in entries[k].content.items() if key != "signature"}
    entries[k] = Entry.of("data set", {**content, "epsilon": "500"})
    world.write(entries)


@forgery(SIGNATURES)
def another_plan_under_the_same_signature(world: World) -> None:
    world.approve()
    world.study = NEVER
    entries = world.entries()
    entries[at(entries, "plan")] = plan_entry(NEVER)
    k = at(entries, "approval")
    entries[k] = entries[k].changed(plan=NEVER.plan().hash)
    world.write(entries)


@forgery(SIGNATURES)
def a_plan_that_costs_less_than_it_does(world: World) -> None:
    """The plan's epsilon in the ledger is not the one of the run; the approval's hash is the run's."""
    world.study = NEVER
    entries = world.entries()
    entries.append(plan_entry(NEVER))
    plan = entries[-1].content["plan"]
    entries[-1] = entries[-1].changed(plan={**plan, "budget": {**plan.get("budget", {}), "epsilon": "1/1000"}})
    world.write([*entries, Entry.of("approval", approval(NEVER))])


@forgery(SIGNATURES)
def unsigned_approval(world: World) -> None:
    world.study = NEVER
    world.write([*world.entries(), plan_entry(NEVER)])
    world.append(None, "approval", approval(NEVER))


@forgery(SIGNATURES)
def approval_by_a_stranger(world: World) -> None:
    world.study = NEVER
    world.write([*world.entries(), plan_entry(NEVER)])
    world.append("stranger", "approval", approval(NEVER))


@forgery(SIGNATURES)
def approval_again_after_its_revocation(world: World) -> None:
    world.approve()
    world.revoke()
    entries = world.entries()
    world.write([*entries, entries[at(entries, "approval")]])


@forgery(SIGNATURES)
def approval_twice(world: World) -> None:
    world.approve()
    entries = world.entries()
    world.run()
    now = world.entries()
    world.write([*now, entries[-1]])


@forgery(SIGNATURES)
def revocation_before_its_approval(world: World) -> None:
    world.approve()
    world.revoke()
    *entries, first, last = world.entries()
    world.write([*entries, last, first])


@forgery(SIGNATURES)
def revocation_removed_before_a_later_decision(world: World) -> None:
    world.approve()
    world.revoke()
    world.approve(NEVER)
    world.write([entry for entry in world.entries() if entry.kind != "revocation"])


@forgery(SIGNATURES)
def charges_removed_before_a_later_decision(world: World) -> None:
    world.approve()
    world.run()
    world.approve(NEVER)
    world.write([entry for entry in world.entries() if entry.kind not in ("run", "charge", "end")])


@forgery(SIGNATURES)
def charge_made_smaller_before_a_later_decision(world: World) -> None:
    world.approve(runs=20)
    for _ in range(10):
        world.run()
    world.ledger.change_signers(by="The board", key=world.key("board"), remove=["chair"])
    nothing = {"pure": {"add-or-remove-one": "1/1000", "replace-one": "1/1000"}}
    world.write([one.changed(amount=nothing) if one.kind == "run" else one for one in world.entries()])


@forgery(SIGNATURES)
def approval_from_another_ledger(world: World) -> None:
    (world.folder / "b").mkdir()
    for name in ("board", "board.pub", "chair", "signers"):
        shutil.copy(world.folder / name, world.folder / "b" / name)
    other = world_in(world.folder / "b")
    other.approve(NEVER)
    world.study = NEVER
    world.write([*world.entries(), *other.entries()[-2:]])


@forgery(SIGNATURES)
def approval_for_another_data_set(world: World) -> None:
    world.ledger.open(OTHER, epsilon=5, key=world.key("board"))
    world.approve(data_set=OTHER)
    *entries, plan, last = world.entries()
    world.write([*entries, plan.changed(data_set=NAME), last.changed(data_set=NAME)])


@forgery(SIGNATURES)
def forgers_key_in_the_first_entry(world: World) -> None:
    entries = world.entries()
    keys = {**entries[0].content["signers"], **read_signers(world.folder / "strangers")}
    entries[0] = entries[0].changed(signers=keys)
    world.study = NEVER
    world.write([*entries, plan_entry(NEVER)])
    world.append("stranger", "approval", approval(NEVER))


@forgery(SIGNATURES)
def key_added_by_its_owner(world: World) -> None:
    added: Content = {"add": read_signers(world.folder / "strangers"), "remove": [], "by": "The board"}
    world.append("stranger", "signers", added)
    world.study = NEVER
    world.write([*world.entries(), plan_entry(NEVER)])
    world.append("stranger", "approval", approval(NEVER))


@forgery(SIGNATURES)
def key_added_under_no_signature(world: World) -> None:
    added = {"add": read_signers(world.folder / "strangers"), "remove": [], "by": "The board", "signature": "none"}
    world.write([*world.entries(), Entry.of("signers", added), plan_entry(NEVER)])
    world.study = NEVER
    world.append("stranger", "approval", approval(NEVER))


@forgery(SIGNATURES)
def approval_by_a_signer_who_was_removed(world: World) -> None:
    world.ledger.change_signers(by="The board", key=world.key("board"), remove=["chair"])
    world.study = NEVER
    world.write([*world.entries(), plan_entry(NEVER)])
    world.append("chair", "approval", approval(NEVER))


@forgery(SIGNATURES)
def signature_for_another_purpose(world: World) -> None:
    """The board's key signed these very bytes, as a file."""
    world.study = NEVER
    entries, content = [*world.entries(), plan_entry(NEVER)], approval(NEVER)
    signature = world.signature("board", entries, "approval", content, namespace="file")
    world.write([*entries, Entry.of("approval", {**content, "signature": signature})])


@forgery(SIGNATURES)
def signature_of_another_kind_of_entry(world: World) -> None:
    world.study = NEVER
    entries, content = [*world.entries(), plan_entry(NEVER)], approval(NEVER)
    signature = world.signature("board", entries, "revocation", content)
    world.write([*entries, Entry.of("approval", {**content, "signature": signature})])


@forgery(SIGNATURES)
def signature_of_fewer_runs(world: World) -> None:
    world.approve()
    world.run()
    entries = world.entries()
    signature = world.signature("board", entries, "approval", approval(APPROVED, runs=1, by="Somebody"))
    world.write([*entries, Entry.of("approval", approval(APPROVED, runs=500, by="Somebody", signature=signature))])


@forgery(SIGNATURES)
def data_set_of_a_name_that_looks_alike(world: World) -> None:
    world.data_set = "pe\N{CYRILLIC SMALL LETTER O}ple"
    first = {key: value for key, value in world.entries()[1].content.items() if key != "signature"}
    world.append(None, "data set", {**first, "data_set": world.data_set, "epsilon": "500"})
    world.write([*world.entries(), plan_entry(APPROVED, world.data_set)])
    world.append(None, "approval", approval(APPROVED, world.data_set))


TRIGGERS = [f"DROP TRIGGER {sql.split()[2]}" for sql in _OBJECTS[1:]]


@forgery(TABLES)
def trigger_that_forgets_each_run_when_it_ends(world: World) -> None:
    """One approval would be good for any number of runs."""
    world.approve()
    forget = "DELETE FROM entry WHERE number >= (SELECT max(number) FROM entry WHERE kind = 'run')"
    quiet = f"CREATE TRIGGER quiet AFTER INSERT ON entry WHEN NEW.kind = 'end' BEGIN {forget}; END"
    world.sql("DROP TRIGGER never_removed", quiet)


@forgery(TABLES)
def view_that_hides_a_revocation(world: World) -> None:
    world.approve()
    world.revoke()
    number = len(world.entries())
    columns = "number, time, kind, content, previous, hash"
    added = ", ".join(f"NEW.{column}" for column in columns.split(", "))
    world.sql(
        *TRIGGERS,
        "ALTER TABLE entry RENAME TO held",
        f"CREATE TABLE more ({columns})",
        f"CREATE VIEW entry AS SELECT {columns} FROM held WHERE number < {number} UNION ALL SELECT {columns} FROM more",
        f"CREATE TRIGGER put INSTEAD OF INSERT ON entry BEGIN INSERT INTO more VALUES ({added}); END",
    )


@forgery(TABLES)
def table_with_a_generated_column(world: World) -> None:
    world.approve()
    more = _OBJECTS[0].replace("hash TEXT NOT NULL\n", "hash TEXT NOT NULL, more TEXT AS (content) VIRTUAL\n")
    copy = "INSERT INTO entry SELECT number, time, kind, content, previous, hash FROM held"
    world.sql(*TRIGGERS, "ALTER TABLE entry RENAME TO held", more, copy, "DROP TABLE held", *_OBJECTS[1:])


@forgery(TABLES)
def table_without_its_triggers(world: World) -> None:
    world.approve()
    world.sql(*TRIGGERS)


@forgery(PIN)
def revocation_cut_off(world: World) -> None:
    world.approve()
    world.revoke()
    world.write(world.entries()[:-1])


@forgery(PIN)
def older_copy_put_back(world: World) -> None:
    world.approve()
    shutil.copy(world.path, world.folder / "before")
    world.run()
    shutil.copy(world.folder / "before", world.path)


@forgery(PIN)
def charges_cut_off(world: World) -> None:
    world.approve()
    world.run()
    entries = world.entries()
    world.write(entries[: at(entries, "run")])


@forgery(PIN)
def removal_of_a_signer_cut_off(world: World) -> None:
    world.ledger.change_signers(by="The board", key=world.key("board"), remove=["chair"])
    world.write([*world.entries()[:-1], plan_entry(NEVER)])
    world.study = NEVER
    world.append("chair", "approval", approval(NEVER))


@forgery(PIN)
def another_ledger_of_the_same_signers(world: World) -> None:
    (world.folder / "b").mkdir()
    for name in ("board", "board.pub", "chair", "signers"):
        shutil.copy(world.folder / name, world.folder / "b" / name)
    other = world_in(world.folder / "b", epsilon=500)
    other.approve(runs=100)
    shutil.copy(other.path, world.path)


@forgery(PIN)
def first_entry_with_the_forgers_key_alone(world: World) -> None:
    """All is signed anew: it is another ledger, of the forger's."""
    world.approve()
    first, opened, plan, given = world.entries()
    world.write([first.changed(signers=read_signers(world.folder / "strangers"))])
    for entry in (opened, plan, given):
        content = {key: value for key, value in entry.content.items() if key != "signature"}
        if entry.kind == "plan":
            world.write([*world.entries(), entry])
        else:
            world.append("stranger", entry.kind, content)


@forgery(PIN)
def first_entry_without_signers(world: World) -> None:
    first, *others = world.entries()
    content = {key: value for key, value in first.content.items() if key != "signers"}
    world.study = NEVER
    world.write([Entry.of("ledger", content), *others, plan_entry(NEVER), Entry.of("approval", approval(NEVER))])


def attempt(world: World, pinned: bool) -> bool:
    """Return whether the forger's study runs; one that is refused has not read its table."""
    read = []

    def table() -> dpf.Table:
        read.append(True)
        return TABLE

    try:
        ledger = dpf.Ledger(world.path, Pin(world.pin) if pinned else None)
        world.study.run(table, ledger=ledger.run(world.data_set))
    except (dpf.PlanRefused, dpf.InputError):
        assert not read
        return False
    return True


@pytest.mark.parametrize("name", FORGERIES)
def test_no_forgery_runs_in_a_ledger_with_signers(world: World, name: str) -> None:
    guard, forge = FORGERIES[name]
    forge(world)
    before = world.path.read_bytes()
    assert not attempt(world, pinned=guard == PIN)
    with pytest.raises(LedgerTampered):
        dpf.Ledger(world.path, Pin(world.pin) if guard == PIN else None).verify()
    assert world.path.read_bytes() == before


@pytest.mark.parametrize("name", FORGERIES)
def test_each_forgery_runs_where_its_guard_is_missing(world: World, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    guard, forge = FORGERIES[name]
    forge(world)
    if guard == SIGNATURES:
        monkeypatch.setattr(Records, "_signer_of", lambda *_: None)
    elif guard == TABLES:
        monkeypatch.setattr(Chain, "_require_ours", lambda *_: None)
    assert attempt(world, pinned=False)


def test_there_are_enough_forgeries() -> None:
    assert len(FORGERIES) >= 30
    assert {guard for guard, _ in FORGERIES.values()} == {SIGNATURES, TABLES, PIN}


def test_what_is_signed_by_the_signers_runs(world: World) -> None:
    """The honest twins: approved, revoked, approved again, with signers who come and go, noted in the pin."""
    world.approve()
    world.run()
    assert not attempt(world, pinned=True)  # it was for one run
    world.approve()
    world.revoke()
    assert not attempt(world, pinned=True)
    world.ledger.change_signers(
        by="The board", key=world.key("chair"), add=read_signers(world.folder / "strangers"), remove=["chair"]
    )
    with pytest.raises(dpf.InputError, match="not the key of a signer"):
        world.approve(key="chair")
    world.approve(key="stranger")
    world.run()
    world.study = NEVER
    world.approve(NEVER, key="board")
    world.run()
    records = world.ledger.records()
    assert [one.signed_by for one in records.data_set(NAME).approvals] == [
        "board@example.org", "board@example.org", "stranger", "board@example.org"
    ]  # fmt: skip
    assert records.data_set(NAME).left == 5 - 3 * 0.5
    head = world.ledger.verify()
    assert json.loads(world.pin.read_text()) == {
        "ledger": world.previous(world.entries()[:1]), "entries": head.number, "head": head.hash
    }  # fmt: skip
    assert len(world.ledger.signatures()) == 7  # the data set, four approvals, a revocation and a change of signers


def test_a_resumed_run_needs_the_signatures_too(world: World) -> None:
    """A run was killed, its approval revoked, another plan approved; the forger takes the revocation out."""
    world.approve()
    journal = world.folder / "journal"

    class Killed(BaseException):
        pass

    class Killer(dpf.Observer):
        def released(self, *_: Any) -> None:
            raise Killed

    with pytest.raises(Killed):
        APPROVED.run(TABLE, ledger=world.ledger.run(NAME, journal=journal), observers=[Killer()])
    world.revoke()
    world.approve(NEVER)
    world.write([entry for entry in world.entries() if entry.kind != "revocation"])
    with pytest.raises(LedgerTampered, match="signature does not fit"):
        APPROVED.run(TABLE, ledger=dpf.Ledger(world.path).run(NAME, journal=journal))


@pytest.mark.parametrize(
    "decide",
    [
        lambda ledger, key: ledger.open(OTHER, epsilon=1, key=key),
        lambda ledger, key: ledger.approve(NAME, NEVER.plan(), by="R", key=key),
        lambda ledger, key: ledger.revoke(NAME, APPROVED.plan().hash, by="R", key=key),
    ],
    ids=["open", "approve", "revoke"],
)
def test_each_decision_needs_a_signature(world: World, decide: Callable[[dpf.Ledger, Path | None], None]) -> None:
    world.approve()
    before = world.path.read_bytes()
    with pytest.raises(dpf.InputError, match=r"needs a signature by board@example\.org or chair"):
        decide(world.ledger, None)
    with pytest.raises(dpf.InputError, match="not the key of a signer"):
        decide(world.ledger, world.key("stranger"))
    assert world.path.read_bytes() == before


def test_a_revocation_that_nobody_signed_makes_the_ledger_unusable(world: World) -> None:
    """Whoever can write the file can always stop runs; that it was they shows."""
    world.approve()
    world.append(None, "revocation", {"data_set": NAME, "plan": APPROVED.plan().hash, "by": "The board"})
    assert not attempt(world, pinned=False)
    with pytest.raises(LedgerTampered, match=r"entry 5 \(revocation\) is not signed"):
        world.ledger.verify()


STRANGE: dict[str, Callable[[Entry], Entry]] = {
    "a key that stands twice": lambda one: attrs.evolve(one, text=one.text.replace('"runs":1', '"runs":500,"runs":1')),
    "an exponent": lambda one: attrs.evolve(one, text=one.text.replace('"runs":1', '"runs":1e0')),
    "a space": lambda one: attrs.evolve(one, text=one.text.replace('"runs":1', '"runs": 1')),
    "an escape that need not be": lambda one: attrs.evolve(one, text=one.text.replace('"runs"', '"r\\u0075ns"')),
    "keys in another order": lambda one: attrs.evolve(one, text=json.dumps(dict(reversed(one.content.items())))),
    "no JSON": lambda one: attrs.evolve(one, text=one.text[:-1]),
    "a field that is unknown": lambda one: one.changed(unlimited=True),
    "true for 1": lambda one: one.changed(runs=True),
    "a kind that is unknown": lambda one: attrs.evolve(one, kind="Approval"),
    "a kind that looks alike": lambda one: attrs.evolve(one, kind="appr\N{CYRILLIC SMALL LETTER O}val"),
    "a sentence for its time": lambda one: attrs.evolve(one, time=f"{one.time} for any number of runs"),
    "no time": lambda one: attrs.evolve(one, time=""),
    "a day that is not": lambda one: attrs.evolve(one, time="2026-02-30T00:00:00Z"),
    "a time in another form": lambda one: attrs.evolve(one, time="2026-2-3T00:00:00Z"),
    "a text in a list": lambda one: attrs.evolve(one, text=f"[{one.text}]"),
}


@pytest.mark.parametrize("signers", [True, False])
@pytest.mark.parametrize("how", STRANGE)
def test_an_entry_has_one_form(world: World, how: str, signers: bool) -> None:
    """An auditor's program reads what dpframework reads."""
    if not signers:
        world.path = world.folder / "b.ledger"
        made = dpf.Ledger.create(world.path)
        made.open(NAME, epsilon=5)
        made.approve(NAME, APPROVED.plan(), by="The board")
    else:
        world.approve()
    *entries, last = world.entries()
    world.write([*entries, last])
    dpf.Ledger(world.path).verify()
    strange = STRANGE[how](last)
    assert strange != last
    world.write([*entries, strange])
    assert not attempt(world, pinned=False)
    with pytest.raises((LedgerTampered, dpf.InputError)):
        dpf.Ledger(world.path).verify()


def test_only_the_first_entry_names_the_ledger(world: World) -> None:
    first, opened = world.entries()
    world.write([first, opened, first.changed(signers=read_signers(world.folder / "strangers"))])
    with pytest.raises(LedgerTampered, match="the first entry says which ledger it is, and no other one does"):
        dpf.Ledger(world.path).records()
    world.write([opened])
    with pytest.raises(LedgerTampered, match="the first entry says which ledger it is"):
        dpf.Ledger(world.path).records()


@pytest.mark.parametrize("entries", [0, -1, True, "1", 1.5, None])
def test_a_pin_notes_how_many_entries_there_are(tmp_path: Path, entries: object) -> None:
    def written(number: object) -> Path:
        form = {"ledger": "a" * 64, "entries": number, "head": "b" * 64}
        (tmp_path / "pin").write_text(json.dumps(form), encoding="utf-8")
        return tmp_path / "pin"

    assert Pin(written(1)).holds_a_ledger
    with pytest.raises(dpf.InputError, match="is not a pin of a ledger"):
        Pin(written(entries))


def test_a_pin_is_needed_where_it_is_named_and_follows_the_ledger(world: World, tmp_path: Path) -> None:
    with pytest.raises(dpf.InputError, match="there is no such pin"):
        Pin(tmp_path / "none")
    (tmp_path / "other").write_text('{"ledger": 1}')
    with pytest.raises(dpf.InputError, match="is not a pin"):
        Pin(tmp_path / "other")
    world.approve()
    noted = json.loads(world.pin.read_text())
    assert noted["entries"] == 4
    dpf.Ledger(world.path).approve(NAME, NEVER.plan(), by="R", key=world.key("board"))  # by somebody without the pin
    world.run()
    assert json.loads(world.pin.read_text())["entries"] == 9
    world.path.unlink()
    with pytest.raises(LedgerTampered, match="is gone"):
        dpf.Ledger.create(world.path, pin=Pin(world.pin))
    assert not world.path.exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "names no signer"),
        ("# nobody\n", "names no signer"),
        ("board\n", "line 1: is not the name and the key"),
        ("ssh-ed25519 AAAA\n", "is not the name and the key"),
        ("* {key}\n", "is not the name and the key"),
        ("!board {key}\n", "is not the name and the key"),
        ("board cert-authority {key}\n", "is not the name and the key"),
        ('board valid-before="20300101" {key}\n', "is not the name and the key"),
        ("b\N{CYRILLIC SMALL LETTER O}ard {key}\n", "is not the name and the key"),
        ("board ssh-ed25519-cert-v01@openssh.com AAAAIHNzaC1lZDI1NTE5LWNlcnQtdjAxQG9wZW5zc2guY29tAAAA\n", "is not the"),
        ("board {key}\nboard {other}\n", "line 2: this name or this key was given before"),
        ("board {key}\nchair {key}\n", "line 2: this name or this key was given before"),
    ],
)
def test_a_file_of_signers_is_names_and_keys(keys: Path, tmp_path: Path, text: str, says: str) -> None:
    public = [" ".join((keys / f"{name}.pub").read_text().split()[:2]) for name in ("board", "chair")]
    path = tmp_path / "signers"
    path.write_text(text.format(key=public[0], other=public[1]))
    with pytest.raises(dpf.InputError, match=says):
        read_signers(path)


def test_signers_are_named_when_a_ledger_is_made_and_changed_by_one_of_them(world: World) -> None:
    board = world.key("board")
    unsigned = world.folder / "b.ledger"
    dpf.Ledger.create(unsigned).open(NAME, epsilon=1)
    with pytest.raises(dpf.InputError, match="is a ledger without signers, and none can be added"):
        dpf.Ledger.create(unsigned, signers=read_signers(world.folder / "signers"))
    with pytest.raises(dpf.InputError, match="has no signers"):
        dpf.Ledger(unsigned).change_signers(by="R", key=board, add=read_signers(world.folder / "strangers"))
    with pytest.raises(dpf.InputError, match="nobody would verify"):
        dpf.Ledger(unsigned).revoke(NAME, approve_in(unsigned), by="R", key=board)
    with pytest.raises(dpf.InputError, match=r"whose signers are board@example.org or chair"):
        dpf.Ledger.create(world.path, signers=read_signers(world.folder / "strangers"))
    for add, remove, says in (
        ({}, [], "keeps at least one"),
        ({}, ["board@example.org", "chair"], "keeps at least one"),
        ({}, ["nobody"], "'nobody' is not a signer"),
        (read_signers(world.folder / "signers"), [], "is a signer of this ledger already"),
    ):
        with pytest.raises(dpf.InputError, match=says):
            world.ledger.change_signers(by="R", key=board, add=add, remove=remove)
    with pytest.raises(dpf.InputError, match="not the key of a signer"):
        world.ledger.change_signers(by="R", key=world.key("stranger"), add=read_signers(world.folder / "strangers"))
    world.ledger.change_signers(by="R", key=board, remove=["chair"])
    assert str(world.ledger.records().signers) == "board@example.org"


def approve_in(path: Path) -> str:
    dpf.Ledger(path).approve(NAME, APPROVED.plan(), by="R")
    return APPROVED.plan().hash


STUDY = """
[data]
path = "people.csv"
schema = "people.schema.toml"
[privacy]
epsilon = 0.5
[[step]]
name = "counts"
miner = "histogram"
epsilon = 0.5
params = { attribute = "ill" }
"""


@pytest.fixture
def commands(keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(shutil.copytree(keys, tmp_path / "office"))
    monkeypatch.chdir(folder)
    SCHEMA.dump("people.schema.toml")
    Path("people.csv").write_text("ill,old\ntrue,false\nfalse,true\n")
    Path("study.toml").write_text(STUDY)
    return folder


def test_the_commands_sign_refuse_and_say_whether_there_are_signers(
    commands: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    on = ["a.ledger", "--data-set", NAME]
    opened = ["ledger", "open", *on, "--epsilon", "2", "--signers", "signers", "--pin", "pin"]
    assert main(opened) == 2
    assert main([*opened, "--key", "stranger"]) == 2
    assert not Path("a.ledger").exists()
    assert not Path("pin").exists()
    assert main([*opened, "--key", "board"]) == 0
    approve = ["ledger", "approve", *on, "study.toml", "--by", "The board"]
    assert main(approve) == 2
    assert main([*approve, "--key", "stranger"]) == 2
    assert main([*approve, "--key", "board", "--pin", "pin"]) == 0
    capsys.readouterr()
    run = ["run", "study.toml", "--ledger", *on, "--pin", "pin", "--out"]
    assert main([*run, "first"]) == 0
    assert "the signers are board@example.org or chair" in capsys.readouterr().out
    assert "signed by board@example.org" in Path("first/report.html").read_text()
    assert main([*run, "second"]) == 1
    for shown in (
        ["ledger", "show", *on],
        ["ledger", "verify", "a.ledger", "--pin", "pin"],
        ["ledger", "signers", "a.ledger"],
    ):
        capsys.readouterr()
        assert main(shown) == 0
        assert "board@example.org" in capsys.readouterr().out
    assert main(["ledger", "show", "a.ledger", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["signers"]) == {"board@example.org", "chair"}
    change = ["ledger", "signers", "a.ledger", "--add", "strangers", "--remove", "chair"]
    assert main(change) == 2
    assert main([*change, "--by", "The board", "--key", "board"]) == 0
    revoke = ["ledger", "revoke", *on, "", "--by", "The board"]
    assert main([*approve, "--key", "stranger"]) == 0
    assert main(revoke) == 2
    assert main([*revoke, "--key", "stranger"]) == 0
    assert main(["ledger", "verify", "a.ledger", "--signers", "signers"]) == 1  # who signs now is not in that file
    assert main([*run[:-3], "--pin", "none", "--out", "third"]) == 2


def test_a_ledger_without_signers_says_so_everywhere(commands: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on, says = ["a.ledger", "--data-set", NAME], "this ledger has no signers"
    assert main(["ledger", "open", *on, "--epsilon", "2"]) == 0
    assert main(["ledger", "approve", *on, "study.toml", "--by", "R"]) == 0
    assert capsys.readouterr().out.count(says) == 2
    for command in (
        ["run", "study.toml", "--out", "out", "--ledger", *on],
        ["ledger", "show", *on],
        ["ledger", "signers", "a.ledger"],
        ["ledger", "verify", "a.ledger"],
        ["report", "study.toml", "--ledger", *on],
    ):
        assert main(command) == 0
        assert says in " ".join(capsys.readouterr().out.split()), command
    assert main(["ledger", "show", "a.ledger", "--out", "page.html"]) == 0
    for page in ("out/report.html", "page.html"):
        assert says in Path(page).read_text().replace("This", "this"), page
    capsys.readouterr()
    assert main(["ledger", "verify", "a.ledger", "--signers", "signers"]) == 1
    assert "it is not signed" in capsys.readouterr().err


def test_a_ledger_that_was_put_back_is_refused_by_the_commands(
    commands: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    on = ["a.ledger", "--data-set", NAME]
    assert main(["ledger", "open", *on, "--epsilon", "2", "--pin", "pin"]) == 0
    assert main(["ledger", "approve", *on, "study.toml", "--by", "R", "--pin", "pin"]) == 0
    shutil.copy("a.ledger", "before")
    assert main(["run", "study.toml", "--out", "first", "--ledger", *on, "--pin", "pin"]) == 0
    shutil.copy("before", "a.ledger")
    for command in (
        ["run", "study.toml", "--out", "second", "--ledger", *on, "--pin", "pin"],
        ["ledger", "verify", "a.ledger", "--pin", "pin"],
        ["ledger", "approve", *on, "study.toml", "--by", "R", "--pin", "pin"],
        ["ledger", "revoke", *on, "", "--by", "R", "--pin", "pin"],
    ):
        assert main(command) == 1
        assert "was replaced by an older copy, cut or rewritten" in capsys.readouterr().err
    assert main(["run", "study.toml", "--out", "second", "--ledger", *on]) == 0  # which nobody sees without a pin
