"""Errors asked for, beside the 95 % errors measured, of every case at several sizes: a Markdown table.

Run it as `python tests/benchmarks/result_errors.py --runs 300`. Of 300 runs of one number, the 95 % error is known to
about 8 %; of 3,000, to 3 %.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from asked_errors import CASES, measure

SIZES = (300, 3_000, 30_000)


def main() -> None:
    """Print the table, a line a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    given = parser.parse_args()
    print(
        "| asked for: within 2 % | " + " | ".join(f"{size:,} rows: epsilon | measured / asked" for size in given.sizes),
        "|",
    )
    print("|---|" + "---|---|" * len(given.sizes))
    for case in CASES:
        found = [measure(case, size, given.runs) for size in given.sizes]
        print(
            f"| {case.name} | " + " | ".join(f"{float(one.epsilon):.4g} | {one.ratio:.2f}" for one in found),
            "|",
            flush=True,
        )


if __name__ == "__main__":
    main()
