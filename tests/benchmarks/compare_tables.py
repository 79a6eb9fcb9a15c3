"""How near synthetic tables come to a table: not private, since it looks at the exact rows.

    python tests/benchmarks/compare_tables.py run --peer PYTHON private-pgm --out tables.jsonl
    python tests/benchmarks/compare_tables.py run --tables adult nltcs --methods auto-zcdp --out tables.jsonl
    python tests/benchmarks/compare_tables.py run --tables intrusions network-40 --seeds 2 --out unseen.jsonl
    python tests/benchmarks/compare_tables.py show tables.jsonl  # or page: the table of docs/tables.md

For each table, epsilon, method and seed: rows are divided into four fifths that the method sees, and a fifth for tests.
Measured are the total variation of all marginals of three attributes from those of the rows that were seen, mean and
largest; the area under the ROC curve, on the test rows, of boosted trees (scikit-learn) trained on the synthetic rows;
CPU seconds and peak memory of a process that does nothing else. "-pure" has delta 0, all others have delta 1e-9:
"-zcdp" is given the largest rho that converts to the epsilon. `mbi-` and `opendp-` are peers, in an environment of
their own (see `synthetic_rows_of_peers.py`); without it they are skipped. A peer that needs more than `--limit` CPU
seconds is ended, and the file says so. `rows` is no method: the exact rows, halved for the marginals, and as they are
for the trees. Runs are seeded. Jobs that a file holds are not done again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_tasks import default_data
from classifier_tasks import read_task
from numpy.typing import NDArray
from unseen_tables import UNSEEN, unseen_table

from dpframework.accountant.zcdp import zcdp_to_epsilon
from dpframework.facts import exact
from dpframework.facts.privacy_losses import rho_below

TABLES = ("adult", "mushroom", "nursery-urgent", "nltcs")
METHODS = ("auto-zcdp", "independent-zcdp", "mbi-mst", "mbi-aim", "opendp-mst", "opendp-aim", "auto-pure", "rows")
NAMES = {"adult": "Adult", "nursery-urgent": "nursery"}
PEERS, OURS = (Path(__file__).with_name(f"synthetic_rows_of_{whose}.py") for whose in ("peers", "ours"))
DELTA = "1e-9"
Codes = NDArray[np.int64]


def rows_of(data: Path, name: str, seed: int) -> tuple[Any, Codes, Codes, int]:
    """Return a schema, the rows that are seen and those for tests, and the place of the class."""
    if name in UNSEEN:
        schema, codes, target = unseen_table(data, name)
    else:
        table, label = read_task(data, name)
        schema, codes, target = table.schema, table.codes.T.astype(np.int64), table.schema.index(label)
    order = np.random.default_rng(seed).permutation(len(codes))
    cut = len(codes) * 4 // 5
    return schema, codes[order[:cut]], codes[order[cut:]], target


def distances(one: Codes, other: Codes, sizes: list[int]) -> NDArray[np.float64]:
    """Return the total variation of each marginal of three attributes."""
    found = []
    for of in itertools.combinations(range(len(sizes)), 3):
        shape = tuple(sizes[a] for a in of)
        tables = [
            np.bincount(np.ravel_multi_index(tuple(rows[:, a] for a in of), shape), minlength=int(np.prod(shape)))
            / len(rows)
            for rows in (one, other)
        ]
        found.append(np.abs(tables[0] - tables[1]).sum() / 2)
    return np.array(found)


def auc(train: Codes, test: Codes, target: int, sizes: list[int]) -> float | None:
    """Return the area under the curve of a class of two values, .5 where rows hold one only; None for more values."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    if sizes[target] != 2:
        return None
    if len(set(train[:, target])) < 2:
        return 0.5
    others = [a for a in range(len(sizes)) if a != target]
    model = HistGradientBoostingClassifier(random_state=0, max_iter=60)
    model.fit(train[:, others], train[:, target])
    return float(roc_auc_score(test[:, target], model.predict_proba(test[:, others])[:, 1]))


def largest_rho(epsilon: str) -> Fraction:
    """Return the largest rho, of nine digits, that the accountant converts to at most an epsilon at the delta."""
    wanted, delta = exact(epsilon, "epsilon"), exact(DELTA, "delta")
    low, high = Fraction(0), 4 * rho_below(wanted, delta)
    while high - low > high / 10**9:
        middle = (low + high) / 2
        low, high = (middle, high) if zcdp_to_epsilon(middle, delta) <= wanted else (low, middle)
    return low


def of_method(job: dict[str, Any], data: Path, peer: tuple[str, str], limit: int) -> dict[str, Any]:
    """Return the rows of a method, from a process that does nothing else, and what it cost; no rows past the limit."""
    schema, seen, _, _ = rows_of(data, job["table"], job["seed"])
    numbers = [str(job["epsilon"]), DELTA, str(job["seed"])]
    with tempfile.TemporaryDirectory() as folder:
        given, out, public = (Path(folder) / name for name in ("rows.npz", "out.npz", "schema.toml"))
        np.savez(given, codes=seen, sizes=np.array([a.size for a in schema]), rho=float(largest_rho(numbers[0])))
        public.write_text(schema.dumps())
        if is_of_peer(job["method"]):
            call = [peer[0], str(PEERS), peer[1], job["method"], str(given), str(out), *numbers, str(limit)]
        else:
            call = [sys.executable, str(OURS), job["method"], str(public), str(given), str(out), *numbers]
        done = subprocess.run(call, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return {"cpu": limit, "ended": f"past {limit} CPU seconds"}
        if done.returncode:
            return {"ended": done.stderr.strip().splitlines()[-1]}
        with np.load(out) as held:
            return {name: held[name] if name == "codes" else held[name].item() for name in held.files}


def measured(job: dict[str, Any], data: Path, peer: tuple[str, str], limit: int) -> dict[str, Any]:
    """Return what one job shows."""
    schema, seen, test, target = rows_of(data, job["table"], job["seed"])
    sizes = [a.size for a in schema]
    if job["method"] == "rows":
        half = len(seen) // 2
        off, area = distances(seen[:half], seen[half:], sizes), auc(seen, test, target, sizes)
        return {**job, "mean": off.mean(), "largest": off.max(), "auc": area}
    made = of_method(job, data, peer, limit)
    if "codes" not in made:
        return {**job, **made}
    codes = np.asarray(made.pop("codes"), dtype=np.int64)
    off, area = distances(codes, seen, sizes), auc(codes, test, target, sizes)
    return {**job, "mean": off.mean(), "largest": off.max(), "auc": area, **made}


def is_of_peer(method: str) -> bool:
    """Return whether another program makes the rows."""
    return method.startswith(("mbi-", "opendp-"))


def why_without(peer: tuple[str, str]) -> str:
    """Return why the peers cannot be run, or an empty text if they can; print which they are."""
    if not peer[0]:
        return f"no environment is given with --peer; {PEERS.name} says how to make one"
    try:
        done = subprocess.run([peer[0], str(PEERS), peer[1], "check"], capture_output=True, text=True)
    except OSError as error:
        return str(error)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    print(f"peers: {done.stdout.strip()}", flush=True)
    return ""


def jobs(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the jobs that are not in the file yet."""
    out = Path(arguments.out)
    done = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    known = {tuple(one[key] for key in ("table", "epsilon", "method", "seed")) for one in done}
    for seed, table, epsilon, method in itertools.product(
        range(arguments.seeds), arguments.tables, arguments.epsilon, arguments.methods
    ):
        if (table, epsilon, method, seed) not in known:
            yield {"table": table, "epsilon": epsilon, "method": method, "seed": seed}


def run(arguments: argparse.Namespace) -> None:
    """Do each job in a process of its own, so that its memory is its own."""
    missing = why_without(arguments.peer) if any(map(is_of_peer, arguments.methods)) else ""
    for job in jobs(arguments):
        if missing and is_of_peer(job["method"]):
            print(f"skipped {job['method']} on {job['table']}: {missing}", flush=True)
            continue
        own = ["--data", str(arguments.data), "--peer", *arguments.peer, "--limit", str(arguments.limit)]
        call = [sys.executable, __file__, "job", json.dumps(job), *own]
        done = subprocess.run(call, capture_output=True, text=True, check=True)
        with Path(arguments.out).open("a") as file:
            file.write(done.stdout.splitlines()[-1] + "\n")
        print(done.stdout.splitlines()[-1][:200], flush=True)


def show(arguments: argparse.Namespace) -> None:
    """Print a table for each measure: a row for each method, a column for each table and epsilon."""
    found: dict[tuple[str, str, float], list[dict[str, Any]]] = defaultdict(list)
    for line in Path(arguments.out).read_text().splitlines():
        one = json.loads(line)
        found[one["method"], one["table"], one["epsilon"]].append(one)
    methods = list(dict.fromkeys(method for method, _, _ in found))
    columns = sorted({(table, epsilon) for _, table, epsilon in found})
    for measure in ("mean", "largest", "auc", "cpu", "mib"):
        print(f"\n| {measure} | " + " | ".join(f"{table}, {epsilon:g}" for table, epsilon in columns) + " |")
        print("|---" * (len(columns) + 1) + "|")
        for method in methods:
            cells = []
            for table, epsilon in columns:
                own = [one[measure] for one in found[method, table, epsilon] if one.get(measure) is not None]
                worst = max if measure in ("cpu", "mib") else np.mean
                cells.append(f"{worst(own):.3g}" if own else "")
            print(f"| {method} | " + " | ".join(cells) + " |")


def page(arguments: argparse.Namespace) -> None:
    """Print the page's table: error and area, means over seeds with half their range; then what the runs cost."""
    found: dict[tuple[str, float], dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for line in Path(arguments.out).read_text().splitlines():
        one = json.loads(line)
        found[one["table"], one["epsilon"]][one["method"]].append(one)
    methods = [name for name in METHODS if name != "rows" and any(name in own for own in found.values())]
    print("| table, epsilon | " + " | ".join(methods) + " |\n" + "|---" * (len(methods) + 1) + "|")
    for (table, epsilon), own in sorted(found.items()):
        cells = [_cell([one for one in own[name] if "ended" not in one]) for name in methods]
        print(f"| {NAMES.get(table, table)}, {epsilon:g} | " + " | ".join(cells) + " |")
    for name in methods:
        runs = [one for own in found.values() for one in own[name]]
        spent, memory = [one["cpu"] for one in runs if "cpu" in one], [one["mib"] for one in runs if "mib" in one]
        print(f"{name}: {min(spent):.3g} to {max(spent):.3g} CPU s, {min(memory):.0f} to {max(memory):.0f} MiB")


def _cell(runs: list[dict[str, Any]]) -> str:
    """Return the means of the runs with the number of seeds, empty for none."""
    if not runs:
        return ""
    error, area = ([one[measure] for one in runs if one[measure] is not None] for measure in ("mean", "auc"))
    spread = f" ±{(max(error) - min(error)) / 2:.4f} ({len(runs)})" if len(runs) > 1 else ""
    return f"{np.mean(error):.4f}{spread}" + (f" / {np.mean(area):.3f}" if area else "")


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("run", "show", "page", "job"):
        command = commands.add_parser(name)
        command.add_argument("--data", type=Path, default=default_data())
        command.add_argument("--peer", nargs=2, default=("", ""), metavar=("PYTHON", "REPOSITORY"))
        command.add_argument("--limit", type=int, default=600, help="CPU seconds of a run of a peer")
        if name == "run":
            command.add_argument("--tables", nargs="+", default=TABLES)
            command.add_argument("--methods", nargs="+", default=METHODS)
            command.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0, 10.0])
            command.add_argument("--seeds", type=int, default=5)
            command.add_argument("--out", required=True)
        else:
            command.add_argument("job" if name == "job" else "out")
    arguments = parser.parse_args()
    if arguments.command == "job":
        job = json.loads(arguments.job)
        print(json.dumps(measured(job, arguments.data, tuple(arguments.peer), arguments.limit)))
    else:
        {"run": run, "show": show, "page": page}[arguments.command](arguments)


if __name__ == "__main__":
    main()
