"""The engines that this package defines. Plugins may add others."""

from importlib.metadata import EntryPoint

from dpframework.tables.engines import Engine, InMemory, Mapped, Threads

#: These engines in the order in which they are listed. Those of clusters and databases are imported only where a study
#: names them.
BUILT_IN: tuple[type[Engine] | EntryPoint, ...] = (
    InMemory,
    Threads,
    Mapped,
    EntryPoint("dask", "dpframework.tables.dask_engine:Dask", "dpframework"),
    EntryPoint("duckdb", "dpframework.tables.duckdb_engine:DuckDB", "dpframework"),
    EntryPoint("postgres", "dpframework.tables.postgres_engine:Postgres", "dpframework"),
)
