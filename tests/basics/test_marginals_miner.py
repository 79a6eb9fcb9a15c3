"""Workloads of marginals: private, tight, consistent, and with the errors that the plan states."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframework as dpf
from dpframework.basics import MarginalsMiner, marginals_miner
from dpframework.basics.marginals_workload_noise_and_errors import Workload, all_sets, marginal_of
from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import Relation
from dpframework.mechanisms import BlockNorm, DiscreteLaplace, Gaussian
from dpframework.mechanisms.block_knorm import block_variances
from dpframework.mechanisms.randomness import SeededRandomness
from dpframework.queries import Norm
from dpframework.results import MarginalTable, MarginalTables, Noisy
from dpframework.verify.conformance_suites import MinerConformance

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("ill"),
        dpf.Categorical("town", ["A", "B", "C"]),
        dpf.Numeric("age", 0, 90, bins=4),
        dpf.Categorical("country", ["X"]),
    ],
    about_rows=900,
)


class TestMarginals(MinerConformance):
    miner = MarginalsMiner
    replays = 400
    min_tightness = 0.9  # no claim is loose


def people(rows: int = 900) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    return pl.DataFrame(
        {
            "ill": rng.random(rows) < 0.3,
            "town": rng.choice(["A", "B", "C"], rows),
            "age": rng.integers(0, 90, rows).astype(float),
            "country": ["X"] * rows,
        }
    )


def study(schema: dpf.Schema = SCHEMA, relation: str = "add-or-remove-one", **parameters: Any) -> dpf.Study:
    made = dpf.Study(schema, epsilon=50, relation=relation, delta="1e-6" if "rho" in parameters else 0)
    made.add("tables", MarginalsMiner(**parameters))
    return made


@pytest.mark.parametrize("parameters", [{"rho": "0.5"}, {"epsilon": 1, "noise": "laplace"}])
@pytest.mark.parametrize("rows", [None, 900])
def test_measured_variances_of_all_marginals_are_those_planned(parameters: dict[str, Any], rows: int | None) -> None:
    """Within 2 % on every marginal. 150,000 draws: a false failure has a probability below 1e-6."""
    schema = dpf.Schema(SCHEMA.attributes, rows=rows)
    miner = MarginalsMiner(**parameters, of=[["ill", "town"], "age"])
    relation = Relation.ADD_OR_REMOVE_ONE if rows is None else Relation.REPLACE_ONE
    ((name, group),) = miner.groups(schema).items()
    node = miner.plan(schema)
    calibration = node.mechanism.calibrate(group.query.facts(), relation)  # type: ignore[attr-defined]
    assert calibration is not None
    unit = np.eye(group.query.answer_length)
    residuals = [dict(zip(group.query.sets, group.query.residuals(one), strict=True)) for one in unit]
    zeros = np.zeros((150_000, group.query.answer_length), dtype=np.int64)
    noise = calibration.mechanism.release(zeros, *_long(calibration, zeros.size), SeededRandomness(2))
    stated = miner.variances(schema, {name: calibration})
    sizes = group.query.sizes
    for names, variance in stated.items():
        one = tuple(k for k, a in enumerate(group.query.of) if a.name in names)
        cells = np.array([marginal_of(one, sizes, each, 0.0).ravel() for each in residuals])
        measured = float(np.square(noise @ cells).mean())
        assert math.isclose(measured, variance, rel_tol=0.02), names


def _long(calibration: Any, size: int) -> tuple[Any]:
    """Return the calibration for as many numbers, with the same noise on each."""
    import attrs

    return (attrs.evolve(calibration, facts=attrs.evolve(calibration.facts, answer_length=size)),)


@pytest.mark.parametrize("parameters", [{"rho": "0.5"}, {"epsilon": 1, "noise": "laplace"}, {"epsilon": 1}])
def test_the_error_of_a_range_is_that_of_its_sum(parameters: dict[str, Any]) -> None:
    """Exactly: each number of the noise has a factor in the sum, and their squares add up."""
    of = [dpf.Numeric("age", 0, 80, bins=8), dpf.Boolean("ill"), dpf.Categorical("town", ["A", "B", "C"])]
    schema = dpf.Schema(of, rows=900)
    miner = MarginalsMiner(of=[["age", "ill", "town"]], ranges=True, **parameters)
    made = dpf.Study(schema, epsilon=50, delta="1e-6", relation="replace-one")
    made.add("tables", miner)
    tables = made.run(dpf.Table.from_codes(schema, np.zeros((3, 900), dtype=int)), seed=1)["tables"]
    plan, groups = made.plan(), miner.groups(schema)
    calibrations = {step.name: plan.calibration(step) for step in plan.steps()}
    workload = miner.workload(schema)
    for age, ill, town in ((slice(2, 6), [0], [0, 2]), (slice(0, 8), [0, 1], [1]), (slice(5, 6), [1], [0, 1, 2])):
        variance = 0.0
        for name, group in groups.items():
            calibration, sets = calibrations[name], group.query.sets
            assert calibration is not None
            in_blocks = isinstance(calibration.mechanism, BlockNorm)
            each = block_variances(calibration) if in_blocks else [calibration.variance] * len(sets)
            spread = np.repeat(each, group.query.histograms or group.query._lengths)
            for one, own in zip(np.eye(group.query.answer_length), spread, strict=True):
                residuals = dict(zip(sets, group.query.residuals(one), strict=True))
                found = marginal_of((0, 1, 2), workload.sizes, {(): np.zeros(()), **residuals}, 0.0)
                variance += own * float(found[age][:, ill][:, :, town].sum()) ** 2
        chosen = {
            "age": of[0].labels[age],
            "ill": [of[1].labels[k] for k in ill],
            "town": [of[2].labels[k] for k in town],
        }
        got = tables["town", "age", "ill"].total(**chosen)
        assert math.isclose(got.variance, variance, rel_tol=1e-9, abs_tol=1e-12)
        assert math.isclose(got.value, tables["age", "ill", "town"].counts[age][:, ill][:, :, town].sum())


def test_noise_for_ranges_makes_the_mean_error_of_all_ranges_smaller() -> None:
    """And the plan states the worst one, which no other range exceeds."""
    schema = dpf.Schema([dpf.Numeric("age", 0, 80, bins=16), dpf.Boolean("ill")])
    means = {}
    for ranges in (False, True):
        made = study(schema, of=[["age", "ill"]], rho="0.5", ranges=ranges)
        table = made.run(dpf.Table.from_codes(schema, [[0] * 9] * 2), seed=1)["tables"]["age", "ill"]
        labels = schema["age"].labels
        variances = [
            table.total(age=labels[start:end], ill="true").variance
            for start, end in itertools.combinations(range(17), 2)
        ]
        means[ranges] = sum(variances) / len(variances)
        (worst,) = [one for one in made.plan().error_bounds()["tables"] if "worst range" in one.what] or [None]
        assert (worst is None) == (not ranges)
    assert means[True] < 0.8 * means[False]
    assert worst is not None
    assert worst.amount == Noisy(0, max(variances)).margin()


def test_the_worst_range_is_found_among_very_many() -> None:
    """Ranges of all lengths are tried: 180,000 here, of which those of about half the bins are the worst."""
    schema = dpf.Schema([dpf.Numeric("age", 0, 600, bins=600), dpf.Numeric("pay", 0, 300, bins=300)])
    made = study(schema, of=[["age", "pay"]], rho="0.5", ranges=True)
    (worst,) = [one for one in made.plan().error_bounds()["tables"] if "worst range" in one.what]
    assert worst.note == "age (309 of 600 bins) by pay (157 of 300 bins)"
    table = made.run(dpf.Table.from_codes(schema, [[0] * 9] * 2), seed=1)["tables"]["age", "pay"]
    ages, pays = schema["age"].labels, schema["pay"].labels
    assert worst.amount == table.total(age=ages[:309], pay=pays[:157]).margin()
    for bins in ((308, 157), (310, 157), (309, 156), (309, 158)):
        assert table.total(age=ages[: bins[0]], pay=pays[: bins[1]]).margin() <= worst.amount


def test_a_sum_of_values_that_are_not_there_is_refused() -> None:
    table = MarginalTable(["a"], [["x", "y"]], [1, 2], 2, [([], 1), (["a"], 1)])
    assert MarginalTable.from_dict(table.to_dict()) == table
    for chosen, words in (({"b": "x"}, "no attribute 'b'"), ({"a": "z"}, "no label 'z'"), ({"a": ["x", "x"]}, "twice")):
        with pytest.raises(InputError, match=words):
            table.total(**chosen)
    with pytest.raises(InputError, match="are not known"):
        MarginalTable(["a"], [["x", "y"]], [1, 2], 2).total()
    with pytest.raises(InputError, match="own attributes"):
        MarginalTable(["a"], [["x", "y"]], [1, 2], 2, [(["b"], 1)])


@pytest.mark.parametrize("order", [2, 3])
def test_weights_are_as_good_as_the_closed_form(order: int) -> None:
    """Of Gaussian noise (sum of sqrt(p v))**2 / (2 rho), of Laplace noise 2 (sum of cube roots)**3: within 1 %."""
    of = (*SCHEMA.attributes[:3], dpf.Boolean("old"), dpf.Categorical("job", list("abcdefghi")))
    workload = Workload(of, dict.fromkeys(all_sets(5, order), 1.0), rows_known=False)
    sizes, needed = workload.sizes, workload.released()
    gaussian = workload.gaussian().query
    variance = float(gaussian.sensitivities[0].add_or_remove_one or 0) / 2  # at rho = 1
    left = {one: math.prod(1 - 1 / sizes[a] for a in one) for one in needed}
    # with the paper's residuals, of variance s_A before centring: cost p_A / 2 s_A, objective v_A s_A
    best = sum(math.sqrt(left[one] * needed[one] * left[one]) for one in needed) ** 2 / 2
    known = dict(zip(gaussian.sets, gaussian.cell_variances([variance] * len(gaussian.sets)), strict=True))
    found = sum(needed[one] * known[one] for one in needed)
    assert best * (1 - 1e-9) <= found <= 1.01 * best
    (laplace,) = workload.laplace()
    scale = float(laplace.query.sensitivities[0].add_or_remove_one or 0)
    known = dict(zip(laplace.query.sets, laplace.query.cell_variances([2 * scale**2] * len(needed)), strict=True))
    found = sum(needed[one] * known[one] for one in needed)
    roots = [(needed[one] * left[one] / 2 ** sum(sizes[a] == 2 for a in one)) ** (1 / 3) for one in needed]
    assert math.isclose(found, 2 * sum(roots) ** 3, rel_tol=0.01)


def test_the_noise_of_least_predicted_error_is_taken() -> None:
    """Many attributes of two values: blocks; a few large tables: Laplace noise. Never worse than that alone."""
    binary = dpf.Schema([dpf.Boolean(f"b{k}") for k in range(12)])
    wide = dpf.Schema([dpf.Categorical(f"c{k}", [str(v) for v in range(40)]) for k in range(3)])
    for schema, kind in ((binary, BlockNorm), (wide, DiscreteLaplace)):
        plans = [study(schema, epsilon=1, noise=noise).plan() for noise in ("least-error", "laplace")]
        assert any(isinstance(one.mechanism, kind) for one in plans[0].steps())
        assert {type(one.mechanism) for one in plans[1].steps()} == {DiscreteLaplace}
        errors = [sum((one.amount or 0) ** 2 for one in plan.error_bounds()["tables"]) for plan in plans]
        assert errors[0] <= errors[1] * (0.6 if kind is BlockNorm else 1.0001)
        assert plans[0].total().epsilon == plans[1].total().epsilon == 1
    assert isinstance(MarginalsMiner(rho="0.1").plan(binary).mechanism, Gaussian)  # type: ignore[attr-defined]


def importance_of(work: Workload) -> dict[tuple[int, ...], float]:
    """The factor of each residual's variance in the error: what is released of it, by how much of it is kept."""
    kept = [0.25 if size == 2 else 1 - 1 / size for size in work.sizes]
    return {one: own * math.prod(kept[a] for a in one) for one, own in work.released().items()}


def root_of(work: Workload, sets: list[tuple[int, ...]], in_blocks: bool) -> float:
    """The cube root of the predicted sum of variances of some residuals, by the formulas of the two kinds of noise."""
    importance = importance_of(work)
    lengths = [math.prod(work.sizes[a] for a in one if work.sizes[a] > 2) for one in sets]
    if not in_blocks:
        return 2 ** (1 / 3) * sum(importance[one] ** (1 / 3) for one in sets)
    if len(sets) == 1 or sum(lengths) > 1_000:  # of one set the two are the same noise, and Laplace is drawn sooner
        return math.inf
    m = sum(lengths)
    moments = sum(2 * importance[one] / ((k + 1) * (k + 2)) for one, k in zip(sets, lengths, strict=True))
    return float(((m + 1) * (m + 2) * moments) ** (1 / 3))


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2, 2), (2, 3, 5, 2), (40, 24, 2), (40, 25, 2), (7,)])
def test_groups_are_the_best_of_all_ways_to_divide_residuals_by_their_length(sizes: tuple[int, ...]) -> None:
    of = [dpf.Categorical(f"a{k}", [str(v) for v in range(size)]) for k, size in enumerate(sizes)]
    work = Workload(tuple(of), dict.fromkeys(all_sets(len(sizes), 2), 1.0), False)
    by_length: dict[int, list[tuple[int, ...]]] = {}
    for one in importance_of(work):
        by_length.setdefault(math.prod(sizes[a] for a in one if sizes[a] > 2), []).append(one)
    lengths = sorted(by_length)
    ways = []
    for cuts in itertools.product([False, True], repeat=len(lengths) - 1):
        ends = [0, *(k + 1 for k, cut in enumerate(cuts) if cut), len(lengths)]
        parts = [
            [one for length in lengths[low:high] for one in by_length[length]] for low, high in itertools.pairwise(ends)
        ]
        ways.append(sum(min(root_of(work, part, kind) for kind in (False, True)) for part in parts))
    groups = work.least_error()
    found = [root_of(work, list(one.query.sets), one.query.norm is Norm.BLOCKS) for one in groups]
    assert sum(found) == pytest.approx(min(ways), rel=1e-9)
    assert sum(one.share for one in groups) == 1
    for one, root in zip(groups, found, strict=True):
        assert float(one.share) == pytest.approx(root / sum(found), abs=0.0011 * len(groups))
    assert sorted(one for group in groups for one in group.query.sets) == sorted(importance_of(work))
    assert all(set(one.query.weights) == {1} for one in groups if one.query.norm is Norm.BLOCKS)


def rms(schema: dpf.Schema, noise: str) -> float:
    """Return the root of the mean variance of all cells at epsilon 1, in rows."""
    miner, plan = MarginalsMiner(epsilon=1, noise=noise), study(schema, epsilon=1, noise=noise).plan()
    noises = {one.name: found for one in plan.steps() if (found := plan.calibration(one)) is not None}
    variances = miner.variances(schema, noises)
    cells = {names: math.prod(schema[name].size for name in names) for names in variances}
    return math.sqrt(sum(cells[names] * v for names, v in variances.items()) / sum(cells.values()))


def test_the_figures_of_the_page_are_computed_again() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "basics.md").read_text(encoding="utf-8")
    tables = {
        "20 of 2 values": [2] * 20,
        "8 of 5 values": [5] * 8,
        "of 2, 3, 4, 5, 8, 10 and 16 values": [2, 3, 4, 5, 8, 10, 16],
    }
    for words, sizes in tables.items():
        schema = dpf.Schema([dpf.Categorical(f"c{k}", [str(v) for v in range(n)]) for k, n in enumerate(sizes)])
        cells = [math.prod(sizes[a] for a in one) for one in all_sets(len(sizes), 2)]
        # each table alone, with the best shares: proportional to the cube roots of the cells
        alone = math.sqrt(2 * sum(n ** (1 / 3) for n in cells) ** 3 / sum(cells))
        figures = [alone, rms(schema, "laplace"), rms(schema, "least-error")]
        assert f"| {words} | {' | '.join(f'{one:.0f}' for one in figures)} |" in page


@pytest.mark.parametrize(
    ("relation", "rows", "parameters"),
    [
        ("add-or-remove-one", None, {"epsilon": 1}),
        ("replace-one", 900, {"epsilon": 1, "noise": "laplace"}),
        ("replace-one", 900, {"rho": "0.1", "order": 3}),
    ],
)
def test_all_marginals_agree(relation: str, rows: int | None, parameters: dict[str, Any]) -> None:
    schema = dpf.Schema(SCHEMA.attributes, rows=rows)
    tables = study(schema, relation, **parameters).run(dpf.table_from_frame(people(), schema), seed=3)["tables"]
    assert isinstance(tables, MarginalTables)
    for one, other in itertools.permutations(tables, 2):
        if set(one.names) < set(other.names):
            axes = tuple(k for k, name in enumerate(other.names) if name not in one.names)
            assert np.allclose(other.counts.sum(axis=axes), one.counts, atol=1e-8)
    assert all(math.isclose(one.counts.sum(), tables.total.value, abs_tol=1e-8) for one in tables)
    if rows is not None:
        assert tables.total == Noisy(rows, 0)
    truth = people().group_by("town", "ill").len().sort("town", "ill")["len"].to_numpy()
    table = tables["town", "ill"]
    assert np.abs(table.counts.ravel() - truth).max() < 8 * table.standard_error
    assert tables["ill", "town"].counts.T.tolist() == table.counts.tolist()


def test_the_plan_states_what_results_state() -> None:
    made = study(rho="0.1", of=["ill", ["ill", "age"], "country"])
    bounds = {one.what: one.amount for one in made.plan().error_bounds()["tables"]}
    tables = made.run(dpf.table_from_frame(people(), SCHEMA), seed=3)["tables"]
    assert list(bounds) == [f"marginal of {' by '.join(one.names)}" for one in tables]
    assert list(bounds.values()) == [Noisy(0, one.variance).margin() for one in tables]
    every = study(rho="0.1", attributes=["ill", "town", "age"], order=3).plan().error_bounds()["tables"]
    assert len(every) == 7
    many = dpf.Schema([dpf.Boolean(f"b{k}") for k in range(6)])
    told = study(many, rho="0.1").plan().error_bounds()["tables"]
    assert [one.what for one in told] == ["marginals of 1 attribute (6)", "marginals of 2 attributes (15)"]
    assert "the worst" in told[0].text


def test_results_are_frames_and_are_read_again() -> None:
    tables = study(epsilon=1).run(dpf.table_from_frame(people(), SCHEMA), seed=3)["tables"]
    frame = tables.to_frame()
    assert frame.columns == ["marginal", "cell", "count", "standard error", "low", "high"]
    assert frame.height == sum(one.counts.size for one in tables)
    assert MarginalTables.from_dict(json.loads(tables.to_json())) == tables
    one = tables["ill", "town"]
    assert one.to_frame().columns == ["ill", "town", "count", "standard error", "low", "high"]
    assert MarginalTable.from_dict(json.loads(one.to_json())) == one
    assert one["true", "B"].variance == one.variance
    assert "±" in str(one)
    assert "All marginals agree" in str(tables)
    with pytest.raises(InputError, match="did you mean"):
        tables["il"]


def test_nonnegative_and_whole_keep_the_total() -> None:
    table = MarginalTable(["a"], [list("wxyz")], [10.4, -3.0, 2.5, 0.3], 2)
    assert table.nonnegative().min() == 0
    assert math.isclose(table.nonnegative().sum(), 10.2)
    assert table.whole().dtype == np.int64
    rng = np.random.default_rng(7)
    for counts in ([10.4, -3.0, 2.5, 0.3], [3.4, 3.4, 3.3, 0.9], *rng.normal(5, 4, (50, 4))):
        table = MarginalTable(["a"], [list("wxyz")], counts, 2)
        exact, whole = table.nonnegative(), table.whole()
        assert whole.sum() == round(float(exact.sum()))
        assert np.abs(whole - exact).max() < 1
        up, down = whole > exact, whole < exact
        assert (exact % 1)[up].min(initial=1) >= (exact % 1)[down].max(initial=0)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"of": "ill"}, "list of marginals"),
        ({"of": []}, "is empty or names a marginal twice"),
        ({"of": [[]]}, "at least one"),
        ({"of": [["ill", "age"], ["age", "ill"]]}, "twice"),
        ({"of": [["ill", "ill"]]}, "twice"),
        ({"of": ["ill"], "order": 2}, "not both"),
        ({"order": 0}, "positive whole"),
        ({"order": True}, "positive whole"),
        ({"weights": [1]}, "need 'of'"),
        ({"of": ["ill"], "weights": [0]}, "positive numbers"),
        ({"of": ["ill"], "weights": [1, 2]}, "one weight"),
        ({"noise": "lap"}, "unknown"),
        ({"objective": "most"}, "unknown"),
        ({"objective": "largest", "ranges": True}, "single cells"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        MarginalsMiner(epsilon=1, **parameters)


@pytest.mark.parametrize("ranges", [1, "no", None])
def test_ranges_are_wanted_or_not(ranges: Any) -> None:
    """A text such as "no" would be true."""
    with pytest.raises(TypeError, match="'ranges' must be"):
        MarginalsMiner(epsilon=1, ranges=ranges)


def test_what_a_schema_cannot_serve_is_refused() -> None:
    big = dpf.Schema([dpf.Categorical(f"c{k}", [str(v) for v in range(101)]) for k in range(3)])
    with pytest.raises(InputError, match="cells"):
        MarginalsMiner(epsilon=1, order=3).plan(big)
    largest = dpf.Schema([dpf.Categorical(f"c{k}", [str(v) for v in range(100)]) for k in range(3)])
    assert MarginalsMiner(epsilon=1, of=[["c0", "c1", "c2"]]).workload(largest).sizes == (100, 100, 100)
    with pytest.raises(InputError, match="two values"):
        MarginalsMiner(epsilon=1, of=["country"]).plan(SCHEMA)
    with pytest.raises(InputError, match="open"):
        MarginalsMiner(epsilon=1, of=["o"]).plan(dpf.Schema([dpf.Open("o"), dpf.Boolean("b")]))
    assert MarginalsMiner(epsilon=1).workload(dpf.Schema([dpf.Open("o"), dpf.Boolean("b")])).sizes == (2,)


@pytest.mark.parametrize(("sets", "lines"), [(1, 1), (12, 12), (13, 2)])
def test_the_errors_of_up_to_twelve_marginals_are_listed(sets: int, lines: int) -> None:
    pairs = itertools.combinations("abcdefg", 2)
    variances = {(name,): 4.0 + k for k, name in enumerate("abcdefg")} | dict.fromkeys(pairs, 9.0)
    told = marginals_miner._describe_errors(dict(list(variances.items())[:sets]))
    assert len(told) == lines
    if lines == sets:
        assert told[0] == (" of a", 4.0, "")
    else:
        one, two = told
        assert one[:2] == ("s of 1 attribute (7)", 10.0)
        assert one[2] == f"the worst, g; ±{Noisy.margin_of(7.0):.3g} for a cell of mean variance"
        assert two[:2] == ("s of 2 attributes (6)", 9.0)
