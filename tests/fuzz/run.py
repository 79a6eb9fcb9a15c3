"""Change files at random, give them to the commands, and see that each ends as it should.

    python tests/fuzz/run.py                              # 20,000 inputs of all kinds
    python tests/fuzz/run.py plan ledger --inputs 500     # 500 of two kinds
    python tests/fuzz/run.py data --seed 3 --keep found   # other inputs; what fails is kept in a folder

An input is a study, schema, plan, ledger, pin, journal, certificate, list of signers, experiment, results, data file,
or one of verifications, of the owner's statements or places, that Hypothesis changes in its tree or in its bytes. It
passes if every command that is given it ends within 10 s of the processor, and 1 GiB of memory more than the process
had, with exit code 0, 1 or 2, without a traceback or a word of a bug, in one line on standard error if that is 2,
without a character that is not seen, and no cell of the data is seen in what it prints or writes; of a journal, if its
run stays charged. The first input of each failure is kept, in a folder in which its commands can be given again. Ctrl-C
ends it with what was counted so far. Batches run in processes that are forked from one that has imported everything.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import functools
import hashlib
import io
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import hypothesis
import typer
from hypothesis import HealthCheck, Phase, strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from bases import Bases, made
from kinds import KINDS, Door
from mutations import SECRET, Draw

from dpframework.cli import main as dpframework
from dpframework.facts.control_character_escapes import printable_lines
from dpframework.ledger import Ledger

LIMIT = 10  # seconds of the processor, for one command
PATIENCE = 300  # seconds by the clock, since other processes may be busy too
MOST_MEMORY = 1 << 30  # bytes, for one command
BATCH = 250
PREFIXES = ("error: ", "refused: ", "warning: ", "stopped after ", "run ", "failed: ", "NOT private: ")
#: What an experiment says last, of cells that failed.
CELLS_FAILED = re.compile(r"\d+ cells? failed; ")


class Hung(BaseException):
    """A command that took too long."""


def given(arguments: tuple[str, ...]) -> tuple[int | str, str, str, float]:
    """Give a command; return its exit code, or what it raised, both streams, and the seconds that it took."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    began, before = time.process_time(), _memory("VmRSS")
    _forget_peak()
    faulthandler.dump_traceback_later(2 * PATIENCE, exit=True)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            code: int | str = dpframework(arguments)
    except Hung:
        code = f"hangs in {' < '.join(frame.name for frame in traceback.extract_tb(sys.exc_info()[2])[-4:])}"
    except BaseException as error:
        code = f"raises {type(error).__name__} at {traceback.extract_tb(error.__traceback__)[-1].name}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
    out, err = (stream.buffer.getvalue().decode("utf-8", "replace") for stream in streams)
    if _memory("VmHWM") - before > MOST_MEMORY and code in (0, 1, 2):
        code = f"takes {(_memory('VmHWM') - before) >> 20} MiB"
    return code, out, err, time.process_time() - began


def _memory(kind: str) -> int:
    """Return a number of /proc/self/status in bytes; 0 where there is none."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{kind}:"):
                return int(line.split()[1]) << 10
    return 0


def _forget_peak() -> None:
    """Let the system measure the most memory from now on."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def problem(door: Door, code: int | str, out: str, err: str) -> str | None:
    """Say what is wrong with how a command ended, if anything is."""
    lines = err.splitlines()
    if code not in (0, 1, 2):
        return f"exit code {code}" if isinstance(code, int) else code
    if "Traceback" in err or "bug here" in err or "Traceback" in out:
        return f"shows a bug: {err.strip()[-300:]}"
    if code == 2 and (not lines or not lines[-1].startswith("error: ")):
        return "exit code 2 without a sentence"
    for line in lines:
        if not line.startswith(PREFIXES) and not CELLS_FAILED.match(line):
            return f"says: {line[:200]}"
        if "\x1b" in line:
            return f"steers the terminal: {line[:200]!r}"
        if len(line) > 2300:
            return f"says too much: {line[:80]}"
    if printable_lines(out) != out:
        unseen = next(line for line in out.split("\n") if printable_lines(line) != line)
        return f"prints what is not seen: {unseen[:200]!a}"
    if door.private and SECRET in out + err:
        return f"shows a cell: {next(line for line in (out + err).splitlines() if SECRET in line)[:200]}"
    if door.private and "new" in door.arguments and Path("new").is_dir():
        for path in Path("new").iterdir():
            if SECRET in path.read_text():
                return f"writes a cell to {path.name}"
    return None


def signature(kind: str, door: Door, found: str) -> str:
    """Return what two failures of one cause have in common, mostly."""
    place = re.search(r"\w+ in \w+\.py, line \d+", found)
    words = place.group() if place else re.sub(r"'[^']*'|\"[^\"]*\"|[\d.e+-]{2,}", "_", found)[:80]
    return f"{kind}: {words}" if place else f"{kind}: {' '.join(door.arguments[:2])}: {words}"


def batch(kind: str, inputs: int, seed: int, bases: Bases, known: set[str], keep: Path) -> dict[str, Any]:
    """Try a number of inputs of one kind; return what was counted, and what failed in another way than is known."""
    draw_input = KINDS[kind][0]
    codes: Counter[str] = Counter()
    seen: set[bytes] = set()
    failures: dict[str, dict[str, str]] = {}
    here = bases.folder.parent / "here"

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=inputs,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        verbosity=hypothesis.Verbosity.quiet,
    )
    @hypothesis.given(st.data())
    def test(data: Any) -> None:
        shutil.rmtree(here, ignore_errors=True)
        shutil.copytree(bases.folder, here)
        os.chdir(here)
        doors = draw_input(Draw(data.draw, data.draw(st.randoms(use_true_random=True))), bases)
        digest = hashlib.sha256(str(doors).encode())
        for path in sorted(here.rglob("*")):
            if path.is_file():
                digest.update(path.read_bytes())
        seen.add(digest.digest())
        for door in doors:
            code, out, err, seconds = given(door.arguments)
            codes[f"x {code}" if isinstance(code, int) else "x another"] += 1
            found = problem(door, code, out, err)
            if found is None and seconds > LIMIT:
                found = "takes too long"
            if found is None and kind == "journal" and Ledger("begun.ledger").data_set("people").left > bases.left:
                found = "a charge is lost"
            if found is not None:
                mark = signature(kind, door, found)
                codes["failures"] += 1
                if mark not in known and mark not in failures:
                    failures[mark] = {
                        "mark": mark,
                        "found": found,
                        "command": " ".join(door.arguments),
                        "err": err[-2000:],
                    }
                    shutil.copytree(here, kept_at(keep, mark), dirs_exist_ok=True)

    test()
    return {"codes": codes, "inputs": len(seen), "failures": list(failures.values())}


def kept_at(keep: Path, mark: str) -> Path:
    """Return the folder that a failure is kept in."""
    return keep / hashlib.sha256(mark.encode()).hexdigest()[:8]


def forked(kind: str, inputs: int, seed: int, bases: Bases, known: set[str], keep: Path) -> dict[str, Any]:
    """Try a batch in a child; a child that dies is a failure too."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.signal(signal.SIGALRM, _hung)
            signal.signal(signal.SIGPROF, _hung)
            limit = _memory("VmSize") + 4 * MOST_MEMORY  # it fails in place of the machine
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            told = batch(kind, inputs, seed, bases, known, keep)
            with os.fdopen(write, "w") as pipe:
                pipe.write(json.dumps(told))
            status = 0
        except KeyboardInterrupt:
            pass
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if text:
        return dict(json.loads(text))
    here = bases.folder.parent / "here"
    shutil.rmtree(keep / "last", ignore_errors=True)
    shutil.copytree(here, keep / "last")
    words = {
        "mark": f"{kind}: died in batch {seed}",
        "found": f"the process died, status {status}",
        "command": "",
        "err": "",
    }
    shutil.copytree(here, kept_at(keep, words["mark"]), dirs_exist_ok=True)
    return {"codes": {}, "inputs": 0, "failures": [words]}


def _hung(*_: object) -> None:
    raise Hung


def warm() -> None:
    """Import what every child needs, which starts no thread, and let typer put its commands together only once."""
    import numba  # noqa: F401
    import opendp.prelude  # noqa: F401
    import polars  # noqa: F401
    import rich.progress  # noqa: F401
    import scipy.stats  # noqa: F401

    import dpframework.lab.experiment.runner
    import dpframework.reports.html  # noqa: F401

    typer.main.get_command = functools.cache(typer.main.get_command)


def prepared(folder: Path) -> Bases:
    """Make the files to start from in a child, since that starts threads; return what is in them."""
    import pickle

    place = folder / "base"
    place.mkdir()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.chdir(place)
            (folder / "bases").write_bytes(pickle.dumps(made(place)))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if status:
        sys.exit("the files to start from could not be made")
    return pickle.loads((folder / "bases").read_bytes())


@attrs.define
class Tally:
    """What was counted of a kind: its inputs, the seconds that they took, its batches, and how its commands ended."""

    wanted: int
    inputs: int = 0
    seconds: float = 0
    batches: int = 0
    codes: Counter[str] = attrs.field(factory=Counter)

    @property
    def open(self) -> bool:
        """Whether more are to be tried; a kind of which every batch dies has an end too."""
        return self.inputs < self.wanted and self.batches < 4 * (self.wanted // BATCH + 3)


def attempt(tallies: dict[str, Tally], seed: int, bases: Bases, known: set[str], keep: Path) -> None:
    """Try batches of every kind in turn until there are as many as are wanted; add the failures to what is known."""
    while any(tally.open for tally in tallies.values()):
        for kind, tally in tallies.items():
            if not tally.open:
                continue
            began = time.monotonic()
            inputs = min(BATCH, tally.wanted - tally.inputs)
            told = forked(kind, inputs, 10_000 * seed + tally.batches, bases, known, keep)
            tally.batches += 1
            tally.inputs += told["inputs"]
            tally.seconds += time.monotonic() - began
            tally.codes.update(told["codes"])
            for failure in told["failures"]:
                known.add(failure["mark"])
                place = kept_at(keep, failure["mark"])
                (place / "failure.txt").write_text("\n".join(failure.values()), encoding="utf-8")
                print(
                    "\n  ".join((f"FAILED {failure['mark']}", failure["command"], failure["found"], str(place))),
                    flush=True,
                )
            print(f"{kind}: {tally.inputs} of {tally.wanted}", file=sys.stderr, flush=True)


def main() -> int:
    """Read the command line, try, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; by default all")
    parser.add_argument("--inputs", type=int, default=20_000, metavar="N", help="how many, of all kinds together")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="another one tries other inputs")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), metavar="FOLDER", help="where failures go")
    asked = parser.parse_args()
    unknown = set(asked.kinds) - set(KINDS)
    if unknown:
        parser.error(f"no kind is named {', '.join(sorted(unknown))}")
    keep = asked.keep.absolute()
    kinds = asked.kinds or list(KINDS)
    shares = sum(KINDS[kind][1] for kind in kinds)
    tallies = {kind: Tally(-(-asked.inputs * KINDS[kind][1] // shares)) for kind in kinds}
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    failures: set[str] = set()
    with tempfile.TemporaryDirectory(dir=where) as name:
        warm()
        bases = prepared(Path(name))
        keep.mkdir(exist_ok=True)
        try:
            attempt(tallies, asked.seed, bases, failures, keep)
        except KeyboardInterrupt:
            print("interrupted; this was tried:")
    for kind, tally in tallies.items():
        codes = ", ".join(f"{number} {code}" for code, number in sorted(tally.codes.items()))
        print(f"{kind}: {tally.inputs} inputs in {tally.seconds:.0f} s; exit codes: {codes}")
    print(f"{sum(tally.inputs for tally in tallies.values())} inputs, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
