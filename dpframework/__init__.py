"""dpframework: composable differential-privacy mechanisms and data miners. Plan, check, run, verify.

import dpframework as dpf

schema = dpf.Schema.load("adult.schema.toml")
study = dpf.Study(schema, epsilon=1.0)
study.add("tree", dpf.miner("dp-id3", target="income", max_depth=5, epsilon=1.0))
results = study.run(dpf.read_table("adult.csv", schema))
"""

from dpframework import mechanisms, patterns, queries
from dpframework.accountant import Accountant, ConcentratedAccountant, PLDAccountant, PureAccountant
from dpframework.checks import Check, Finding, Severity
from dpframework.engines import Engine, InMemory, Threads
from dpframework.errors import DPFrameworkError, InputError, PlanRefused, ReleaseRefused, RunStopped
from dpframework.hookspecs import hookimpl
from dpframework.inference import infer_schema, infer_two_view_schema
from dpframework.ledger import Ledger, LedgerRun, LedgerTampered
from dpframework.mechanisms import Mechanism
from dpframework.miner import Example, Miner
from dpframework.observers import Observer, Release
from dpframework.patterns import And, Below, Cases, Description, Equals, Literal, Not, Or
from dpframework.plan import Node, Released, either, parallel, post, repeat, sequential, step
from dpframework.privacy import PrivacyLoss, Relation
from dpframework.private_table import PrivateTable
from dpframework.queries import Query, Sensitivity
from dpframework.registry import miner
from dpframework.schema import Attribute, Boolean, Categorical, Numeric, Schema, View
from dpframework.shard import Shard
from dpframework.study import Results, Study, StudyPlan
from dpframework.table import Table, read_table, read_two_views, table_from_columns, table_from_frame
from dpframework.version import __version__ as __version__

__all__ = [
    "Accountant",
    "And",
    "Attribute",
    "Below",
    "Boolean",
    "Cases",
    "Categorical",
    "Check",
    "ConcentratedAccountant",
    "DPFrameworkError",
    "Description",
    "Engine",
    "Equals",
    "Example",
    "Finding",
    "InMemory",
    "InputError",
    "Ledger",
    "LedgerRun",
    "LedgerTampered",
    "Literal",
    "Mechanism",
    "Miner",
    "Node",
    "Not",
    "Numeric",
    "Observer",
    "Or",
    "PLDAccountant",
    "PlanRefused",
    "PrivacyLoss",
    "PrivateTable",
    "PureAccountant",
    "Query",
    "Relation",
    "Release",
    "ReleaseRefused",
    "Released",
    "Results",
    "RunStopped",
    "Schema",
    "Sensitivity",
    "Severity",
    "Shard",
    "Study",
    "StudyPlan",
    "Table",
    "Threads",
    "View",
    "either",
    "hookimpl",
    "infer_schema",
    "infer_two_view_schema",
    "mechanisms",
    "miner",
    "parallel",
    "patterns",
    "post",
    "queries",
    "read_table",
    "read_two_views",
    "repeat",
    "sequential",
    "step",
    "table_from_columns",
    "table_from_frame",
]
