"""`run.py` is a command, which a test of tests/ gives with small sizes."""

collect_ignore_glob = ["*.py"]
