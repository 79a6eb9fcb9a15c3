"""A private choice among tree miners: what is planned and counted, and that the best tree is taken."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dpframework_trees import DPID3, DPTree
from dpframework_trees.tree_choice import ChosenTree, CorrectPredictions, TreeChoice

import dpframework as dpf
from dpframework import InMemory, Threads
from dpframework.plan import Step, walk
from dpframework.queries import Norm

SCHEMA = dpf.Schema(
    [
        dpf.Boolean("ripe"),
        dpf.Numeric("size", 0, 8, cuts=[3, 5]),
        dpf.Boolean("noise"),
        dpf.Categorical("grade", ["good", "bad"]),
    ]
)


def table(rows: int = 400) -> dpf.Table:
    """The grade follows from ripe."""
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, a.size, rows) for a in SCHEMA])
    codes[3] = codes[0]
    return dpf.Table.from_codes(SCHEMA, codes)


def blind_and_seeing() -> list[dpf.Miner]:
    return [DPID3("grade", 50, attributes=["noise"], pruning=False), DPTree("grade", 100, max_depth=1)]


def chosen(miners: list[dpf.Miner], rows: dpf.Table) -> ChosenTree:
    miner = TreeChoice("grade", miners, 30)
    study = dpf.Study(SCHEMA, epsilon=200)
    study.add("tree", miner)
    return study.run(rows, seed=0)["tree"]


def test_the_tree_with_the_most_correct_predictions_is_taken() -> None:
    """With a large budget, at either place; 400 rows against about 200."""
    for turned, position in ((False, 1), (True, 0)):
        found = chosen(blind_and_seeing()[:: -1 if turned else 1], table())
        assert found.position == position
        assert found.tree.predict(table()).tolist() == np.array(["good", "bad"])[table().codes[3]].tolist()
        assert str(found) == f"candidate {position + 1}\n{found.tree}"
        again = ChosenTree.from_dict(json.loads(json.dumps(found.to_dict())))
        assert (again.position, str(again.tree)) == (position, str(found.tree))


@pytest.mark.parametrize("engine", [InMemory(), Threads(3)], ids=["one block", "three"])
def test_correct_predictions_are_counted_row_by_row(engine: dpf.Engine) -> None:
    rows = table()
    trees = [chosen([miner], rows).tree for miner in blind_and_seeing()]
    query = CorrectPredictions(SCHEMA["grade"], 2, among=("ripe", "noise", "grade"))
    truth = np.array(["good", "bad"])[rows.codes[3]]
    expected = [int((tree.predict(rows) == truth).sum()) for tree in trees]
    assert query.evaluate(engine, engine.load(rows), trees=trees).tolist() == expected
    assert expected[1] == 400 > expected[0]
    for block in engine.load(rows):
        assert query.tables(trees=trees).count(block).tolist() == query.count(block, trees=trees).tolist()
    assert list(query.candidates(trees=trees)) == [0, 1]
    with pytest.raises(dpf.InputError, match="1 trees were given where 2 are planned"):
        query.candidates(trees=trees[:1])


def test_a_row_is_predicted_correctly_or_not() -> None:
    query = CorrectPredictions(SCHEMA["grade"], 3, among=("ripe", "grade"))
    assert query.text == "correct predictions of grade by 3 trees"
    assert query.integer
    assert set(query.attributes) == {"ripe", "grade"}
    (declared,) = query.sensitivities
    assert (declared.norm, declared.add_or_remove_one, declared.replace_one) == (Norm.LINF, 1, 1)
    assert (declared.rise, declared.fall) == (1, 0)


def plan_of(miners: list[dpf.Miner]) -> dpf.StudyPlan:
    study = dpf.Study(SCHEMA, epsilon=200)
    study.add("tree", TreeChoice("grade", miners, Fraction(1, 3)))
    return study.plan()


def test_all_candidates_and_the_choice_are_paid_for() -> None:
    plan = plan_of(blind_and_seeing())
    assert plan.total().epsilon == 150 + Fraction(1, 3)
    paths = [path for path, _ in plan.placed_steps()]
    assert {path.split("/")[1] for path in paths} == {"candidate 1", "candidate 2", "choice"}
    (choice,) = (step for step in plan.steps() if step.name == "choice")
    assert choice.mechanism.epsilon == Fraction(1, 3)
    with pytest.raises(dpf.InputError, match="there is no candidate to choose from"):
        TreeChoice("grade", [], 1)


def test_the_choice_reads_what_any_candidate_may_test() -> None:
    def read(miners: Any) -> set[str]:
        nodes = walk(TreeChoice("grade", miners, 1).plan(SCHEMA))
        (choice,) = (node for node in nodes if isinstance(node, Step) and node.name == "choice")
        return set(choice.query.attributes)

    one, two = (DPID3("grade", 1, attributes=[name]) for name in ("noise", "size"))
    assert read([one]) == {"noise", "grade"}
    assert read([one, two]) == {"noise", "size", "grade"}


def test_values_are_read_of_what_any_candidate_reads_them_of() -> None:
    class Reads(DPID3):
        def values_read(self, schema: dpf.Schema) -> Any:
            return self.max_depth if self.max_depth is None else {"size"} if self.max_depth == 2 else {"ripe"}

    def read(*depths: int) -> Any:
        return TreeChoice("grade", [Reads("grade", 1, max_depth=depth) for depth in depths], 1).values_read(SCHEMA)

    assert read(2, 3) == {"size", "ripe"}
    assert read(2) == {"size"}
    every = TreeChoice("grade", [DPID3("grade", 1)], 1).values_read(SCHEMA)
    expected = DPID3("grade", 1).values_read(SCHEMA)
    assert every == (None if expected is None else set(expected))
