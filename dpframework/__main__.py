"""The entry point of `python -m dpframework` and of the command `dpframework`."""

from __future__ import annotations

import sys

if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    # `python -m` looks for modules in the working folder first. Files that come with a study may lie there, and one
    # called `polars.py` would run. `python -P` and the command `dpframework` never look there.
    del sys.path[0]

import atexit
import gc
import signal


def main() -> int:
    """Run the command line of this process, and return its exit code. Ctrl-C ends it without a traceback."""
    # The interpreter takes a moment to end after the command is done. Ctrl-C is ignored meanwhile, since it would kill
    # the interpreter, and the exit code would be lost.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    try:
        gc.disable()  # imported modules stay in memory, so searching them for garbage would waste time
        from dpframework.cli import main as run  # this takes a moment, and the user may press Ctrl-C meanwhile

        gc.freeze()
        gc.enable()
        return run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
