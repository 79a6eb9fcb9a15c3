"""Replays a second, and how near to the claim they come, for every example of DP-ID3. Nothing is asserted.

python -m pytest tests/benchmarks/test_replay_rate.py --benchmark-only -s
"""

from __future__ import annotations

from typing import Any

import pytest
from dpframework_trees import DPID3

import dpframework as dpf
from dpframework.verify import audit

EXAMPLES = DPID3.examples()


@pytest.mark.parametrize("relation", list(dpf.Relation))
@pytest.mark.parametrize("example", EXAMPLES)
def test_replay_rate(benchmark: Any, example: str, relation: dpf.Relation) -> None:
    schema, miner = EXAMPLES[example].schema, EXAMPLES[example].miner
    audit(miner, schema, relation, replays=200)  # compiles the kernels
    report = benchmark.pedantic(lambda: audit(miner, schema, relation, replays=24_000), rounds=1)
    rate = report.replays / report.seconds
    benchmark.extra_info.update(tightness=round(report.tightness, 4), replays_a_second=round(rate))
    print(f"\n{example:24}{relation.value:20} tightness {report.tightness:.4f}, {rate:8,.0f} replays a second")
