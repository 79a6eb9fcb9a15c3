from .affordable_matches_and_row_cap import (
    CAP as CAP,
    budget_of_choices as budget_of_choices,
    cap_of as cap_of,
    choices_carried as choices_carried,
    rows_meant as rows_meant,
)
from .cell_union_redescriptions import (
    CellTable as CellTable,
    ReportConditions as ReportConditions,
    distinct as distinct,
    nothing_above as nothing_above,
)
from .joint_distribution_fit import DESIGNS as DESIGNS
from .match_scores import Match as Match, MatchScores as MatchScores, binary_tests as binary_tests
from .redescription import Redescription as Redescription, p_values as p_values
from .redescriptions import Redescriptions as Redescriptions
from .redescriptions_from_match_combinations import Joined as Joined, OverlappingTables as OverlappingTables
from .truth_cells_query import TruthCells as TruthCells
