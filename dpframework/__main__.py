"""`python -m dpframework` is `dpframework`; the door through which both come."""

from __future__ import annotations

import atexit
import gc
import signal
import sys


def main() -> int:
    """Run the command of this process, and return its exit code; Ctrl-C ends it quietly at any moment."""
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
