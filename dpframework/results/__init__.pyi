from .class_prediction_patterns import Pattern as Pattern
from .error_bounds import (
    BoundKind as BoundKind,
    ErrorBound as ErrorBound,
    TableSize as TableSize,
    bound_of_supports as bound_of_supports,
)
from .estimates import Estimate as Estimate, QuantileEstimate as QuantileEstimate
from .frequencies import Frequencies as Frequencies
from .grid_and_bounds_results import AdaptiveGrid as AdaptiveGrid, FoundBounds as FoundBounds
from .groups import Groups as Groups
from .keys import KeyTable as KeyTable, ReleasedKeys as ReleasedKeys
from .marginal_tables import MarginalTable as MarginalTable, MarginalTables as MarginalTables
from .matrix import Matrix as Matrix, matrices_of as matrices_of
from .noisy_count_with_interval import Noisy as Noisy
from .released_row_cap_result import RowsPerUnit as RowsPerUnit
from .result import (
    Drawable as Drawable,
    DrawableResult as DrawableResult,
    StoredResult as StoredResult,
    axes_or_new as axes_or_new,
    without_math as without_math,
)
from .results_by_key import ByKey as ByKey
from .simplex_projection import nearest_on_simplex as nearest_on_simplex
from .table_text import TextTable as TextTable
