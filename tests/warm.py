"""Commands without their start: a process has imported the program and waits, and each command is a fork of it.

A command takes a second to import what it needs, and pages have dozens. `serve` waits on a socket for commands; `ask`
hands it one, with the folder, the environment and the streams of whoever asks, and ends with its exit code. Asking
imports nothing but a few modules of the standard library.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator

READY = b"ready\n"


def serve(place: str) -> None:
    """Fork for each command that comes."""
    import numba
    import opendp.prelude
    import polars

    from dpframework.cli import command
    from dpframework.study.plugin_registry import registry

    del numba, opendp, polars
    command()
    registry()  # which imports the plugins
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children but who asked for them
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(place)
        server.listen()
        os.write(1, READY)
        while True:
            asked, _ = server.accept()
            if os.fork() == 0:
                server.close()
                _run(asked)
            asked.close()


def _run(asked: socket.socket) -> None:
    """Run one command as whoever asked would have run it, tell the exit code, and end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    sent, streams, _, _ = socket.recv_fds(asked, 1 << 20, 3)
    request = json.loads(sent)
    for own, given in enumerate(streams):
        os.dup2(given, own)
        os.close(given)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["dpframework", *request["arguments"]]
    code: object = 1
    try:
        from dpframework.__main__ import main

        code = main()
    except SystemExit as ended:
        code = ended.code
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        asked.sendall(str(code if isinstance(code, int) else int(code is not None)).encode())
        os._exit(0)


def ask(place: str, arguments: list[str]) -> int:
    """Have a command run, and return its exit code."""
    request = {"folder": os.getcwd(), "environment": dict(os.environ), "arguments": arguments}
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(place)
        socket.send_fds(asking, [json.dumps(request).encode()], [0, 1, 2])
        return int(asking.recv(16) or b"1")


@contextlib.contextmanager
def warm_commands() -> Iterator[list[str]]:
    """Yield how a command begins that runs in a fork; what serves them ends with the block."""
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, "socket")
        with subprocess.Popen([sys.executable, __file__, "serve", place], stdout=subprocess.PIPE) as serving:
            assert serving.stdout is not None
            assert serving.stdout.readline() == READY
            try:
                yield [sys.executable, "-I", "-S", __file__, "ask", place]
            finally:
                serving.kill()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    sys.exit(ask(sys.argv[2], sys.argv[3:]))
