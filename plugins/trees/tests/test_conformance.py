"""DP-ID3 in all its variants, through the conformance suite that any plugin's miner goes through."""

from dpframework_trees import DPID3

from dpframework.verify.conformance import MinerConformance


class TestDPID3(MinerConformance):
    miner = DPID3
