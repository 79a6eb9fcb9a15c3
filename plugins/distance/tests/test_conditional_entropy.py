"""Scores for all targets at once: the same as each target's own, whatever the table and however it is counted."""

import itertools

import dpframework_distance.kernels as kernels
import numpy as np
import pytest
from dpframework_distance import DPDilca, conditional_entropy, dilca, entropy_terms
from dpframework_distance.conditional_entropy import positions
from dpframework_distance.queries import ContextScores
from dpframework_distance.sensitivities import RowBounds
from dpframework_distance.subsets import number_of_cells, subsets
from hypothesis import given, settings, strategies as st

import dpframework as dpf

BOUNDS = RowBounds(2**31, None)


@st.composite
def tables(draw):
    """Tables of four to six attributes of all kinds, with and without missing values, of no row, one or some."""
    kinds = draw(st.lists(st.integers(0, 5), min_size=4, max_size=6))
    attributes = [
        (
            dpf.Boolean(f"a{k}"),
            dpf.Boolean(f"a{k}", missing=True),
            dpf.Categorical(f"a{k}", ["x", "y", "z"]),
            dpf.Categorical(f"a{k}", [str(v) for v in range(9)], missing=True),
            dpf.Numeric(f"a{k}", 0, 1, bins=4),
            dpf.Categorical(f"a{k}", [str(v) for v in range(300)]),
        )[kind]
        for k, kind in enumerate(kinds)
    ]
    rows = draw(st.sampled_from([0, 1, 2, 7, 64, 201]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codes = [np.minimum(rng.geometric(0.5, rows) - 1, a.size - 1) for a in attributes]
    return dpf.Table.from_codes(dpf.Schema(attributes), codes)


@given(table=tables(), part=st.sampled_from([1, 500, 1 << 20]), listed=st.sampled_from([1, 7]))
@settings(max_examples=40, deadline=None)
def test_scores_are_those_of_each_target_counted_alone(table, part, listed):
    of = table.schema.attributes
    few = [size for size in (1, 2, 3) if number_of_cells([a.size for a in of], size + 1) < 1 << 22]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conditional_entropy, "PART", part)
        patch.setattr(conditional_entropy, "LISTED", listed)
        for engine in (dpf.InMemory(), dpf.Threads(2)):
            rows = engine.load(table)
            for target, size in itertools.product(range(len(of)), few):
                chosen = (of[target - 1].name,) if size == 1 else ()
                together, alone = (ContextScores(of, size, BOUNDS, target, alone) for alone in (False, True))
                found = together.evaluate(engine, rows, chosen=chosen)
                assert found.tolist() == alone.evaluate(engine, rows, chosen=chosen).tolist()
                assert len(found) == len(together.candidates(chosen=chosen))


@pytest.mark.parametrize(("attributes", "order"), [(2, 1), (2, 2), (5, 1), (7, 3), (9, 4), (4, 4)])
def test_positions_are_those_in_lexicographic_order(attributes, order):
    members = np.array(list(itertools.combinations(range(attributes), order)))
    assert positions(attributes, members).tolist() == list(range(len(members)))


def test_rows_are_read_once_for_all_targets(monkeypatch):
    number = []
    count = kernels.add_joint_counts
    monkeypatch.setattr(kernels, "add_joint_counts", lambda *args: number.append(len(args[2])) or count(*args))
    monkeypatch.setattr(conditional_entropy, "PART", 64)
    schema = dpf.Schema([dpf.Boolean(f"a{k}") for k in range(7)])
    engine = dpf.InMemory()
    rows = engine.load(dpf.Table.from_codes(schema, np.random.default_rng(0).integers(0, 2, (7, 50))))
    for target in range(7):
        ContextScores(schema.attributes, 2, BOUNDS, target).evaluate(engine, rows)
    assert sum(number) == 35
    assert max(number) <= 9  # 64 cells, and a subset that begins among them


@pytest.mark.parametrize("whole", [1 << 4, 1 << 20])
def test_numbers_of_rows_beyond_the_table_of_f(whole, monkeypatch):
    """Of 200 rows, most sums are beyond a table of f of 16 numbers."""
    from dpframework_distance import entropy_terms

    rng = np.random.default_rng(3)
    schema = dpf.Schema([dpf.Categorical(f"a{k}", ["x", "y", "z"]) for k in range(5)])
    table = dpf.Table.from_codes(schema, rng.integers(0, 3, (5, 200)) * (rng.random(200) < 0.2))
    monkeypatch.setattr(entropy_terms, "WHOLE", whole)
    monkeypatch.setattr(entropy_terms, "STEP", 1 << 2)
    monkeypatch.setattr(entropy_terms, "_sums", entropy_terms._sums.__wrapped__)
    f = entropy_terms.terms(200)
    engine = dpf.InMemory()
    codes = table.codes.astype(int)
    for target in range(5):
        query = ContextScores(schema.attributes, 2, BOUNDS, target)
        expected = []
        for context in query.candidates():
            cells = np.zeros((3, 3, 3), dtype=int)
            np.add.at(cells, (codes[target], *(codes[schema.index(name)] for name in context)), 1)
            expected.append((f[cells].sum() - f[cells.sum(axis=0)].sum()) / entropy_terms.UNITS)
        assert query.evaluate(engine, engine.load(table)).tolist() == expected


def test_distances_are_the_same_however_many_are_counted_at_once(monkeypatch):
    """Seeded: the same releases, and so the same distances."""
    rng = np.random.default_rng(2)
    schema = dpf.Schema([dpf.Categorical(f"a{k}", ["x", "y", "z"]) for k in range(5)], rows=200)
    table = dpf.Table.from_codes(schema, rng.integers(0, 3, (5, 200)) * (rng.random(200) < 0.5))
    found = []
    for part in (1 << 20, 100):
        monkeypatch.setattr(conditional_entropy, "PART", part)
        study = dpf.Study(schema, epsilon=5, relation="replace-one")
        study.add("d", DPDilca(5, context="max-dependency", context_size=2))
        found.append((study.run(table, seed=1)["d"], dilca(table, context="max-dependency", context_size=2)))
    for together, apart in zip(*found, strict=True):
        assert together.contexts == apart.contexts
        for name in together:
            assert (together[name].matrix == apart[name].matrix).all()


@pytest.mark.parametrize("context", ["max-relevance", "max-dependency"])
def test_a_run_reads_the_rows_once_for_all_its_releases(context, monkeypatch):
    number = []
    count = kernels.add_joint_counts
    monkeypatch.setattr(kernels, "add_joint_counts", lambda *args: number.append(1) or count(*args))
    schema = dpf.Schema([dpf.Boolean(f"a{k}") for k in range(5)], rows=50)
    study = dpf.Study(schema, epsilon=5, relation="replace-one")
    study.add("d", DPDilca(5, context=context, context_size=2))
    study.run(dpf.Table.from_codes(schema, np.random.default_rng(0).integers(0, 2, (5, 50))), seed=0)
    assert len(number) == 1


@pytest.mark.parametrize("whole", [4, 16, 1 << 20])
@pytest.mark.parametrize("order", [2, 3])
def test_sums_are_those_of_f_over_each_table_and_over_those_of_one_attribute_less(whole, order, monkeypatch):
    """Cell by cell, f being a table of all numbers; some tables are known, and others not asked for."""
    monkeypatch.setattr(entropy_terms, "WHOLE", whole)
    monkeypatch.setattr(entropy_terms, "STEP", 4)
    monkeypatch.setattr(entropy_terms, "_sums", entropy_terms._sums.__wrapped__)
    rng, sizes = np.random.default_rng(whole), (4, 3, 2, 2)
    f = [0, *np.cumsum(entropy_terms._growth(0, 10_000)).tolist()]
    layout = subsets(sizes, order)
    cells = rng.integers(0, 9, sizes)
    cells[3, 2, 1, 1] = 300
    tables = [cells.sum(axis=tuple(set(range(4)) - set(members))) for members in layout.members.tolist()]
    counts = np.concatenate([table.ravel() for table in tables]).astype(np.int32)
    places = np.arange(len(tables) * order).reshape(-1, order)
    places[1, 0] = -1
    less = np.full(places.size, -1, dtype=np.int64)
    less[places[2, 1]] = 77
    found = conditional_entropy.fill(counts, layout.offsets[:-1], layout, slice(None), places, less)
    assert found.tolist() == [sum(f[n] for n in table.ravel().tolist()) for table in tables]
    for s, table in enumerate(tables):
        for level in range(order):
            expected = sum(f[n] for n in table.sum(axis=level).ravel().tolist())
            told = {(1, 0): -1, (2, 1): 77}.get((s, level), expected)
            assert less[order * s + level] == told
