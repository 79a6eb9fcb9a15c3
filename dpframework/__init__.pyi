from . import (
    accountant as accountant,
    basics as basics,
    checks as checks,
    facts as facts,
    formulas as formulas,
    lab as lab,
    ledger as ledger,
    mechanisms as mechanisms,
    plan as plan,
    queries as queries,
    redescriptions as redescriptions,
    reports as reports,
    results as results,
    run as run,
    study as study,
    tables as tables,
    verify as verify,
)
from .accountant.base import Accountant as Accountant
from .accountant.pld import PLDAccountant as PLDAccountant
from .accountant.pure import PureAccountant as PureAccountant
from .accountant.zcdp import ZCDPAccountant as ZCDPAccountant
from .checks.base import (
    Check as Check,
    Finding as Finding,
    Severity as Severity,
)
from .facts.attributes import (
    Attribute as Attribute,
    Boolean as Boolean,
    Categorical as Categorical,
    Numeric as Numeric,
    View as View,
)
from .facts.derived_columns import derive as derive
from .facts.errors import (
    DPFrameworkError as DPFrameworkError,
    InputError as InputError,
    PlanRefused as PlanRefused,
    ReleaseRefused as ReleaseRefused,
    RunStopped as RunStopped,
)
from .facts.logical_descriptions_of_rows import (
    And as And,
    Below as Below,
    Cases as Cases,
    Description as Description,
    Equals as Equals,
    Literal as Literal,
    Not as Not,
    Or as Or,
)
from .facts.open_attribute import Open as Open
from .facts.privacy_losses import (
    PrivacyLoss as PrivacyLoss,
    Relation as Relation,
)
from .facts.privacy_unit import PrivacyUnit as PrivacyUnit
from .facts.public_lookup_tables import PublicTable as PublicTable
from .facts.read_options import ReadOptions as ReadOptions
from .facts.schema import Schema as Schema
from .ledger.entry_hash_chain import LedgerTampered as LedgerTampered
from .ledger.ledger import Ledger as Ledger
from .ledger.ledger_run import LedgerRun as LedgerRun
from .mechanisms.base import Mechanism as Mechanism
from .plan.nodes import (
    FromRelease as FromRelease,
    Node as Node,
    either as either,
    parallel as parallel,
    post as post,
    repeat as repeat,
    sample as sample,
    sequential as sequential,
    step as step,
)
from .plan.spend_block_node import kind as kind, spend as spend
from .queries.base import (
    Query as Query,
    Sensitivity as Sensitivity,
)
from .run.miner_base_and_examples import (
    Example as Example,
    Miner as Miner,
    Witness as Witness,
)
from .run.observers import (
    Observer as Observer,
    Release as Release,
)
from .run.private_table import PrivateTable as PrivateTable
from .study.attribute_summary_study import describe as describe
from .study.hookspecs import hookimpl as hookimpl
from .study.miner_from_parameters import Share as Share
from .study.plugin_registry import (
    miner as miner,
    share as share,
)
from .study.results import Results as Results
from .study.study import Study as Study
from .study.study_plan_totals_and_findings import StudyPlan as StudyPlan
from .tables.coded_table import Table as Table
from .tables.dask_engine import Dask as Dask
from .tables.duckdb_engine import DuckDB as DuckDB
from .tables.encoded_row_blocks import Block as Block
from .tables.engine_base import Engine as Engine
from .tables.in_process_engines import (
    InMemory as InMemory,
    Mapped as Mapped,
    Threads as Threads,
)
from .tables.postgres_engine import Postgres as Postgres
from .tables.reading import (
    read_table as read_table,
    table_from_columns as table_from_columns,
    table_from_frame as table_from_frame,
)
from .tables.schema_inference import (
    draft_schema as draft_schema,
    infer_schema as infer_schema,
    infer_two_view_schema as infer_two_view_schema,
)
from .tables.two_view_reader import read_two_views as read_two_views
from .tables.unread_database_table import DatabaseTable as DatabaseTable
from .tables.unread_table_files import TableFiles as TableFiles

__version__: str
