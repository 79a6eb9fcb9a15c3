"""Sums of noise over blocks: each number is in one block, and the largest norm is that of the worst block."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given, strategies as st

from dpframework.mechanisms.knorm_ball_noise_base import largest_sum, sums_within_blocks

BLOCKS = st.lists(st.lists(st.integers(-99, 99), min_size=1, max_size=4), min_size=1, max_size=4)


@given(BLOCKS)
def test_blocks_are_added_up_one_after_another(blocks: list[list[int]]) -> None:
    calibration: Any = SimpleNamespace(facts=SimpleNamespace(histograms=tuple(map(len, blocks))))
    noise = np.array([number for block in blocks for number in block])
    assert sums_within_blocks(noise, calibration).tolist() == [sum(block) for block in blocks]
    assert largest_sum(noise, calibration) == max(sum(map(abs, block)) for block in blocks)
