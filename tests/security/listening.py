"""Hosts that a study must not reach: they note each connection, and answer as an attacker would."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import final

import attrs


@final
@attrs.define
class Listener:
    """A host of this machine.

    Attributes
    ----------
    port
        Where it listens.
    received
        The first bytes of each connection.
    """

    port: int
    received: list[bytes] = attrs.field(factory=list)


@contextlib.contextmanager
def listening() -> Iterator[Listener]:
    """Listen while the block runs."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = Listener(server.getsockname()[1])

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:  # the server was closed
                    return
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(2)
                    found.received.append(connection.recv(4096))

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield found
        server.shutdown(socket.SHUT_RDWR)
    thread.join(timeout=5)
