"""A filter for messages of a Dask cluster that was not started here.

Only the few classes that this client needs are unpickled. Dask unpickles messages in several places, but always by the
same function. While this client talks to such a cluster, a replacement of that function refuses every class and
function that is not listed here. Other clients of the process are not affected. A context variable, which Dask's tasks
and threads inherit, says which messages are read for this client.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import io
import pickle
from collections.abc import Iterator
from typing import Any, final

_ALLOWED = {
    ("distributed.actor", "Actor"): "a handle of the object that holds the rows on a worker",
    ("dpframework.tables.cluster_worker", "ClusterWorker"): "the class of that object",
    ("builtins", "bytes"): "the class of that object's answers",
}
NotPlain = pickle.UnpicklingError  # raised for a message that holds another class
_plain_only = contextvars.ContextVar("plain_only", default=False)


@final
class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return a class if it is one of the allowed ones."""
        if (module, name) not in _ALLOWED:
            raise NotPlain("a message holds a class that a cluster has no reason to send")
        return super().find_class(module, name)


@contextlib.contextmanager
def plain_messages() -> Iterator[None]:
    """Let Dask unpickle only a few classes from messages that are read for calls in this context."""
    _watch_messages()
    token = _plain_only.set(True)
    try:
        yield
    finally:
        _plain_only.reset(token)


@functools.cache
def _watch_messages() -> None:
    """Put a function that checks messages in place of Dask's own, once in a process."""
    from distributed import client as of_clients
    from distributed.protocol import pickle as of_dask

    usual = of_dask.loads

    def loads(content: Any, *, buffers: Any = ()) -> Any:
        if not _plain_only.get():
            return usual(content, buffers=buffers)
        return _Unpickler(io.BytesIO(content), buffers=buffers).load()

    of_dask.loads = of_clients.loads = loads


@functools.cache
def client_class() -> Any:
    """Return a class of Dask clients that handle no events.

    Dask's own clients unpickle and print the warnings that a cluster sends.
    """
    from distributed import Client

    class PlainClient(Client):  # type: ignore[misc]
        _default_event_handlers: dict[str, Any] = {}  # noqa: RUF012 as Dask has it

    return PlainClient
