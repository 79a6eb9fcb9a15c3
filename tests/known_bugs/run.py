"""Look for every published bug and in its honest twin, and write what was found as a page of the documentation.

    python tests/known_bugs/run.py                     # each with the test that finds it
    python tests/known_bugs/run.py --patient vector    # ten times the patience, and the whole `dpframework verify`
    python tests/known_bugs/run.py --write             # and write docs/known-bugs.md

Words choose the bugs whose names hold one of them. It fails if a bug is not found, or something in its twin.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import attrs

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from known_bugs import already, control, noise, sums, vectors  # noqa: E402
from known_bugs.catalogue import KnownBug, Tool  # noqa: E402

GROUPS = {
    "Sensitivities": sums.BUGS,
    "Sparse vectors and noisy maxima": vectors.BUGS,
    "Noise and its claims": noise.BUGS,
    "What is done beside releases": control.BUGS,
}
PAGE = HERE.parents[1] / "docs" / "known-bugs.md"
PATIENCE, REPLAYS = 10, 1_500
COMMANDS = {
    Tool.SENSITIVITY: "`verify`: [sensitivity search](verify.md#the-other-tests)",
    Tool.AUDIT: "`verify`: [replay audit](verify.md#the-replay-audit)",
    Tool.LOSSES: "`verify`: [claims of a mechanism](verify.md#the-other-tests)",
    Tool.SAMPLER: "`verify`: [sampler test](verify.md#the-other-tests)",
    Tool.ENGINE: "[`EngineConformance`](verify.md#in-your-own-tests)",
    Tool.CHECKS: "[`check`](checks.md)",
    Tool.BOUNDING: "[`check_bounding`](verify.md#units-of-several-rows)",
}
WIDTH = 116

HEAD = """\
# Bugs that others have published

Differential privacy is easy to get wrong. This page lists bugs that were published about other programs and papers. We
wrote each bug again as a small plugin: a miner, a query, a mechanism, an engine or a reader. Each plugin has an honest
twin without the bug. dpframework must report each bug in a sentence that names it, and each twin must pass. The tables
say who had the bug, what finds it here, and how many processor seconds that took.

The page is written by `python tests/known_bugs/run.py --write`. The same bugs are in the test suite, in
`tests/verify/test_known_bugs.py`. With `--patient` the script searches ten times as long, and runs the whole
`dpframework verify` on each bug.

The plugins re-create the mistake, not the other program. Several bugs are from an audit of twelve libraries by record
and replay, [arXiv:2602.17454](https://arxiv.org/abs/2602.17454). We had its abstract, its [published
code](https://github.com/ObliviousAI/dp-recorder) and the threads in which its authors reported the bugs, but not the
list of all 13 bugs. Of the six sparse vectors that Lyu, Su and Li compare, four are wrong: algorithms 3 to 6. The
honest twins are their algorithm 1 with the same cut-off, or its numeric version.
"""


@attrs.frozen
class Outcome:
    """A bug, the sentence that names it, what was found in its twin, and processor seconds."""

    bug: KnownBug
    sentence: str | None
    twin: list[str]
    seconds: float

    @property
    def fine(self) -> bool:
        return self.sentence is not None and not self.twin

    def __str__(self) -> str:
        verdict = "ok  " if self.fine else "WRONG"
        return f"{verdict} {self.seconds:6.2f} s  {self.bug.name}: {self.sentence or 'not found'} {self.twin or ''}"


def looked_for(bug: KnownBug, patient: bool) -> Outcome:
    """Look for a bug, and in its twin."""
    patience = PATIENCE if patient else 1
    started = time.process_time()
    found = bug.found(False, patience)
    seconds = time.process_time() - started
    twin = bug.found(True, patience)
    sentence = bug.named(found)
    if patient and bug.example is not None:
        sentence = sentence if bug.verified(False, REPLAYS) else None
        twin += bug.verified(True, REPLAYS)
    return Outcome(bug, sentence, twin, seconds)


def page(outcomes: dict[str, list[Outcome]]) -> Iterator[str]:
    """Yield the lines of the page."""
    yield HEAD
    every = [one for group in outcomes.values() for one in group]
    slowest = max(one.seconds for one in every)
    yield (
        f"{sum(one.sentence is not None for one in every)} of {len(every)} bugs are caught, and "
        f"{sum(not one.twin for one in every)} of {len(every)} twins pass. The slowest bug takes {slowest:.1f} s."
    )
    for group, found in outcomes.items():
        yield f"\n## {group}\n"
        yield "| bug | who had it | published | what finds it | s |"
        yield "| --- | --- | --- | --- | --- |"
        for one in found:
            bug, seconds = one.bug, max(one.seconds, 0.1)
            yield f"| {bug.name} | {bug.had} | {linked(bug.reference)} | {COMMANDS[bug.tool]} | {seconds:.1f} |"
        yield "\nIn the same order, this is reported:\n\n```text"
        yield from (shortened(one.sentence or "not found") for one in found)
        yield "```"
    yield "\n## Planted before\n"
    yield (
        "These published bugs are in `test_bugs_seen_in_outputs.py` or `test_bugs_unseen_in_outputs.py` of "
        "`tests/verify/planted_bugs`.\n"
    )
    yield "| bug | who had it | planted as |\n| --- | --- | --- |"
    yield from (f"| {bug} | {had} | {name} |" for bug, had, name in already.PLANTED)
    yield (
        "\n`tests/mechanisms/test_above_threshold.py` has five wrong versions of the built-in above-threshold"
        " mechanism,\n"
        "and `tests/verify/planted_bugs/test_privacy_units.py` the bugs in bounding people's rows."
    )
    yield "\n## Out of reach\n"
    for bug, had, why in already.OUT_OF_REACH:
        yield f"- **{bug[:1].upper()}{bug[1:]}** ({had}). {why}"


def linked(reference: str) -> str:
    """Return a reference with its addresses as links with a short text."""
    threads = re.sub(r"https://github\.com/[\w-]+/([\w-]+)/(?:issues|pull)/(\d+)", r"[\1 \2](\g<0>)", reference)
    return re.sub(r"arXiv:(\d+\.\d+)", r"[\g<0>](https://arxiv.org/abs/\1)", threads)


def shortened(sentence: str) -> str:
    """Return a sentence that fits on a line."""
    return sentence if len(sentence) <= WIDTH else sentence[: WIDTH - 4].rstrip() + " ..."


def main() -> int:
    """Look for the bugs, and print and write what is found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="of the names of bugs; by default all bugs")
    parser.add_argument("--patient", action="store_true", help="have ten times the patience")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    given = parser.parse_args()
    if given.write and given.words:
        parser.error("--write needs all bugs")
    looked_for(control.BUGS[0], False)  # what is imported or compiled at the first use is no part of the figures
    outcomes: dict[str, list[Outcome]] = {}
    for group, bugs in GROUPS.items():
        for bug in bugs:
            if not given.words or any(word in bug.name for word in given.words):
                outcomes.setdefault(group, []).append(looked_for(bug, given.patient))
                print(outcomes[group][-1], flush=True)
    if given.write:
        PAGE.write_text("\n".join(page(outcomes)) + "\n", encoding="utf-8")
    every = [one for found in outcomes.values() for one in found]
    fine = sum(one.fine for one in every)
    print(f"{fine} of {len(every)} bugs caught in a sentence that names them, with a twin that passes")
    return 0 if fine == len(every) and every else 1


if __name__ == "__main__":
    sys.exit(main())
