"""The engines that are always there."""

from importlib.metadata import EntryPoint

from dpframework.tables.engines import Engine, InMemory, Mapped, Threads

#: In the order in which they are listed. Engines of clusters and databases are imported only where a study names them.
BUILT_IN: tuple[type[Engine] | EntryPoint, ...] = (
    InMemory,
    Threads,
    Mapped,
    EntryPoint("dask", "dpframework.tables.dask_engine:Dask", "dpframework"),
    EntryPoint("duckdb", "dpframework.tables.duckdb_engine:DuckDB", "dpframework"),
    EntryPoint("postgres", "dpframework.tables.postgres_engine:Postgres", "dpframework"),
)
