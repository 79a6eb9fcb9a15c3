"""The engines that this package defines, which hold private rows and count them. Plugins may add other engines."""

from importlib.metadata import EntryPoint

from dpframework.tables.engine_base import Engine
from dpframework.tables.in_process_engines import InMemory, Mapped, Threads

#: These engines in the order in which they are listed. An engine for a cluster or a database is an entry point, so that
#: its module is imported only when it is needed.
BUILT_IN: tuple[type[Engine] | EntryPoint, ...] = (
    InMemory,
    Threads,
    Mapped,
    EntryPoint("dask", "dpframework.tables.dask_engine:Dask", "dpframework"),
    EntryPoint("duckdb", "dpframework.tables.duckdb_engine:DuckDB", "dpframework"),
    EntryPoint("postgres", "dpframework.tables.postgres_engine:Postgres", "dpframework"),
)
