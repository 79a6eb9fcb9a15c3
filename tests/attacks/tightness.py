"""How near a search comes to the claim of each example of each built-in miner, under both relations.

A claim that nothing comes near may be too large, or its search too weak to find what is wrong. So of each example .9 is
lost by some transcript, or the example says by what proof less can be lost (`Example.loose`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dpframework.facts.errors import InputError
from dpframework.facts.privacy_losses import Relation
from dpframework.run.miner_base_and_examples import Example
from dpframework.study.plugin_registry import registry
from dpframework.verify import audit

LEAST = 0.9
REPLAYS = (300, 6000, 20_000)  # more where fewer do not reach it


def examples(miners: Collection[str] = ()) -> Iterator[tuple[str, Example]]:
    """Yield the name of each example, of all miners or of some, and the example."""
    for name, miner in sorted(registry().miners.items()):
        if not miners or name in miners:
            for called, example in miner.component.examples().items():
                yield f"{name} ({called})", example


def reached(example: Example, relation: Relation) -> tuple[str, str | None]:
    """Return what an audit of an example says, and what is wrong with it.

    An example that needs a public number of rows makes no claim if a row is added or removed.
    """
    for replays in REPLAYS:
        try:
            report = audit(
                example.miner,
                example.schema,
                relation,
                delta=example.delta,
                replays=replays,
                witnesses=example.witnesses,
                unit=example.unit,
            )
        except InputError as error:
            return "no claim", None if "claims no finite epsilon" in str(error) else str(error)
        if not report.passed:
            return "its claim does not hold", str(report)
        tightness = report.tightness or 0.0
        if tightness >= LEAST or example.loose:
            break
    said = f"{tightness:.2f} of the claim at {replays:,} replays"
    if tightness >= LEAST:
        return said, None
    return (f"{said}; {example.loose}", None) if example.loose else (said, f"{LEAST} is asked, and no ceiling is given")


def problems(miners: Collection[str] = ()) -> Iterator[tuple[str, str | None]]:
    """Yield what was reached of each example under each relation, and what is wrong."""
    for name, example in examples(miners):
        for relation in Relation:
            said, wrong = reached(example, relation)
            yield f"{name}, {relation.value}: {said}", wrong
