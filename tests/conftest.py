"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real data sets, or skip the test where there is none."""
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    folder = Path(os.environ.get("DPFRAMEWORK_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"real data is not at {folder}; set DPFRAMEWORK_DATA to its folder")
    return folder
