"""The type of the data on which a study can run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dpframework.tables.coded_table import Table
from dpframework.tables.unread_database_table import DatabaseTable
from dpframework.tables.unread_table_files import TableFiles

#: A table, files, a table in a database, or a function that returns one of these.
Given: TypeAlias = Table | TableFiles | DatabaseTable | Callable[[], Table | TableFiles | DatabaseTable]
