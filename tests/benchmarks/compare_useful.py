"""What redescription miners are worth to a reader: how many useful ones a run gives, and whether what it says is right.

    python tests/benchmarks/compare_useful.py run species teeth clinic --out useful.jsonl
    python tests/benchmarks/compare_useful.py run --views mammal_like_L.csv mammal_like_R.csv --out useful.jsonl
    python tests/benchmarks/compare_useful.py run species --methods alt-mcmc --given '{"starts": 1}' --out useful.jsonl
    python tests/benchmarks/compare_useful.py show useful.jsonl

`run` appends a line for each miner and epsilon as soon as it is done, and `show` prints them as tables in Markdown.
*Useful* is what `dpframework.lab.evaluation.redescription_quality` calls so, and `rare` those of them that hold for
fewer than 6 % of the rows; `support` is the median of exact supports. Runs are seeded, add-or-remove-one, on 16 bins;
with `--delta`, every miner gets the largest epsilon whose total under zCDP is the one named. Greedy mining and
CARTwheels are not private: they are there to compare with.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from compare_redescriptions import CartWheels
from dpframework_greedy import greedy_without_privacy
from dpframework_trees.redescription_extraction import Constraints
from redescription_tasks import TASKS, default_data, task, two_view_table

import dpframework as dpf
from dpframework.lab.evaluation import exact_counts, redescription_quality
from dpframework.lab.evaluation.exact_redescription_quality import SIGNIFICANT
from dpframework.redescriptions import Redescription, Redescriptions

EPSILONS = ("0.1", "0.3", "1", "3", "10", "100")
RARE = 0.06  # of the rows: useful redescriptions that hold for fewer are counted apart
ALLOWED = ("mcmc-converged",)
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "matched-trees": ("matched-trees", {}),
    "serenade-es": ("serenade-es", {}),
    "serenade-cs": ("serenade-cs", {}),
    "alt-mcmc": ("alt-mcmc", {}),
    "alt-expm": ("alt-expm", {}),
    "mcmc-tree-pair": ("mcmc-tree-pair", {}),
    "serenade-es, published score": ("serenade-es", {"score": "logistic"}),
}


def supports(table: dpf.Table) -> dict[str, int]:
    """Return the bounds on supports of a score that needs them: a tenth and seven tenths of the rows."""
    rows = table.codes.shape[1]
    return {"min_support": rows // 10, "max_support": 7 * rows // 10}


def greedy(table: dpf.Table) -> list[Redescription]:
    """Return what greedy mining without privacy finds."""
    bounds = supports(table)
    least, most = bounds["min_support"], bounds["max_support"]
    return list(greedy_without_privacy(table, min_support=least, max_support=most))


def wheels(table: dpf.Table) -> list[Redescription]:
    """Return what CARTwheels finds from twenty starts."""
    grown = CartWheels(table)
    constraints = Constraints(min_support=supports(table)["min_support"] // 5)
    found = grown.mined(grown.best_starts(20), 2, constraints)
    return sorted(found, key=lambda one: -one.jaccard)


NOT_PRIVATE: dict[str, Callable[[dpf.Table], list[Redescription]]] = {
    "greedy, not private": greedy,
    "CARTwheels, not private": wheels,
}


def study_of(
    table: dpf.Table, name: str, given: dict[str, Any], epsilon: str, total: Any = None, delta: str = "0"
) -> dpf.Study:
    """Return a study of one miner; its total is the miner's epsilon unless another is given."""
    more = supports(table) if given.get("score") == "logistic" else {}
    study = dpf.Study(table.schema, epsilon=total or epsilon, delta=delta, allow=ALLOWED)
    study.add("found", dpf.miner(name, epsilon=epsilon, **given, **more))
    return study


def studied(table: dpf.Table, name: str, given: dict[str, Any], epsilon: str, delta: str) -> dpf.Study:
    """Return the study whose total is epsilon; with delta, that of the largest miner's epsilon that fits."""
    if delta == "0":
        return study_of(table, name, given, epsilon)
    low, high = float(epsilon), 100 * float(epsilon)
    for _ in range(16):
        middle = round((low * high) ** 0.5, 4)
        total = study_of(table, name, given, str(middle), 10**6, delta).plan().total().epsilon
        fits = total is not None and total <= dpf.facts.exact(epsilon)
        low, high = (middle, high) if fits else (low, middle)
    return study_of(table, name, given, f"{low:g}", epsilon, delta)


@attrs.frozen
class Runs:
    """What the runs of one miner found, and what of it was true."""

    found: list[Sequence[Redescription]]
    table: dpf.Table
    exact: list[tuple[Redescription, Redescription]] = attrs.field(init=False)

    @exact.default
    def _counted(self) -> list[tuple[Redescription, Redescription]]:
        """Return each redescription of all runs with the one of exact counts."""
        return [pair for one in self.found for pair in zip(one, exact_counts(one, self.table), strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Return the measures; medians and shares are over all redescriptions of all runs."""
        qualities = [redescription_quality(one, self.table) for one in self.found]
        true, noisy, p = (
            np.concatenate([getattr(quality, name) for quality in qualities]) for name in ("true", "noisy", "p_values")
        )
        stars = np.concatenate([_stars(one) for one in self.found])
        support = np.array([exact.both.value for _, exact in self.exact])
        rare = np.concatenate([quality.useful for quality in qualities]) & (support < RARE * self.table.codes.shape[1])
        some = len(true) > 0
        return {
            "runs": len(self.found),
            "useful": float(np.mean([quality.useful.sum() for quality in qualities])),
            "different": float(np.mean([quality.different.sum() for quality in qualities])),
            "empty": float(np.mean(np.concatenate([quality.nothing for quality in qualities]) > 0)) if some else None,
            "rare": float(rare.sum()) / len(self.found),
            "support": float(np.median(support)) if some else None,
            "shown": len(true) / len(self.found),
            "none": float(np.mean([len(one) == 0 for one in self.found])),
            "jaccard": float(np.median(true)) if some else None,
            "error": float(np.median(np.abs(true - noisy))) if some else None,
            "significant": float(np.mean(p <= SIGNIFICANT)) if some else None,
            "coverage": self.coverage(lambda one: one) if some else None,
            "coverage_of_supports": self.coverage(lambda one: one, of="support") if some else None,
            "coverage_unadjusted": self.coverage(lambda one: attrs.evolve(one, shown_from=0.0)) if some else None,
            "stars": float(stars.sum()) / len(self.found),
            "wrong_stars": int((stars & (p > SIGNIFICANT)).sum()),
        }

    def coverage(self, read: Callable[[Redescription], Redescription], of: str = "jaccard") -> float:
        """Return the share of intervals that hold the exact index, or support."""
        held = [
            low <= (exact.jaccard if of == "jaccard" else exact.both.value) <= high
            for one, exact in self.exact
            for low, high in [getattr(read(one), f"{of}_interval")()]
        ]
        return float(np.mean(held))


def _stars(found: Sequence[Redescription]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    marks = found.starred if isinstance(found, Redescriptions) else [False] * len(found)
    return np.array(list(marks), dtype=np.bool_)


def line(data: str, table: dpf.Table, method: str, epsilon: str, given: argparse.Namespace) -> dict[str, Any]:
    """Run one miner, and return its line."""
    start = time.process_time()
    delta = given.delta
    if method in NOT_PRIVATE:
        found: list[Any] = [NOT_PRIVATE[method](table)]
    else:
        name, parameters = METHODS[method]
        study = studied(table, name, parameters | given.given, epsilon, delta)
        found = [study.run(table, seed=seed)["found"] for seed in range(given.runs)]
        method = ", ".join([method, *(f"{key} {value}" for key, value in given.given.items())])
    seconds = (time.process_time() - start) / len(found)
    measured = Runs(found, table).to_dict()
    return {"data": data, "method": method, "epsilon": epsilon, "delta": delta, **measured, "seconds": seconds}


def tables(given: argparse.Namespace) -> Iterator[tuple[str, dpf.Table]]:
    """Yield the tables that the command line names."""
    if given.views:
        yield given.views[0].stem.removesuffix("_L"), two_view_table(*given.views)
    for name in given.tasks:
        yield name, task(name, given.data)


def run(given: argparse.Namespace) -> None:
    """Append a line for each miner and epsilon."""
    for data, table in tables(given):
        for method in given.methods:
            for epsilon in ("",) if method in NOT_PRIVATE else given.epsilon:
                made = line(data, table, method, epsilon, given)
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(made) + "\n")


def cells(made: dict[str, Any]) -> str:
    """Return useful, different (shown) / median true index / median error / coverage in percent."""
    some = f"{made['useful']:.1f}, {made['different']:.1f} ({made['shown']:.1f})"
    if made["jaccard"] is None:
        return some
    private = f" / {made['error']:.3f} / {100 * made['coverage']:.0f}" if made["epsilon"] else ""
    return f"{some} / {made['jaccard']:.2f}{private}"


def show(given: argparse.Namespace) -> None:
    """Print a table for each data set, and what holds for all."""
    lines = [json.loads(text) for text in given.out.read_text(encoding="utf-8").splitlines()]
    for data in dict.fromkeys(made["data"] for made in lines):
        here = [made for made in lines if made["data"] == data]
        epsilons = [one for one in EPSILONS if any(made["epsilon"] == one for made in here)]
        print(f"\n| {data} | epsilon " + " | ".join(epsilons) + " |\n" + "|---" * (len(epsilons) + 1) + "|")
        for method, delta in dict.fromkeys((made["method"], made["delta"]) for made in here):
            found = {m["epsilon"]: cells(m) for m in here if (m["method"], m["delta"]) == (method, delta)}
            name = method if delta == "0" or "" in found else f"{method}, delta {delta}"
            of_all = dict.fromkeys(epsilons, "") | {epsilons[0]: found.get("", "")}
            print(f"| {name} | " + " | ".join(found.get(one, of_all[one]) for one in epsilons) + " |")
    stars, wrong = sum(made["stars"] * made["runs"] for made in lines), sum(made["wrong_stars"] for made in lines)
    print(f"\n{stars:.0f} stars, {wrong} of them not significant on the exact counts")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runner, printer = commands.add_parser("run"), commands.add_parser("show")
    methods = [*METHODS, *NOT_PRIVATE]
    runner.add_argument("tasks", nargs="*", help="data sets, of " + ", ".join(TASKS))
    runner.add_argument("--views", nargs=2, type=Path, metavar=("LEFT", "RIGHT"), help="two CSV files, too")
    runner.add_argument("--data", type=Path, default=default_data())
    runner.add_argument("--runs", type=int, default=10)
    runner.add_argument("--epsilon", nargs="+", default=EPSILONS[:-1])
    runner.add_argument("--delta", default="0")
    runner.add_argument("--given", type=json.loads, default={}, help="parameters of all of these miners, as JSON")
    runner.add_argument("--methods", nargs="+", default=methods, choices=methods)
    runner.add_argument("--out", type=Path, required=True)
    runner.set_defaults(call=run)
    printer.add_argument("out", type=Path)
    printer.set_defaults(call=show)
    given = parser.parse_args()
    given.call(given)


if __name__ == "__main__":
    main()
