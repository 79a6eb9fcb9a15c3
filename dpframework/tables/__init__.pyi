from .coded_table import Table as Table
from .contribution_bounding import kept_rows as kept_rows
from .count_and_split_kernels import popcount as popcount
from .crosstab_engine_base import (
    CaseColumn as CaseColumn,
    GroupingEngine as GroupingEngine,
    PartSelection as PartSelection,
    SelectedRows as SelectedRows,
    Selection as Selection,
    select_lineage as select_lineage,
)
from .crosstab_expressions import (
    Column as Column,
    Crosstab as Crosstab,
    JointCounts as JointCounts,
    WholeSteps as WholeSteps,
    as_cases as as_cases,
    cells_of_column as cells_of_column,
    joint_counts_of as joint_counts_of,
)
from .dask_engine import Dask as Dask
from .duckdb_engine import DuckDB as DuckDB
from .encoded_row_blocks import (
    Block as Block,
    cells_of as cells_of,
)
from .engine_base import (
    Engine as Engine,
    Rows as Rows,
)
from .fast_code_counts import (
    counts_by_class as counts_by_class,
    tally as tally,
)
from .file_guess import guess_file as guess_file
from .in_process_engines import (
    InMemory as InMemory,
    Mapped as Mapped,
    Threads as Threads,
)
from .open_attribute_keys import KeyBook as KeyBook, KeyColumn as KeyColumn
from .output_suppression import silenced as silenced
from .postgres_engine import Postgres as Postgres
from .prediction_rows import (
    NewRows as NewRows,
    UnknownCellWarning as UnknownCellWarning,
)
from .reading import (
    read_table as read_table,
    table_from_columns as table_from_columns,
    table_from_frame as table_from_frame,
)
from .schema_draft import ColumnNote as ColumnNote, SchemaDraft as SchemaDraft
from .schema_fit import (
    Misfit as Misfit,
    check_fit as check_fit,
)
from .schema_inference import (
    draft_schema as draft_schema,
    infer_schema as infer_schema,
    infer_two_view_schema as infer_two_view_schema,
)
from .sql_expressions import SqlColumns as SqlColumns
from .two_view_reader import read_two_views as read_two_views
from .unread_database_table import DatabaseTable as DatabaseTable
from .unread_table_files import TableFiles as TableFiles
