"""Joint histograms of all subsets: the right counts, in the right places, once."""

import itertools
import math

import dpframework_distance.kernels as kernels
import numpy as np
import pytest
from dpframework_distance import DPDilca
from dpframework_distance.subsets import (
    count_once,
    number_of_cells,
    require_few_cells,
    subsets,
)

import dpframework as dpf

SIZES = (2, 5, 3, 90, 4)


@pytest.fixture
def block():
    schema = dpf.Schema([dpf.Categorical(f"a{k}", [str(v) for v in range(size)]) for k, size in enumerate(SIZES)])
    rng = np.random.default_rng(1)
    codes = np.array([np.minimum(rng.geometric(0.4, 301) - 1, size - 1) for size in SIZES])
    return dpf.InMemory().load(dpf.Table.from_codes(schema, codes))[0]


def counted(block, of):
    shape = tuple(SIZES[k] for k in of)
    table = np.zeros(shape, dtype=np.int64)
    np.add.at(table, tuple(block.codes(f"a{k}").astype(int) for k in of), 1)
    return table


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("containing", [None, 0, 2, 4])
def test_every_histogram_is_counted(block, order, containing):
    layout = subsets(SIZES, order, containing)
    counts = count_once(block, block.schema.attributes, order, containing)
    wanted = [s for s in itertools.combinations(range(5), order) if containing is None or containing in s]
    assert [tuple(s) for s in layout.members.tolist()] == wanted
    for subset in wanted:
        assert (layout.histogram(counts, *subset) == counted(block, subset)).all()
        assert (layout.histogram(counts, *subset[::-1]) == counted(block, subset[::-1])).all()


def test_histograms_are_counted_once_a_block(block, monkeypatch):
    number = []
    count = kernels.add_joint_counts
    monkeypatch.setattr(kernels, "add_joint_counts", lambda *args: number.append(1) or count(*args))
    for _ in range(3):
        count_once(block, block.schema.attributes, 3, None)
    assert len(number) == 1


@pytest.mark.parametrize("containing", [None, 0, 3])
def test_smaller_histograms_are_sums_of_larger_ones(block, monkeypatch, containing):
    count_once(block, block.schema.attributes, 3, containing)
    monkeypatch.delattr(kernels, "add_joint_counts")  # no row is read again
    layout = subsets(SIZES, 2, containing)
    counts = count_once(block, block.schema.attributes, 2, containing)
    assert len(layout.members) == (10 if containing is None else 4)
    for subset in layout.members.tolist():
        assert (layout.histogram(counts, *subset) == counted(block, subset)).all()


def test_kept_counts_go_with_the_block_and_cannot_be_written(block):
    from dpframework_distance import subsets as module

    counts = count_once(block, block.schema.attributes, 2, None)
    with pytest.raises(ValueError, match="read-only"):
        counts[0] = 1
    before = len(module._COUNTED)
    del block
    part = dpf.InMemory().load(dpf.Table.from_codes(dpf.Schema([dpf.Boolean("a"), dpf.Boolean("b")]), [[0, 1], [1, 1]]))
    count_once(part[0], part[0].schema.attributes, 2, None)
    assert len(module._COUNTED) >= 1
    del part
    import gc

    gc.collect()
    assert len(module._COUNTED) <= before


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("containing", [None, 3])
def test_the_number_of_cells_is_known_without_listing(order, containing):
    assert number_of_cells(SIZES, order, containing) == subsets(SIZES, order, containing).offsets[-1]


def test_too_many_histograms_are_refused_with_their_number_and_what_would_do():
    attributes = [dpf.Categorical(f"a{k}", ["x", "y", "z", "w"]) for k in range(40)]
    with pytest.raises(dpf.InputError, match=r"context_size = 5 needs 3,838,380 .* set context_size = 2 or less"):
        require_few_cells(attributes, 6, None)
    wide = [dpf.Categorical(f"a{k}", [str(v) for v in range(5000)]) for k in range(3)]
    with pytest.raises(dpf.InputError, match="fewer values"):
        require_few_cells(wide, 2, None)


@pytest.mark.parametrize(
    ("containing", "most", "told"),
    [
        (None, 3839, "context_size = 3 needs 15 joint histograms with 3,840 cells, more than the 3,839 that memory "
         "allows; set context_size = 2 or less, or take context = 'max-relevance'"),
        (None, 3840, None),
        (0, 640, "context_size = 3 needs 10 joint histograms with 2,560 cells, more than the 640 that memory allows; "
         "set context_size = 2 or less, or take context = 'max-relevance'"),
        (0, 639, "context_size = 3 needs 10 joint histograms with 2,560 cells, more than the 639 that memory allows; "
         "set context_size = 1 or less, or take context = 'max-relevance'"),
        (0, 79, "context_size = 3 needs 10 joint histograms with 2,560 cells, more than the 79 that memory allows; "
         "use fewer attributes, or attributes with fewer values, or take context = 'max-relevance'"),
    ],
)  # fmt: skip
def test_of_six_attributes_with_four_values_each_a_refusal_counts_subsets_and_cells(
    containing: int | None, most: int, told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """15 sets of four, of 256 cells; 10 that hold the first. 10 of three have 64 cells, and 5 of two have 16."""
    from dpframework_distance import subsets as module

    monkeypatch.setattr(module, "MOST_CELLS", most)
    attributes = [dpf.Categorical(f"a{k}", list("xyzw")) for k in range(6)]
    if told is None:
        require_few_cells(attributes, 4, containing)
        return
    with pytest.raises(dpf.InputError) as refused:
        require_few_cells(attributes, 4, containing)
    assert str(refused.value) == told


def test_of_many_targets_the_last_ones_histograms_are_kept(block):
    from dpframework_distance import subsets as module

    every = count_once(block, block.schema.attributes, 2, None)
    for target in range(5):
        count_once(block, block.schema.attributes, 3, target)
    assert [(order, target) for _, order, target in module._COUNTED[block]] == [(2, None), (3, 4)]
    assert count_once(block, block.schema.attributes, 2, None) is every


@pytest.mark.parametrize(
    ("context", "size", "order", "target"),
    [
        ("max-relevance", 2, 2, None),
        ("max-relevance", 2, 2, "a2"),
        ("max-relevance", 4, 2, None),  # all others
        ("max-relevance", 4, 2, "a2"),
        ("max-dependency", 2, 3, None),
        ("max-dependency", 2, 3, "a2"),
        ("mean-su", 2, 2, None),
        ("mean-su", 2, 2, "a2"),
        ("common", 2, 3, None),
    ],
)
def test_a_context_counts_sets_of_as_many_attributes_as_it_needs(
    context: str, size: int, order: int, target: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many cells as memory allows are counted, and one more are refused."""
    sizes = [2, 3, 5, 4, 3]
    schema = dpf.Schema([dpf.Categorical(f"a{k}", [str(v) for v in range(n)]) for k, n in enumerate(sizes)], rows=50)
    miner = DPDilca(
        epsilon=1, context=context, target=target, **({} if context == "mean-su" else {"context_size": size})
    )
    wanted = [
        some
        for some in itertools.combinations(range(5), order)
        if (target is None and context != "max-dependency") or 2 in some  # the largest one is in most cells
    ]
    cells = sum(math.prod(sizes[a] for a in some) for some in wanted)
    monkeypatch.setattr("dpframework_distance.subsets.MOST_CELLS", cells)
    miner.plan(schema)
    monkeypatch.setattr("dpframework_distance.subsets.MOST_CELLS", cells - 1)
    with pytest.raises(dpf.InputError, match=f"{cells:,} cells, more than the {cells - 1:,} that memory allows"):
        miner.plan(schema)
