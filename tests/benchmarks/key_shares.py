"""How many keys that nobody lists are shown, with which error, beside the optimal rule, PipelineDP and OpenDP.

    python tests/benchmarks/key_shares.py --data FOLDER                            # ours and OpenDP
    python tests/benchmarks/key_shares.py --data FOLDER --peer peers/bin/python    # and PipelineDP, installed there
    python tests/benchmarks/key_shares.py --figure docs/static/keys.svg            # how many rows a key needs

PipelineDP needs an environment of its own: `python -m venv peers && peers/bin/pip install pipeline-dp setuptools`. Each
of its runs is of the same rows, at the same epsilon and delta, each row being a unit. It spends both on the selection
of keys alone (`select_partitions`), or divides them between selection and counts (`aggregate`). Ours gives counts with
the same release, and so does OpenDP's Laplace threshold. That states too small a delta (its issue 2922); here it has
the least threshold whose true delta is no larger than ours. The optimal rule is the recursion of Desfontaines, Voss,
Gipson and Mandayam (2022), written out again here. An error is the mean absolute one of the counts that are shown.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dpframework as dpf
from dpframework.mechanisms.optimal_partition_selection_noise import selection_noise
from dpframework.mechanisms.partition_selection import PartitionSelection

BUDGETS = ((1.0, "1e-6"), (0.3, "1e-6"), (1.0, "1e-9"))
SCHEMA = dpf.Schema([dpf.Open("key")])

PEER = """
import collections, json, random, sys
import pipeline_dp
given = json.load(open(sys.argv[1]))
found = []
for table in given:
    rows = [(n, key) for key, count in table["counts"].items() for n in [0] * count]
    rows = [(number, key) for number, (_, key) in enumerate(rows)]
    for _ in range(table["runs"]):
        extractors = pipeline_dp.DataExtractors(lambda r: r[0], lambda r: r[1], lambda r: 1)
        one = {"shown": 0, "counted": {}}
        for what in ("select", "count"):
            budget = pipeline_dp.NaiveBudgetAccountant(table["epsilon"], table["delta"])
            engine = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend())
            if what == "select":
                kept = engine.select_partitions(
                    rows, pipeline_dp.SelectPartitionsParams(max_partitions_contributed=1), extractors)
            else:
                kept = engine.aggregate(rows, pipeline_dp.AggregateParams(
                    metrics=[pipeline_dp.Metrics.COUNT], noise_kind=pipeline_dp.NoiseKind.LAPLACE,
                    max_partitions_contributed=1, max_contributions_per_partition=1), extractors)
            budget.compute_budgets()
            if what == "select":
                one["shown"] = len(list(kept))
            else:
                one["counted"] = {key: metrics.count for key, metrics in kept}
        found.append({"name": table["name"], **one})
json.dump(found, open(sys.argv[2], "w"))
"""


def real_tables(data: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield columns of real tables: patterns of attributes that nobody would list."""
    adult = pl.read_csv(data / "adult" / "adult.csv")
    names = [name for name in adult.columns if name in ("native-country", "occupation", "education")]
    yield "adult: education, occupation, country", _joined(adult.select(names))
    yield "nltcs: all 16 disabilities", _joined(pl.read_csv(next((data / "nltcs").glob("*.csv"))))
    mushroom = pl.read_csv(data / "mushroom" / "mushroom.csv")
    yield "mushroom: first 12 attributes", _joined(mushroom.select(mushroom.columns[:12]))


def _joined(frame: pl.DataFrame) -> list[str]:
    return frame.select(pl.concat_str(pl.all().cast(pl.String).fill_null("-"), separator="/")).to_series().to_list()


def made_tables(seed: int = 0) -> Iterator[tuple[str, list[str]]]:
    """Yield columns of words by Zipf's law, and of keys with geometric numbers of rows."""
    rng = np.random.default_rng(seed)
    yield "made: Zipf 1.5, 50,000 rows", [f"w{k}" for k in rng.zipf(1.5, 50_000).tolist()]
    sizes = rng.geometric(1 / 20, 2_000)
    yield "made: 2,000 keys of 20 rows on average", [f"k{k}" for k in np.repeat(np.arange(2_000), sizes).tolist()]


def ours(column: Sequence[str], epsilon: float, delta: str, runs: int) -> tuple[float, float]:
    """Return the mean number of keys shown, and the mean error of their counts, over private runs."""
    table, exact = dpf.table_from_columns({"key": column}, SCHEMA), Counter(column)
    shown, errors = [], []
    for _ in range(runs):
        study = dpf.Study(SCHEMA, epsilon=str(epsilon), delta=delta)
        study.add("keys", dpf.miner("keys", attribute="key", epsilon=str(epsilon), delta=delta))
        released = study.run(table)["keys"].released
        shown.append(len(released))
        errors += [abs(count - exact[key]) for key, count in released.items()]
    return float(np.mean(shown)), float(np.mean(errors)) if errors else 0.0


def optimal(column: Sequence[str], epsilon: float, delta: float) -> tuple[float, float]:
    """Return the expected number of keys that the optimal rule shows, and its standard deviation."""
    counts, growth = np.array(list(Counter(column).values())), math.exp(epsilon)
    rule = [0.0]
    while rule[-1] < 1:
        rule.append(min(growth * rule[-1] + delta, 1 - (1 - rule[-1] - delta) / growth, 1.0))
    chances = np.array(rule)[np.minimum(counts, len(rule) - 1)]
    return float(chances.sum()), float(np.sqrt((chances * (1 - chances)).sum()))


def of_opendp(column: Sequence[str], epsilon: float, delta: float, runs: int) -> tuple[float, float]:
    """Return the mean number of keys that OpenDP's Laplace threshold shows, and the mean error of their counts."""
    import opendp.prelude as opendp

    opendp.enable_features("contrib")
    least = next(t for t in itertools.count(1) if math.exp(-epsilon * (t - 1)) / (1 + math.exp(-epsilon)) <= delta)
    domain = opendp.map_domain(opendp.atom_domain(T=str), opendp.atom_domain(T="i64"))
    metric = opendp.l01inf_distance(opendp.absolute_distance(T="i64"))
    show = opendp.m.make_laplace_threshold(domain, metric, scale=1 / epsilon, threshold=least)
    exact = dict(Counter(column))
    released = [show(exact) for _ in range(runs)]
    errors = [abs(count - exact[key]) for one in released for key, count in one.items()]
    return float(np.mean([len(one) for one in released])), float(np.mean(errors)) if errors else math.nan


def of_peer(python: str, asked: list[dict[str, object]]) -> dict[str, list[dict[str, Any]]]:
    """Return what PipelineDP shows in another environment."""
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder, "given.json"), Path(folder, "found.json")
        given.write_text(json.dumps(asked))
        Path(folder, "peer.py").write_text(PEER)
        subprocess.run([python, str(Path(folder, "peer.py")), str(given), str(found)], check=True)
        runs: dict[str, list[dict[str, Any]]] = {}
        for one in json.loads(found.read_text()):
            runs.setdefault(str(one["name"]), []).append(one)
        return runs


HEADS = (
    "table", "keys", "epsilon, delta", "optimal rule", "ours", "ours / optimal", "OpenDP", "PipelineDP, keys alone",
    "PipelineDP, with counts", "error of ours", "of OpenDP", "of PipelineDP",
)  # fmt: skip


def compare(data: Path, runs: int, peer: str | None, peer_runs: int) -> None:
    """Print a row for each table and budget."""
    columns = {name: [key for key in column if key.strip()] for name, column in (*real_tables(data), *made_tables())}
    asked: list[dict[str, object]] = [
        {"name": f"{name}|{epsilon}|{delta}", "counts": Counter(column), "epsilon": epsilon, "delta": float(delta),
         "runs": peer_runs}
        for name, column in columns.items() for epsilon, delta in BUDGETS
    ]  # fmt: skip
    theirs = of_peer(peer, asked) if peer else {}
    print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}", flush=True)
    for (name, column), (epsilon, delta) in itertools.product(columns.items(), BUDGETS):
        best, spread = optimal(column, epsilon, float(delta))
        shown, error = ours(column, epsilon, delta, runs)
        other, off = of_opendp(column, epsilon, float(delta), runs)
        alone, counted, theirs_off = _of_runs(theirs.get(f"{name}|{epsilon}|{delta}", []), Counter(column))
        ratio = f"{shown / best:.4f} ± {2 * spread / best / np.sqrt(runs):.4f}"
        numbers = (f"{best:.1f}", f"{shown:.1f}", ratio, f"{other:.1f}", f"{alone:.1f}", f"{counted:.1f}")
        errors = (f"{error:.2f}", f"{off:.2f}", f"{theirs_off:.2f}")
        print(
            f"| {' | '.join((name, f'{len(set(column)):,}', f'{epsilon:g}, {delta}', *numbers, *errors))} |", flush=True
        )


def _of_runs(found: Sequence[Mapping[str, Any]], exact: Counter[str]) -> tuple[float, float, float]:
    """Return PipelineDP's mean numbers of keys, alone and with counts, and the mean error of these."""
    if not found:
        return math.nan, math.nan, math.nan
    errors = [abs(count - exact[key]) for one in found for key, count in one["counted"].items()]
    alone, counted = ([one["shown"] for one in found], [len(one["counted"]) for one in found])
    return float(np.mean(alone)), float(np.mean(counted)), float(np.mean(errors)) if errors else math.nan


def draw(path: Path) -> None:
    """Draw the probability that a key is shown, by its rows."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    mpl.rcParams["svg.hashsalt"] = "keys"
    figure, axes = pyplot.subplots(figsize=(7, 3.2), layout="constrained")
    for (epsilon, delta), colour in zip(
        (("1", "1e-6"), ("0.3", "1e-6"), ("0.1", "1e-6")), ("#0b5394", "#b45f06", "#38761d"), strict=True
    ):
        step = dpf.step("keys", dpf.queries.Keys("key"), PartitionSelection(epsilon, delta))
        study = dpf.Study(SCHEMA, epsilon=epsilon, delta=delta)
        study.add_plan("keys", step)
        calibration = study.plan().calibration(step)
        assert calibration is not None
        noise, shows = (
            selection_noise(Fraction(epsilon), Fraction(delta)),
            PartitionSelection.cell_visibility(calibration),
        )
        rows = np.arange(0, 230)
        axes.step(
            rows,
            noise.shown(rows),
            where="mid",
            color=colour,
            label=f"epsilon {epsilon}: half at {shows.half}, always from {shows.always}",
        )
        axes.plot([shows.half], noise.shown(np.array([shows.half])), "o", color=colour, markersize=4)
    axes.set(xlabel="rows that have the key", ylabel="probability that it is shown", ylim=(-0.02, 1.02), xlim=(0, 229))
    axes.legend(frameon=False, loc="lower right", title=f"delta {delta}")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, help="the folder with adult/adult.csv, nltcs/nltcs.csv and mushroom/mushroom.csv"
    )
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--peer", help="the Python of an environment with pipeline-dp")
    parser.add_argument("--peer-runs", type=int, default=3)
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    if arguments.figure is not None:
        draw(arguments.figure)
        sys.exit()
    if arguments.data is None:
        parser.error("give --data or --figure")
    compare(arguments.data, arguments.runs, arguments.peer, arguments.peer_runs)
