"""The data that a study may run on, as one type."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dpframework.tables.coded_table import Table
from dpframework.tables.database_table import DatabaseTable
from dpframework.tables.table_files import TableFiles

#: A table, its files, a database's table, or a function that returns one of them.
Given: TypeAlias = Table | TableFiles | DatabaseTable | Callable[[], Table | TableFiles | DatabaseTable]
