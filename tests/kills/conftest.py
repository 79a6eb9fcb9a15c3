"""`run.py` is a command, which a test of tests/ gives with few kills."""

collect_ignore_glob = ["*.py"]
