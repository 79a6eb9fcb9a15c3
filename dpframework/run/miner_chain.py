"""Several miners in one plan, where later miners are given the results of earlier ones.

A result is computed from releases only, so a later miner may use a result as freely as its own releases. The plan and
the loss of every step are fixed before anything runs, and no result changes them. A result can be an input of a later
query (see `queries.released_bounds_queries`). If a plan must depend on a result, make a second study.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, final

import attrs

from dpframework.facts.errors import InputError, nearest
from dpframework.facts.privacy_losses import Relation
from dpframework.facts.privacy_unit import PrivacyUnit
from dpframework.facts.schema import Schema
from dpframework.plan.nodes import Node, sequential
from dpframework.run.miner_base_and_examples import Miner
from dpframework.run.private_table import PrivateTable


def plan_step(name: str, miner: Miner, schema: Schema) -> Node:
    """Return the plan of a study's step by its miner.

    Raises
    ------
    InputError
        If the miner refuses the schema, or returns no plan. The message names the step.
    """
    try:
        node = miner.plan(schema)
    except InputError as error:
        raise InputError(f"step '{name}': {error}") from None
    if not isinstance(node, Node):
        raise InputError(
            f"step '{name}': miner '{miner.name}' planned {type(node).__name__}, not a plan; "
            "return dpf.step(...) or a composition"
        )
    return node


def require_sources(name: str, miner: Miner, earlier: Mapping[str, Miner]) -> None:
    """Refuse a step that uses the result of an unknown or later step, or a result that does not fit the step's miner.

    Raises
    ------
    InputError
        If the step uses such a result. The message names the step.
    """
    for source in miner.sources:
        if source not in earlier:
            remedy = nearest(source, earlier) if earlier else "write that step above it"
            raise InputError(
                f"step '{name}' uses the result of step '{source}', and no earlier step has that name; {remedy}"
            )
    if (why := miner.misfit({source: earlier[source] for source in miner.sources})) is not None:
        raise InputError(f"step '{name}': {why}")


def mine_part(name: str, miner: Miner, table: PrivateTable, found: Mapping[str, Any]) -> Any:
    """Run a miner in its named part of the plan, with the earlier results that it uses.

    Parameters
    ----------
    name
        The name of the part.
    miner
        The miner to run.
    table
        The private table whose plan holds the part.
    found
        The results so far, by their names.
    """
    return miner.mine(table.scope(name, {source: found[source] for source in miner.sources}))


@final
@attrs.frozen
class MinerChain(Miner):
    """Several miners that run one after another like the steps of a study. As one miner, they can be verified together.

    Attributes
    ----------
    links
        The miners, by their names.
    """

    name = "chain"
    links: Mapping[str, Miner]

    def __attrs_post_init__(self) -> None:
        """Refuse a miner that uses the result of an unknown or later miner, or a result that does not fit."""
        earlier: dict[str, Miner] = {}
        for name, miner in self.links.items():
            require_sources(name, miner, earlier)
            earlier[name] = miner

    @classmethod
    def of(cls, name: str, miners: Mapping[str, Miner]) -> Miner:
        """Return a miner by its name or, if it uses results of other miners, the chain of all miners that it needs."""
        needed = [name]
        for one in needed:  # `needed` grows meanwhile
            needed += [source for source in miners[one].sources if source not in needed]
        return miners[name] if len(needed) == 1 else cls({one: miners[one] for one in miners if one in needed})

    def for_study(self, unit: PrivacyUnit, relation: Relation) -> MinerChain:
        """Return a chain of the miners as a study runs them."""
        return MinerChain({name: miner.for_study(unit, relation) for name, miner in self.links.items()})

    def plan(self, schema: Schema) -> Node:
        """Plan each miner in its own part."""
        return sequential(*(sequential(miner.plan(schema), name=name) for name, miner in self.links.items()))

    def values_read(self, schema: Schema) -> Collection[str] | None:
        """Return the attributes whose values some miner may read, or None if some miner may read all values."""
        read = [miner.values_read(schema) for miner in self.links.values()]
        known = [names for names in read if names is not None]
        return list(dict.fromkeys(name for names in known for name in names)) if len(known) == len(read) else None

    def mine(self, table: PrivateTable) -> dict[str, Any]:
        """Run the miners in turn, and return all results by name."""
        found: dict[str, Any] = {}
        for name, miner in self.links.items():
            found[name] = mine_part(name, miner, table, found)
        return found


def shown_miner(miner: Miner) -> Miner:
    """Return the miner that an example is about: the last one of a chain, or else the miner itself."""
    return [*miner.links.values()][-1] if isinstance(miner, MinerChain) else miner
