"""The pictures of the page on synthetic tables: not private, since they look at exact rows.

    python tests/benchmarks/table_pictures.py errors docs/static/table-runs.jsonl docs/static/table-errors.svg
    python tests/benchmarks/table_pictures.py groups docs/static/table-groups.svg

`errors` draws what `compare_tables.py` measured: the mean error of all marginals of three attributes and the area under
the curve, by epsilon, with the range of the seeds. `groups` draws the made-up patients of the page: the share of ill
ones by age and smoking, in the exact rows, in synthetic rows, and in those of independent attributes.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import dpframework as dpf

SHOWN = {
    "auto-zcdp": ("synthetic-table", "#0b5394", "o"),
    "mbi-mst": ("MST of mbi", "#b45f06", "s"),
    "mbi-aim": ("AIM of mbi", "#6aa84f", "^"),
    "opendp-mst": ("MST of OpenDP", "#cc6699", "D"),
    "opendp-aim": ("AIM of OpenDP", "#674ea7", "v"),
    "independent-zcdp": ("independent attributes", "#888888", "x"),
}
NAMES = {"adult": "Adult", "nursery-urgent": "nursery"}
MEASURES = {"mean": "error of 3-way marginals", "auc": "AUC on unseen rows"}


def _saved(figure: Any, path: Path) -> None:
    import matplotlib as mpl

    mpl.rcParams["svg.hashsalt"] = path.stem
    figure.savefig(path, format="svg", metadata={"Date": None})


def draw_errors(runs: Path, path: Path) -> None:
    """Draw both measures of all methods, a column for each table."""
    import matplotlib.pyplot as plt

    found: dict[tuple[str, str], dict[float, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for line in runs.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        if one["method"] in SHOWN and "ended" not in one:
            found[one["table"], one["method"]][one["epsilon"]].append(one)
    tables = [name for name in ("adult", "mushroom", "nursery-urgent", "nltcs") if (name, "auto-zcdp") in found]
    figure, axes = plt.subplots(2, len(tables), figsize=(3 * len(tables), 5.4), layout="constrained", squeeze=False)
    for row, (measure, text) in enumerate(MEASURES.items()):
        for column, table in enumerate(tables):
            own = axes[row, column]
            for method, (label, colour, marker) in SHOWN.items():
                by_epsilon = found[table, method]
                epsilons = sorted(by_epsilon)
                values = [[one[measure] for one in by_epsilon[e] if one[measure] is not None] for e in epsilons]
                if not epsilons or not all(values):
                    continue
                means = [float(np.mean(some)) for some in values]
                reach = [[m - min(v), max(v) - m] for m, v in zip(means, values, strict=True)]
                own.errorbar(epsilons, means, np.transpose(reach), label=label, color=colour, marker=marker, ms=4)
            own.set(xscale="log", title=NAMES.get(table, table) if row == 0 else None)
            if measure == "mean":
                own.set_ylim(bottom=0)
            else:
                own.set_xlabel("epsilon (delta 1e-9)")
        axes[row, 0].set_ylabel(text)
    handles = {text: line for own in axes.flat for line, text in zip(*own.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=3)
    _saved(figure, path)


def patients() -> dpf.Table:
    """Return the page's made-up patients."""
    town = dpf.Categorical("town", ["A", "B", "C"], missing=True)
    age = dpf.Numeric("age", 0, 100, bins=5)
    schema = dpf.Schema([age, dpf.Boolean("smokes"), dpf.Boolean("ill"), town], about_rows=5000)
    draw = np.random.default_rng(0)
    ages, smokes = draw.integers(0, 5, 5000), draw.random(5000) < 0.3
    ill = draw.random(5000) < 0.1 + 0.1 * ages + 0.4 * smokes
    return dpf.Table.from_codes(schema, np.array([ages, smokes, ill, draw.integers(0, 4, 5000)]))


def shares(codes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the share of ill rows by smoking and age, shape (2, ages), from codes of shape (attributes, rows)."""
    found = np.zeros((2, 5))
    for smokes in range(2):
        for age in range(5):
            found[smokes, age] = codes[2][(codes[0] == age) & (codes[1] == smokes)].mean()
    return found


def draw_groups(path: Path) -> None:
    """Draw the share of ill patients by age and smoking."""
    import matplotlib.pyplot as plt

    table = patients()
    bars = [("exact rows", shares(np.asarray(table.codes)), "#222222")]
    for text, method, colour in (("synthetic rows", "auto", "#0b5394"), ("independent", "independent", "#aaaaaa")):
        study = dpf.Study(table.schema, epsilon=1)
        study.add("rows", dpf.miner("synthetic-table", epsilon=1, method=method))
        bars.append((text, shares(study.run(table, seed=0)["rows"].codes.T), colour))
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
    for smokes, own in enumerate(axes):
        for k, (text, share, colour) in enumerate(bars):
            own.bar(np.arange(5) + 0.27 * (k - 1), 100 * share[smokes], width=0.25, label=text, color=colour)
        own.set(title="smokers" if smokes else "non-smokers", xlabel="age")
        own.set_xticks(range(5), [f"{20 * k} to {20 * k + 20}" for k in range(5)])
    axes[0].set_ylabel("ill (%)")
    axes[0].legend(fontsize="small", loc="upper left")
    _saved(figure, path)


def main() -> None:
    """Draw what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    errors, groups = commands.add_parser("errors"), commands.add_parser("groups")
    errors.add_argument("runs", type=Path)
    for command in (errors, groups):
        command.add_argument("path", type=Path)
    given = parser.parse_args()
    if given.command == "errors":
        draw_errors(given.runs, given.path)
    else:
        draw_groups(given.path)


if __name__ == "__main__":
    main()
