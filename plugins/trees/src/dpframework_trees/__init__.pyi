from .additive.estimators import (
    DPAdditiveClassifier as DPAdditiveClassifier,
    DPAdditiveRegressor as DPAdditiveRegressor,
)
from .additive.miner import DPAdditive as DPAdditive
from .additive.model import AdditiveModel as AdditiveModel
from .additive.perturbation import ObjectivePerturbation as ObjectivePerturbation
from .additive.regression import DPAdditiveRegression as DPAdditiveRegression
from .additive.regression_model import AdditiveRegression as AdditiveRegression
from .default_classifier_miner import DPClassifierMiner as DPClassifierMiner
from .default_estimator import DPClassifier as DPClassifier
from .dptree import DPTree as DPTree
from .estimator import (
    DPID3Classifier as DPID3Classifier,
    DPTreeClassifier as DPTreeClassifier,
    PrivateClassifier as PrivateClassifier,
    TreeClassifier as TreeClassifier,
)
from .grid_search import PrivateTreeSearch as PrivateTreeSearch
from .id3 import DPID3 as DPID3
from .private_estimator import PrivateEstimator as PrivateEstimator
from .redescribe import (
    AltExpM as AltExpM,
    AltMCMC as AltMCMC,
    MatchedTrees as MatchedTrees,
    MCMCTreePair as MCMCTreePair,
)
