"""The miners in all their variants, through the conformance suite that any plugin's miner goes through."""

from typing import ClassVar

from dpframework_trees import DPID3, DPTree
from dpframework_trees.choosing import TreeChoice
from dpframework_trees.redescribe import AltExpM, AltMCMC, MCMCTreePair

from dpframework.verify.conformance import MinerConformance


class TestDPID3(MinerConformance):
    miner = DPID3
    min_tightness: ClassVar = {
        # a threshold that is likely at all has other thresholds between equal values beside it
        "density": 0.7,
        # under replace-one: a row that changes its part loses a count in either, and little of a choice
        "published": 0.55,
    }


class TestDPTree(MinerConformance):
    miner = DPTree
    replays = 2_000
    # in 40 rows no tree is much likelier than the others and can still lose as much of its score as is declared
    min_tightness: ClassVar = {"information-gain": 0.7}


# the published sensitivities are too large by design; two rounds have more releases than one table shows at once
PUBLISHED, ROUNDS = 0.45, 0.6


class TestAltExpM(MinerConformance):
    miner = AltExpM
    min_tightness: ClassVar = {"published": PUBLISHED, "rounds": ROUNDS}


class TestAltMCMC(MinerConformance):
    miner = AltMCMC
    min_tightness: ClassVar = {"published": PUBLISHED, "rounds": ROUNDS}


class TestMCMCTreePair(MinerConformance):
    miner = MCMCTreePair
    min_tightness: ClassVar = {"published": PUBLISHED}


class TestTreeChoice(MinerConformance):
    miner = TreeChoice
