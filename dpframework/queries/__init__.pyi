from .base import Norm as Norm, Query as Query, QueryFacts as QueryFacts, Sensitivity as Sensitivity
from .boxes import BoxCounts as BoxCounts
from .counts import (
    CellCounts as CellCounts,
    Count as Count,
    Histogram as Histogram,
    JointHistogram as JointHistogram,
    Marginals as Marginals,
    cell_counts as cell_counts,
    histogram_sensitivities as histogram_sensitivities,
    share_sensitivities as share_sensitivities,
)
from .entropy_sensitivity import entropy_change as entropy_change
from .formula_scores import FormulaScores as FormulaScores, formula_sensitivity as formula_sensitivity
from .group_queries import GroupCounts as GroupCounts, GroupMoments as GroupMoments, GroupSums as GroupSums
from .key_queries import KeyCounts as KeyCounts, Keys as Keys
from .marginal_residuals import Residuals as Residuals
from .plan_file_query import PlanFileQuery as PlanFileQuery
from .query_counts_on_row_blocks import Counting as Counting
from .ranks import QuantileScores as QuantileScores
from .released_bounds_queries import (
    AtReleasedBounds as AtReleasedBounds,
    ReleasedBins as ReleasedBins,
    ScaledSums as ScaledSums,
)
from .released_row_cap_queries import (
    AtReleasedRows as AtReleasedRows,
    RowsPerUnitScores as RowsPerUnitScores,
    numbers_of_rows as numbers_of_rows,
)
from .row_set_intersections import RowSets as RowSets, in_common as in_common
from .runtime_attribute_queries import ReadsAmong as ReadsAmong
from .scores import CandidateScores as CandidateScores, PiecewiseScores as PiecewiseScores, Supports as Supports
from .sums import BoundDistances as BoundDistances, BoundedSum as BoundedSum
