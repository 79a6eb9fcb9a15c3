"""Attack what a study rests on, by name, for as long as you like.

    python tests/attacks/run.py                            # all attacks at their small sizes
    python tests/attacks/run.py draws --draws 10_000_000   # each mechanism's draws beside its probabilities
    python tests/attacks/run.py races copies --rounds 100 --processes 16
    python tests/attacks/run.py resumed --rounds 1000 --seed 7
    python tests/attacks/run.py tightness --miners dp-id3  # how near searches come to claims; all take 12 minutes

Prints a line for each try, and fails if something is wrong. `tests/README.md` says what counts as wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from attacks import draws, runs, tightness

ATTACKS = ("races", "copies", "resumed", "draws", "tightness")  # forks come first, while there are no threads


def tries(name: str, given: argparse.Namespace, folder: Path) -> Iterator[tuple[str, str | None]]:
    """Yield what an attack tries, and what it finds wrong."""
    if name == "draws":
        return draws.problems(given.draws)
    if name == "tightness":
        return tightness.problems(given.miners)
    if name == "resumed":
        return runs.resumed(10 * given.rounds, folder, given.seed)
    attack = runs.races if name == "races" else runs.copies
    return attack(given.rounds, given.processes, folder, given.seed)


def main() -> int:
    """Attack, and return how many tries were wrong, 1 at most."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attacks", nargs="*", help=f"of {', '.join(ATTACKS)}; by default all")
    parser.add_argument("--draws", type=int, default=1_000_000, help="of numbers; a twentieth of choices")
    parser.add_argument("--rounds", type=int, default=10, help="of races and copies; ten times as many resumed runs")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--miners", nargs="+", default=[], help="whose tightness is asked; by default all")
    given = parser.parse_args()
    unknown = set(given.attacks) - set(ATTACKS)
    if unknown:
        parser.error(f"no attack is named {', '.join(sorted(unknown))}")
    failed = False
    for name in [one for one in ATTACKS if one in (given.attacks or ATTACKS)]:
        started, number, wrong = time.monotonic(), 0, 0
        with tempfile.TemporaryDirectory() as folder:
            for line, found in tries(name, given, Path(folder)):
                number, wrong = number + 1, wrong + (found is not None)
                print(f"{line}: {'as it should be' if found is None else 'WRONG: ' + found}", flush=True)
        print(f"{name}: {number} tries, {wrong} wrong, {time.monotonic() - started:.0f} s")
        failed = failed or wrong > 0 or not number
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
