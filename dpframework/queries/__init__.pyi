from .base import Norm as Norm, Query as Query, QueryFacts as QueryFacts, Sensitivity as Sensitivity
from .block_counts import Counting as Counting
from .boxes import BoxCounts as BoxCounts
from .chosen_attributes import ReadsAmong as ReadsAmong
from .counts import (
    CellCounts as CellCounts,
    Count as Count,
    Histogram as Histogram,
    JointHistogram as JointHistogram,
    cell_counts as cell_counts,
    histogram_sensitivities as histogram_sensitivities,
    share_sensitivities as share_sensitivities,
)
from .entropy_sensitivity import entropy_change as entropy_change
from .formula_scores import FormulaScores as FormulaScores, formula_sensitivity as formula_sensitivity
from .grouped import GroupCounts as GroupCounts, GroupMoments as GroupMoments, GroupSums as GroupSums
from .keys import KeyCounts as KeyCounts, Keys as Keys
from .marginal_residuals import Residuals as Residuals
from .marginals import Marginals as Marginals
from .plan_file_query import Declared as Declared
from .ranks import QuantileScores as QuantileScores
from .released_bounds import (
    AtReleasedBounds as AtReleasedBounds,
    ReleasedBins as ReleasedBins,
    ScaledSums as ScaledSums,
)
from .row_caps import (
    AtReleasedRows as AtReleasedRows,
    RowsPerUnitScores as RowsPerUnitScores,
    numbers_of_rows as numbers_of_rows,
)
from .row_sets import RowSets as RowSets, in_common as in_common
from .scores import CandidateScores as CandidateScores, PiecewiseScores as PiecewiseScores, Supports as Supports
from .sums import BoundDistances as BoundDistances, BoundedSum as BoundedSum
