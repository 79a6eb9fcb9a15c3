"""Connecting to a Dask cluster, or starting one on this machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from dpframework.facts.errors import NotOpened

PATIENCE = 120.0  # seconds for a scheduler, or a worker, to be there and to begin


def connected(address: str | None, workers: int | None, ending: contextlib.ExitStack) -> Any:
    """Return a client of a cluster.

    Parameters
    ----------
    address
        Of the scheduler; None to start a cluster on this machine.
    workers
        The number of processes of a cluster that is started here; None for one a processor.
    ending
        What ends the connection, and the cluster if it was started here.

    Raises
    ------
    NotOpened
        If Dask is not installed, or no scheduler can be reached.
    """
    try:
        from dask import config
        from distributed import Client, LocalCluster
    except ImportError:
        raise NotOpened(
            "engine 'dask' needs dask.distributed; install it with: pip install 'dpframework[dask]'"
        ) from None
    if address is None:
        ending.enter_context(config.set(_local_settings(config.get("distributed.nanny.pre-spawn-environ"))))
        pages = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}  # none but the scheduler's own
        number = workers or os.cpu_count() or 1
        cluster = LocalCluster(n_workers=number, threads_per_worker=1, scheduler_kwargs=pages)
        ending.callback(cluster.close)
        client = Client(cluster, direct_to_workers=True)
    else:
        try:
            client = Client(address, timeout=PATIENCE)
        except (OSError, ValueError) as error:
            raise NotOpened(
                f"no Dask scheduler can be reached at {address}: {type(error).__name__}; see that it "
                "runs, and that its version is this one's"
            ) from None
    ending.callback(client.close)
    return client


def _local_settings(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return what Dask is told about workers on this machine, given the environment that it starts them in."""
    return {
        # Dask gives up a worker that is not there again after 15 s: a busy machine takes longer to start one.
        "distributed.deploy.lost-worker-timeout": "1 hour",
        # It also makes a worker return the memory of each array to the system at once, which must then clear as much
        # for the next array: that takes longer than counting does.
        "distributed.nanny.pre-spawn-environ": {k: v for k, v in environment.items() if k != "MALLOC_TRIM_THRESHOLD_"},
    }
