"""What the comparison of types at public boundaries costs, as a share of the processor time of a whole study.

    python tests/benchmarks/typecheck_cost.py             # three studies, 20 repetitions each
    python tests/benchmarks/typecheck_cost.py --rounds 5

Each study is made, planned, checked and run again and again in one process, after a first time that is not counted.
Every boundary makes its comparison twice: once with a clock around it and a function that does nothing behind it. What
the clock itself takes is measured beforehand and taken off. The share is that time by the study's whole time, of which
the second comparison is a part. The first comparisons of a process also read annotations and load typeguard: they are
shown by themselves.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

from dpframework.facts import argument_type_checks

COMPARED = argument_type_checks.typechecked
LARGEST = 0.02
_spent = {"nanoseconds": 0, "calls": 0}


def _timed(compare: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(compare)
    def clocked(*args: Any, **kwargs: Any) -> Any:
        start = time.process_time_ns()
        try:
            return compare(*args, **kwargs)
        finally:
            _spent["nanoseconds"] += time.process_time_ns() - start
            _spent["calls"] += 1

    return clocked


def _timed_boundary(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the boundary of a function, which is compared once more with nothing behind it."""

    @functools.wraps(function)
    def nothing(*args: Any, **kwargs: Any) -> None:
        return None

    alone, whole = _timed(COMPARED(nothing)), COMPARED(function)

    @functools.wraps(function)
    def boundary(*args: Any, **kwargs: Any) -> Any:
        alone(*args, **kwargs)
        return whole(*args, **kwargs)

    return boundary


# before anything else of dpframework is loaded, which would have the boundaries already
argument_type_checks.typechecked = _timed_boundary
argument_type_checks.require_field_types = _timed(argument_type_checks.require_field_types)
argument_type_checks.require_argument_types = _timed(argument_type_checks.require_argument_types)

import dpframework as dpf  # noqa: E402
from dpframework.lab.clinic import clinic_table  # noqa: E402


def _counts(table: dpf.Table) -> dpf.Study:
    study = dpf.Study(table.schema, epsilon=1)
    for name in ("sex", "gout"):
        study.add(name, dpf.miner("histogram", epsilon="0.5", attribute=name))
    return study


def _several(table: dpf.Table) -> dpf.Study:
    study = dpf.Study(table.schema, epsilon=3)
    study.add("tree", dpf.miner("dp-id3", epsilon=1, target="type 2 diabetes"))
    study.add("pairs", dpf.miner("serenade-cs", epsilon=1))
    study.add("rows", dpf.miner("count", epsilon=1))
    return study


def _distances(table: dpf.Table) -> dpf.Study:
    study = dpf.Study(table.schema, epsilon=1)
    study.add("distances", dpf.miner("dp-dilca", epsilon=1))
    return study


STUDIES = {
    "two histograms, 100 rows": (_counts, 100),
    "a tree, redescriptions and a count, 5,000 rows": (_several, 5_000),
    "distances, 5,000 rows": (_distances, 5_000),
}


def once(build: Callable[[dpf.Table], dpf.Study], table: dpf.Table, clock: float) -> tuple[float, float, int]:
    """Return the milliseconds of a study without and those of its comparisons, and how many these are."""
    _spent.update(nanoseconds=0, calls=0)
    start = time.process_time_ns()
    study = build(table)
    study.plan().check()
    study.run(table)
    whole, checking = time.process_time_ns() - start, _spent["nanoseconds"]
    return (whole - checking) / 1e6, (checking - clock * _spent["calls"]) / 1e6, _spent["calls"]


def of_the_clock(times: int = 20_000) -> float:
    """Return the nanoseconds that a clock measures of nothing."""
    empty = _timed(lambda: None)
    _spent.update(nanoseconds=0, calls=0)
    for _ in range(times):
        empty()
    return _spent["nanoseconds"] / times


def main(arguments: list[str] | None = None) -> None:
    """Print the table, and say whether every share is within the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args(arguments).rounds
    print(f"{'study':50} {'ms':>8} {'comparisons':>12} {'their ms':>9} {'share':>7} {'first ms':>9}")
    shares, clock = [], of_the_clock()
    for name, (build, rows) in STUDIES.items():
        table = clinic_table(patients=rows, seed=1)
        first = once(build, table, clock)[1]
        found = [once(build, table, clock) for _ in range(rounds)]
        whole, checking = (statistics.median(column) for column in list(zip(*found, strict=True))[:2])
        shares.append(checking / whole)
        print(f"{name:50} {whole:8.2f} {found[0][2]:12} {checking:9.3f} {checking / whole:7.2%} {first:9.2f}")
    print(f"at most {LARGEST:.0%}: {'yes' if max(shares) <= LARGEST else 'no'}")


if __name__ == "__main__":
    main()
