"""Miners in a chain: each stands after those whose results it is given, and nobody else is in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

import dpframework as dpf
from dpframework.plan.nodes import Node, Sequential
from dpframework.run.miner_base_and_examples import Miner
from dpframework.run.miner_chain import MinerChain, mine_part, require_sources, shown_miner

SCHEMA = dpf.Schema([dpf.Boolean("ill")])


@attrs.frozen
class Given(Miner):
    """Is given the results of some steps, of which it may refuse some."""

    name = "given"
    asked: tuple[str, ...] = ()
    refused: str | None = None

    @property
    def sources(self) -> Sequence[str]:
        return self.asked

    def misfit(self, sources: Mapping[str, Miner]) -> str | None:
        return f"'{self.refused}' does not serve" if self.refused in sources else None

    def plan(self, schema: dpf.Schema) -> Node:
        return dpf.step("count", dpf.queries.Histogram(schema["ill"]), dpf.mechanisms.Laplace(1))

    def mine(self, table: Any) -> Any:
        return table


MINERS = {
    "a": Given(),
    "b": Given(("a",)),
    "c": Given(),
    "d": Given(("b", "c")),
    "e": Given(("b", "a")),
    "f": Given(("e", "d")),
}


@pytest.mark.parametrize(
    ("name", "links"),
    [("a", ""), ("c", ""), ("b", "ab"), ("d", "abcd"), ("e", "abe"), ("f", "abcdef")],
)
def test_a_miner_comes_with_those_whose_results_it_is_given_in_their_order(name: str, links: str) -> None:
    found = MinerChain.of(name, MINERS)
    if links:
        assert isinstance(found, MinerChain)
        assert list(found.links.items()) == [(one, MINERS[one]) for one in links]
        plan = found.plan(SCHEMA)
        assert isinstance(plan, Sequential)
        assert [(part.name, part.children) for part in plan.children if isinstance(part, Sequential)] == [
            (one, (MINERS[one].plan(SCHEMA),)) for one in links
        ]
    else:
        assert found is MINERS[name]


def test_a_source_stands_before_and_serves() -> None:
    with pytest.raises(dpf.InputError, match=r"^step 'b' uses .* 'a', and .* that name; write that step above it$"):
        MinerChain({"b": MINERS["b"], "a": MINERS["a"]})
    with pytest.raises(dpf.InputError, match=r"^step 'x' uses the result of step 'x', .*; known: y$"):
        require_sources("x", Given(("x",)), {"y": Given()})
    with pytest.raises(dpf.InputError, match=r"^step 'x': 'y' does not serve$"):
        require_sources("x", Given(("y", "z"), refused="y"), {"y": Given(), "z": Given()})
    require_sources("x", Given(("y", "z"), refused="w"), {"w": Given(), "y": Given(), "z": Given()})


def test_a_miner_is_given_the_results_it_asks_for_and_no_others() -> None:
    class Recorded:
        def scope(self, name: str, given: Mapping[str, Any]) -> Any:
            return name, dict(given)

    table: Any = Recorded()
    found = {"a": 1, "b": 2, "c": 3}
    assert mine_part("d", MINERS["d"], table, found) == ("d", {"b": 2, "c": 3})
    assert mine_part("a", MINERS["a"], table, found) == ("a", {})


def test_of_a_chain_the_last_miner_is_shown() -> None:
    chain = MinerChain({name: MINERS[name] for name in "abcd"})
    assert shown_miner(chain) is MINERS["d"]
    assert shown_miner(MINERS["b"]) is MINERS["b"]
