"""What the plugin gives its hooks: each miner by the name that it has itself."""

from __future__ import annotations

from dpframework_greedy import hooks

import dpframework as dpf


def test_each_entry_point_is_of_a_miner_with_its_name() -> None:
    found = hooks.dpframework_miners()
    assert found
    for point in found:
        miner = point.load()
        assert issubclass(miner, dpf.Miner)
        assert (miner.name, point.group) == (point.name, "dpframework")
