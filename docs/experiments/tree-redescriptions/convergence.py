"""How near the walk over pairs of trees comes to the distribution that its claim is about. Not private.

    python convergence.py                 # prints the two tables
    python convergence.py --out FOLDER    # writes them into a folder, which is made
    python convergence.py --commit        # writes them into results/ and onto the page
    python convergence.py --runs 20       # draws 20 pairs from each distribution instead of 200, for a first look

**Followed**: a made-up table of four tests a view and trees of two levels has 4,096 pairs, so the distribution of the
walk after any number of steps is computed, not sampled: its distance in total variation from the exponential mechanism
on all pairs, and the largest loss at an added row, of those rows that cost most in the limit, as a share of epsilon.

**Drawn**: the sixteen questions of NLTCS, eight a view (set DPFRAMEWORK_DATA), have 262,144 pairs. Walks are compared
with exact draws, by how many rows the score of a pair is below the best.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from dpframework_trees.exact_pair_sampler import ExactPairs
from dpframework_trees.queries import TreePairScores
from dpframework_trees.splits import Candidates
from dpframework_trees.tree_pairs import MarkovChainPairs, pair_score_named, some_pairs
from numpy.typing import NDArray

import dpframework as dpf
from dpframework.lab.experiment.user_functions import Code
from dpframework.mechanisms.randomness import SeededRandomness

FOLDER = Path(__file__).parent
SPREAD = Fraction(3, 2)  # of the gain under add-or-remove-one
EPSILONS, STEPS = ("0.1", "1", "10"), (10, 100, 1_000, 10_000)
DRAWS, ROWS, SEED = 200, 1_000, 11
LEAST = 1e-250  # of a probability whose logarithm is compared: below it, floating point has too few digits
Floats = NDArray[np.float64]


def made_up(rows: int = ROWS) -> dpf.Table:
    """Return rows whose left view, four Booleans, leans on how far right a number is."""
    rng = np.random.default_rng(SEED)
    right = rng.integers(0, 5, rows)
    left = [rng.random(rows) < np.where(right > k, 0.8, 0.2) for k in range(4)]
    schema = dpf.Schema(
        [
            *(dpf.Boolean(f"left {k}", view="left") for k in range(4)),
            dpf.Numeric("right", 0, 5, cuts=[1, 2, 3, 4], view="right"),
        ]
    )
    return dpf.Table.from_codes(schema, np.array([*left, right], dtype=np.uint8))


def nltcs(folder: Path) -> dpf.Table:
    """Return the rows of NLTCS, its first eight questions as the left view."""
    file = folder / "nltcs" / "nltcs.csv"
    names = file.open(encoding="utf-8").readline().strip().split(",")
    schema = dpf.Schema([dpf.Boolean(name, view="left" if k < 8 else "right") for k, name in enumerate(names)])
    return dpf.read_table(file, schema)


def query_of(table: dpf.Table, *, counted: bool) -> TreePairScores:
    """Return the query for pairs of two levels, first trees of the right view, for the first question of the left."""
    sides = [
        Candidates.of_schema(table.schema, [a.name for a in table.schema.view(view)], multiway=False, cuts=True)
        for view in (dpf.View.RIGHT, dpf.View.LEFT)
    ]
    target = table.schema.attributes[0]
    return TreePairScores(pair_score_named("gain"), target, *sides, 2, None, counted=counted)


def scores_of(table: dpf.Table) -> Floats:
    """Return the score of every pair, an axis a node, those of the first tree before those of the second."""
    engine, query = dpf.InMemory(), query_of(table, counted=True)
    tests = len(query.first), len(query.second)
    data = query.evaluate(engine, engine.load(table))
    firsts, seconds = (np.array(each) for each in zip(*some_pairs(tests, 2, query.answer_length), strict=True))
    return data.scores(firsts, seconds).reshape((tests[0],) * 3 + (tests[1],) * 3)


def limit(scores: Floats, epsilon: str) -> Floats:
    """Return the log-probabilities of the exponential mechanism."""
    logs = scores * float(Fraction(epsilon) / SPREAD)
    return np.asarray(logs - np.logaddexp.reduce(logs, axis=None))


def walked(scores: Floats, epsilon: str, steps: tuple[int, ...]) -> Iterator[tuple[int, Floats]]:
    """Yield the distribution of a walk from a uniform start after each of some numbers of steps.

    A step takes a node uniformly, and a test for it uniformly, and accepts by Metropolis and Hastings.
    """
    logs = scores * float(Fraction(epsilon) / SPREAD)
    accepted = []
    for axis in range(logs.ndim):
        moved = np.moveaxis(logs, axis, -1)
        accepted.append(np.exp(np.minimum(moved[..., np.newaxis, :] - moved[..., np.newaxis], 0)) / moved.shape[-1])
    now = np.full(logs.shape, 1 / logs.size)
    for step in range(1, max(steps) + 1):
        after = np.zeros_like(now)
        for axis, into in enumerate(accepted):
            here = np.moveaxis(now, axis, -1)
            moved = (here[..., np.newaxis, :] @ into)[..., 0, :] + here * (1 - into.sum(axis=-1))
            after += np.moveaxis(moved, -1, axis)
        now = after / logs.ndim
        if step in steps:
            yield step, now


def worst_row(table: dpf.Table, epsilon: str) -> dpf.Table:
    """Return the table with one row more, the one that costs most in the limit."""
    kinds = np.stack(np.meshgrid(*(range(a.size) for a in table.schema), indexing="ij")).reshape(len(table.schema), -1)
    at = limit(scores_of(table), epsilon)
    larger = [
        dpf.Table.from_codes(table.schema, np.column_stack([table.codes, kind]).astype(np.uint8)) for kind in kinds.T
    ]
    losses = [float(np.abs(limit(scores_of(one), epsilon) - at).max()) for one in larger]
    return larger[int(np.argmax(losses))]


def followed(steps: tuple[int, ...] = STEPS, rows: int = ROWS) -> list[dict[str, str]]:
    """Return a line for each epsilon and number of steps, and one for the limit."""
    table, lines = made_up(rows), []
    for epsilon in EPSILONS:
        larger = worst_row(table, epsilon)
        each = [scores_of(table), scores_of(larger)]
        ends = [limit(scores, epsilon) for scores in each]
        for (step, one), (_, other) in zip(*(walked(scores, epsilon, steps) for scores in each), strict=True):
            lines.append(_line(epsilon, f"{step:,}", one, other, ends[0]))
        lines.append(_line(epsilon, "exact", np.exp(ends[0]), np.exp(ends[1]), ends[0]))
    return lines


def _line(epsilon: str, steps: str, found: Floats, other: Floats, end: Floats) -> dict[str, str]:
    distance, tell = np.abs(found - np.exp(end)).sum() / 2, np.minimum(found, other) > LEAST
    loss = np.abs(np.log(found[tell]) - np.log(other[tell])).max()
    shown = {"distance": f"{distance:.4f}", "loss by epsilon": f"{loss / float(epsilon):.3f}"}
    return {"epsilon": epsilon, "steps": steps, **shown}


def drawn(table: dpf.Table, draws: int = DRAWS) -> list[dict[str, str]]:
    """Return a line for each epsilon, with how far below the best pair walks and exact draws are on average."""
    engine, lines = dpf.InMemory(), []
    best, randomness = float(scores_of(table).max()), SeededRandomness(SEED)
    for epsilon in EPSILONS:
        line = {"epsilon": epsilon}
        for steps in (*STEPS, 0):
            query = query_of(table, counted=not steps)
            mechanism: Any = MarkovChainPairs(epsilon, steps) if steps else ExactPairs(epsilon)
            given = mechanism.calibrate(query.facts(), dpf.Relation.ADD_OR_REMOVE_ONE)
            data = query.evaluate(engine, engine.load(table))
            gaps = [best - data.score(*mechanism.release(data, given, randomness)) for _ in range(draws)]
            error = 1.96 * np.std(gaps, ddof=1) / np.sqrt(draws)
            line[f"{steps:,} steps" if steps else "exact"] = f"{np.mean(gaps):,.1f} ± {error:,.1f}"
        lines.append(line)
    return lines


def main(arguments: list[str] | None = None) -> None:
    """Compute both tables, then write them."""
    given = Code("table_files.py:asked_runs", FOLDER.parent).load()(__doc__, DRAWS, "nltcs/", arguments)
    rows = nltcs(Path(os.environ["DPFRAMEWORK_DATA"]))
    lines = {"convergence-followed": followed(), "convergence-drawn": drawn(rows, given.runs)}
    tables = {name: pl.DataFrame(found) for name, found in lines.items()}
    Code("table_files.py:write_tables", FOLDER.parent).load()(tables, {}, given.out, given.commit, FOLDER)


if __name__ == "__main__":
    main()
