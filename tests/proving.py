"""A mark for tests that prove claims, which needs solvers."""

from __future__ import annotations

import pytest

from dpframework.formulas import has_solvers

needs_solvers = pytest.mark.skipif(not has_solvers(), reason="proofs need the extra 'prove': pip install -e '.[prove]'")
