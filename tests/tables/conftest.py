"""One Postgres server for all tests that need one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tables.postgres_cluster import Cluster, cluster


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    with cluster() as one:
        yield one
