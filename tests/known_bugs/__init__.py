"""Bugs that others have published, planted as plugins, each beside an honest twin.

`catalogue.py` says what a bug is and how it is looked for. The other modules plant them.
`tests/verify/test_known_bugs.py` tests all of them with little patience, and `python tests/known_bugs/run.py` writes
`docs/known-bugs.md`.
"""
