"""The door through which `python -m dpframework` and `dpframework` both come."""

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
    """Run the command of this process, and return its exit code. Ctrl-C ends it quietly at any moment."""
    # Once all is done, the interpreter takes a moment to end, and Ctrl-C would then kill it.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    try:
        gc.disable()  # what is imported stays, so looking through it for garbage is time lost
        from dpframework.cli import main as run  # takes a moment, in which a user may think better of it

        gc.freeze()
        gc.enable()
        return run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
