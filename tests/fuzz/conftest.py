"""Nothing here is a test: `run.py` is run on demand."""

collect_ignore_glob = ["*.py"]
