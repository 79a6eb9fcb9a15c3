"""The engines that are always there."""

from dpframework.tables.dask_engine import Dask
from dpframework.tables.engines import Engine, InMemory, Mapped, Threads

#: In the order in which they are listed.
BUILT_IN: tuple[type[Engine], ...] = (InMemory, Threads, Mapped, Dask)
