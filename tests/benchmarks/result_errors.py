"""Errors asked for, beside the 95 % errors measured, of every case at several sizes: a Markdown table.

Run it as `python tests/benchmarks/result_errors.py --runs 300`. Of 300 runs of one number, the 95 % error is known to
about 8 %; of 3,000, to 3 %. So each ratio has a 95 % interval, and a case is sound if its interval meets [.8, 1.05]. On
the tables of cases marked "easy" the error is smaller than promised: the bound is for the worst rows, as plans say.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from asked_errors import CASES, Measured, measure

SIZES = (300, 3_000, 30_000)
LEAST, MOST = 0.8, 1.05  # of the error asked for


def sound(one: Measured) -> bool:
    """Tell whether the ratio may lie in the range, and for an easy table whether it may lie below its end."""
    low, high = one.ratio_interval
    return low <= MOST and (one.case.easy or high >= LEAST)


def main() -> None:
    """Print the table, a line a case, then how many are sound; end with 1 unless all are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--cases", nargs="+", default=[case.name for case in CASES])
    given = parser.parse_args()
    heads = " | ".join(f"{size:,} rows: epsilon | measured / asked" for size in given.sizes)
    print(f"| asked for: within 2 % | {heads} | sound |")
    print("|---|" + "---|---|" * len(given.sizes) + "---|")
    number = 0
    chosen = [case for case in CASES if case.name in given.cases]
    for case in chosen:
        found = [measure(case, size, given.runs) for size in given.sizes]
        cells = " | ".join(
            f"{float(one.epsilon):.4g} | {one.ratio:.2f} [{one.ratio_interval[0]:.2f}, {one.ratio_interval[1]:.2f}]"
            for one in found
        )
        good = all(map(sound, found))
        number += good
        print(f"| {case.name} | {cells} | {'yes' if good else 'NO'} |", flush=True)
    print(f"\n{number} of {len(chosen)} cases are sound")
    sys.exit(number < len(chosen))


if __name__ == "__main__":
    main()
