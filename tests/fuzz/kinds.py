"""The kinds of input: how each is drawn and written, and the commands that are given it."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
from bases import STUDIES, Bases, csv_of, people
from mutations import SECRET, Draw, broken, changed, changed_cells, json_of, text_of, toml_of

from dpframework.ledger.entry_hash_chain import _OBJECTS, APPLICATION, FORMAT, START, hash_entry
from dpframework.ledger.journal_key_file import key_place
from dpframework.ledger.release_journal import seal
from dpframework.plan.plan import hash_of


@attrs.frozen
class Door:
    """A command that is given what was changed.

    Attributes
    ----------
    arguments
        Its words.
    private
        Whether nothing of a row may be seen in what it prints and writes.
    """

    arguments: tuple[str, ...]
    private: bool = True


def door(*arguments: str, private: bool = True) -> Door:
    return Door(arguments, private)


ON = ("--data-set", "people")
RUN_IN_LEDGER = door("run", "trees.toml", "--out", "out", "--ledger", "begun.ledger", *ON)


def _now_and_then(draw: Draw) -> bool:
    return draw.once_in(4)


def _either(draw: Draw, whole: bytes, write: Callable[[Any], bytes], form: Any) -> bytes:
    """Return a file whose tree is changed, or, one in four times, whose bytes are."""
    return broken(draw, whole) if draw.once_in(4) else write(changed(draw, form))


def _drawing(draw: Draw, subject: str) -> Door:
    return door("plan", subject, "--format", draw.choice(("tree", "mermaid", "dot", "html", "json")))


def _reporting(draw: Draw, subject: str) -> Door:
    return door("report", subject, "--format", draw.choice(("terminal", "md", "html", "csv", "json")))


def study(draw: Draw, bases: Bases) -> list[Door]:
    name = draw.choice(sorted(STUDIES))
    Path("study.toml").write_bytes(_either(draw, STUDIES[name].encode(), toml_of, bases.studies[name]))
    doors = [door("check", "study.toml"), _drawing(draw, "study.toml"), _reporting(draw, "study.toml")]
    if _now_and_then(draw):
        doors.append(door("epsilon", "study.toml", "ages", "--within", "5 %", "--rows", "100"))
    if _now_and_then(draw):
        doors.append(door("run", "study.toml", "--out", "new"))
    if _now_and_then(draw):
        doors.append(door("plan", f"{name}.json", "--diff", "study.toml"))
    return doors


def schema(draw: Draw, bases: Bases) -> list[Door]:
    whole = Path("people.schema.toml").read_bytes()
    Path("people.schema.toml").write_bytes(_either(draw, whole, toml_of, bases.schema))
    name = draw.choice(sorted(STUDIES))
    doors = [door("schema", "show", "people.schema.toml"), door("check", f"{name}.toml")]
    if _now_and_then(draw):
        doors.append(door("run", f"{name}.toml", "--out", "new"))
    if _now_and_then(draw):
        doors.append(door("schema", "check", "people.csv", "people.schema.toml", private=False))
    return doors


def _hashed(content: bytes, named: str = "hash") -> bytes:
    """Let the hash of a plan or certificate fit what was changed, if it is still JSON that can be written."""
    try:
        form = json.loads(content)
        form[named] = hash_of({key: value for key, value in form.items() if key != named})
        return json.dumps(form).encode()
    except Exception:  # whatever a strange form does here, the doors are to bear it
        return content


def plan(draw: Draw, bases: Bases) -> list[Door]:
    name = draw.choice(sorted(STUDIES))
    content = _either(draw, Path(f"{name}.json").read_bytes(), json_of, bases.plans[name])
    Path("plan.json").write_bytes(content if draw.once_in(4) else _hashed(content))
    doors = [door("check", "plan.json"), _drawing(draw, "plan.json"), _reporting(draw, "plan.json")]
    if _now_and_then(draw):
        pair = draw.choice((("plan.json", f"{name}.json"), (f"{name}.json", "plan.json")))
        doors.append(door("plan", pair[0], "--diff", pair[1]))
    if _now_and_then(draw):
        doors.append(door("ledger", "approve", "used.ledger", "plan.json", *ON, "--by", "me"))
    return doors


def _chained(path: Path, entries: list[tuple[str, str]]) -> None:
    """Write a ledger whose entries hold any text at all, and whose hashes fit."""
    path.unlink()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    for text in (*_OBJECTS, f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {FORMAT}"):
        connection.execute(text)
    previous, time = START.hash, "2026-01-01T00:00:00Z"
    for number, (kind, content) in enumerate(entries, start=1):
        now = hash_entry(previous, number, time, kind, content)
        connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", (number, time, kind, content, previous, now))
        previous = now
    connection.close()


def ledger(draw: Draw, bases: Bases) -> list[Door]:
    path = Path("used.ledger")
    if draw.once_in(4):
        path.write_bytes(broken(draw, path.read_bytes()))
    else:
        kinds = [kind for kind, _ in bases.entries]
        texts = [text_of(content, toml=False) for _, content in bases.entries]
        at = draw.upto(len(kinds) - 1)
        how = draw.choice(("content", "content", "content", "kind", "drop", "again", "move"))
        if how == "content":
            texts[at] = text_of(changed(draw, bases.entries[at][1]), toml=False)
        elif how == "kind":
            kinds[at] = draw.choice([*kinds, "x", ""])
        pairs = list(zip(kinds, texts, strict=True))
        if how == "drop":
            del pairs[at]
        elif how == "again":
            pairs.insert(draw.upto(len(pairs)), pairs[at])
        elif how == "move":
            pairs.insert(draw.upto(len(pairs) - 1), pairs.pop(at))
        _chained(path, pairs)
    on = ("used.ledger", *ON)
    doors = [
        door("ledger", "show", "used.ledger"),
        door("ledger", "show", *on),
        door("ledger", "verify", "used.ledger"),
    ]
    if _now_and_then(draw):
        doors.append(door("run", "trees.toml", "--out", "new", "--ledger", *on))
    if _now_and_then(draw):
        doors.append(door("ledger", "show", *on, "--out", draw.choice(("a.html", "a.csv", "a.json"))))
    if _now_and_then(draw):
        doors.append(door("ledger", "verify", "used.ledger", "--pin", "pin.json"))
    if _now_and_then(draw):
        doors.append(door("ledger", "approve", "used.ledger", "trees.toml", *ON, "--by", "me"))
    return doors


def sealed(connection: sqlite3.Connection, table: str, row: list[object]) -> str:
    """Return the seal of a row as whoever can read the key would write it: what is behind the seal is tried too."""
    key = bytes.fromhex(key_place(Path("begun.ledger")).read_text())
    runs = () if table == "owner" else next(connection.execute("SELECT run FROM owner"))
    return seal(key, table, *runs, *row)


def journal(draw: Draw, bases: Bases) -> list[Door]:
    path = Path(".out.unfinished")
    if draw.once_in(3):
        path.write_bytes(broken(draw, path.read_bytes()))
        return [RUN_IN_LEDGER, door("ledger", "verify", "begun.ledger")]
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    table = draw.choice(("owner", "release"))
    rows = [list(row) for row in connection.execute(f"SELECT * FROM {table}")]
    connection.execute(f"DELETE FROM {table}")
    how = draw.choice(("change", "change", "change", "drop", "again"))
    at = draw.upto(len(rows) - 1)
    if how == "change":
        row, column = rows[at], draw.upto(len(rows[at]) - 1)
        if table == "release" and row[column] == row[3] and draw.once_in(2):
            row[column] = text_of(changed(draw, {"output": json.loads(row[3])}).get("output"), toml=False)
        else:
            row[column] = draw.scalar()
        if column + 1 < len(row) and draw.once_in(2):
            row[-1] = sealed(connection, table, row[:-1])
    elif how == "drop":
        del rows[at]
    else:
        rows.append(list(rows[at]))
    for number, row in enumerate(rows):
        if how == "again" and table == "release":
            row[0] = number + 1
        values = [value if isinstance(value, int | float | None) else str(value) for value in row]
        try:
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)
        except (sqlite3.Error, OverflowError, UnicodeError):
            continue  # SQLite cannot hold it: the row is gone
    connection.close()
    return [RUN_IN_LEDGER, door("ledger", "verify", "begun.ledger")]


def results(draw: Draw, bases: Bases) -> list[Door]:
    whole = Path("ran/results.json").read_bytes()
    Path("ran/results.json").write_bytes(_either(draw, whole, json_of, bases.results))
    return [_reporting(draw, "ran"), door("ledger", "verify", "used.ledger", "--results", "ran")]


def verified(draw: Draw, bases: Bases) -> list[Door]:
    Path("verified.json").write_bytes(_either(draw, Path("verified.json").read_bytes(), json_of, bases.verified))
    doors = [door("check", f"{draw.choice(('units', 'trees'))}.toml", "--verified", "verified.json")]
    if _now_and_then(draw):
        doors.append(door("ledger", "approve", "used.ledger", "trees.toml", *ON, "--by", "me", *doors[0].arguments[2:]))
    return doors


def pin(draw: Draw, bases: Bases) -> list[Door]:
    Path("pin.json").write_bytes(_either(draw, Path("pin.json").read_bytes(), json_of, bases.pin))
    doors = [door("ledger", "verify", "used.ledger", "--pin", "pin.json")]
    if _now_and_then(draw):
        doors.append(door("run", "trees.toml", "--out", "new", "--ledger", "used.ledger", *ON, "--pin", "pin.json"))
    return doors


def places(draw: Draw, bases: Bases) -> list[Door]:
    """The owner's configuration, and a study that names its entries."""
    form = {"data": {"mine": {"path": str(Path.cwd())}}, "engine": {"quick": {"engine": "threads"}}}
    path = Path("places.toml").absolute()
    path.write_bytes(_either(draw, toml_of(form), toml_of, form))
    path.chmod(0o600)
    os.environ["DPFRAMEWORK_PLACES"] = str(path)
    text = Path("trees.toml").read_text().replace("[data]", '[data]\nplace = "mine"')
    Path("study.toml").write_text(f'engine = "quick"\n{text}')
    doors = [door("check", "study.toml"), _drawing(draw, "study.toml")]
    if _now_and_then(draw):
        doors.append(door("run", "study.toml", "--out", "new"))
    return doors


def certificate(draw: Draw, bases: Bases) -> list[Door]:
    path = Path("units.proof.json")
    content = _either(draw, path.read_bytes(), json_of, bases.certificate)
    path.write_bytes(content if draw.once_in(4) else _hashed(content, "sha256"))
    return [door("audit-proof", "units.toml")]


def statements(draw: Draw, bases: Bases) -> list[Door]:
    path = Path("owner.toml")
    path.write_bytes(_either(draw, path.read_bytes(), toml_of, bases.statements))
    said = ("--owner", "owner.toml", "--format", draw.choice(("terminal", "md", "html")))
    doors = [door("report", "units.toml", "--dossier", *said)]
    if _now_and_then(draw):
        doors.append(door("report", "ran", "--dossier", *said, "--ledger", "used.ledger", *ON))
    if _now_and_then(draw):
        doors.append(door("report", "units.toml", "--registry", *said[:2]))
    return doors


def signers(draw: Draw, bases: Bases) -> list[Door]:
    path = Path("signers.txt")
    path.write_bytes(broken(draw, path.read_bytes()))
    opened = ("new.ledger", *ON, "--epsilon", "1", "--key", draw.choice(("signing.key", "signing.key.pub")))
    return [
        door("ledger", "open", *opened, "--signers", "signers.txt"),
        door("ledger", "verify", "used.ledger", "--signers", "signers.txt"),
    ]


def experiment(draw: Draw, bases: Bases) -> list[Door]:
    whole = Path("experiment.toml").read_bytes()
    Path("experiment.toml").write_bytes(_either(draw, whole, toml_of, bases.experiment))
    return [door("experiment", "experiment.toml", "--jobs", "1", "--repetitions", "1", private=False)]


def data(draw: Draw, bases: Bases) -> list[Door]:
    rows = changed_cells(draw, people())
    text = csv_of(rows).encode("utf-8", "surrogatepass")
    if draw.once_in(3):
        text = broken(draw, text, more=[SECRET.encode()])
    name = draw.choice(("trees", "distances", "redescriptions", "units"))
    if name == "redescriptions":
        Path(draw.choice(("left.csv", "right.csv"))).write_bytes(text)
    else:
        Path("people.csv").write_bytes(text)
    doors = [door("run", f"{name}.toml", "--out", "new")]
    if _now_and_then(draw):
        doors.append(door("schema", "check", "people.csv", "people.schema.toml", private=False))
    if _now_and_then(draw):
        doors.append(door("schema", "infer", "people.csv", private=False))
    return doors


def parquet(draw: Draw, bases: Bases) -> list[Door]:
    import polars as pl

    columns = {name: [row[k] for row in people()[1:]] for k, name in enumerate(people()[0])}
    frame = pl.DataFrame(columns)
    kinds = (
        pl.lit(SECRET),
        pl.lit(SECRET.encode()),
        pl.lit(1),
        pl.lit(float("nan")),
        pl.lit(True),
        pl.lit(None),
        pl.lit(2**63),
        pl.date(2026, 1, 1),
        pl.datetime(2026, 1, 1),
        pl.duration(days=1),
        pl.lit("1.50").cast(pl.Decimal(10, 2)),
        pl.lit(SECRET).cast(pl.Categorical),
        pl.concat_list(pl.lit(SECRET)),
        pl.struct(pl.lit(SECRET).alias("a")),
        pl.lit("1").cast(pl.Int64),
    )
    for _ in range(draw.upto(3)):
        name = draw.choice(frame.columns)
        first = pl.int_range(pl.len()) < draw.upto(24)
        value = kinds[draw.upto(len(kinds) - 1)]
        try:
            frame = frame.with_columns(pl.when(first).then(value).otherwise(None).alias(name))
        except pl.exceptions.PolarsError:
            frame = frame.drop(name)
    path = Path("people.parquet")
    frame.write_parquet(path)
    if draw.once_in(2):
        path.write_bytes(broken(draw, path.read_bytes()))
    study = Path("trees.toml")
    study.write_text(study.read_text().replace("people.csv", "people.parquet"))
    doors = [door("run", "trees.toml", "--out", "new")]
    if _now_and_then(draw):
        doors.append(door("schema", "check", "people.parquet", "people.schema.toml", private=False))
    if _now_and_then(draw):
        doors.append(door("schema", "infer", "people.parquet", private=False))
    return doors


#: Each kind, and its share of all inputs.
KINDS: dict[str, tuple[Callable[[Draw, Bases], list[Door]], int]] = {
    "study": (study, 4),
    "schema": (schema, 3),
    "plan": (plan, 4),
    "ledger": (ledger, 3),
    "journal": (journal, 1),
    "results": (results, 1),
    "verified": (verified, 1),
    "pin": (pin, 1),
    "places": (places, 1),
    "certificate": (certificate, 1),
    "statements": (statements, 1),
    "signers": (signers, 1),
    "experiment": (experiment, 1),
    "data": (data, 2),
    "parquet": (parquet, 1),
}
