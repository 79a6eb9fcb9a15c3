"""These are commands, not tests, and need an extra: pytest leaves them alone."""

collect_ignore_glob = ["*.py"]
