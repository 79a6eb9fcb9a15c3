"""Standing attacks, run by name: `python tests/attacks/run.py draws races copies resumed` (see `tests/README.md`)."""
