"""The engines that are always there."""

from importlib.metadata import EntryPoint

from dpframework.tables.engines import Engine, InMemory, Mapped, Threads

#: In the order in which they are listed. That of clusters is imported by studies that name it.
BUILT_IN: tuple[type[Engine] | EntryPoint, ...] = (
    InMemory,
    Threads,
    Mapped,
    EntryPoint("dask", "dpframework.tables.dask_engine:Dask", "dpframework"),
)
