from .splits import (
    CodesByClass as CodesByClass,
    SplitScores as SplitScores,
    ThresholdScores as ThresholdScores,
    table_scores as table_scores,
)
from .trees import JointLeaves as JointLeaves, LeavesByClass as LeavesByClass, TreeScores as TreeScores
from .views import Associations as Associations, TreePairScores as TreePairScores
