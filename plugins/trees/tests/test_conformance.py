"""The miners in all their variants, through the conformance suite that any plugin's miner goes through."""

from dpframework_trees import DPID3, DPTree
from dpframework_trees.choosing import TreeChoice
from dpframework_trees.redescribe import AltExpM, AltMCMC, MCMCTreePair

from dpframework.verify.conformance import MinerConformance


class TestDPID3(MinerConformance):
    miner = DPID3


class TestDPTree(MinerConformance):
    miner = DPTree


class Redescribers(MinerConformance):
    replays = 1_500


class TestAltExpM(Redescribers):
    miner = AltExpM


class TestAltMCMC(Redescribers):
    miner = AltMCMC


class TestMCMCTreePair(Redescribers):
    miner = MCMCTreePair


class TestTreeChoice(MinerConformance):
    miner = TreeChoice
