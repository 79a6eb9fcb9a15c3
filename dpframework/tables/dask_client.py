"""Connect to a Dask cluster, or start one on this machine.

Whoever can connect to a scheduler can run code on its workers, and whoever poses as a scheduler can do harm to this
process. So both sides show certificates, unless the owner of the data sets `trust_network`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any, final

import attrs

from dpframework.facts.errors import InputError, NotOpened
from dpframework.facts.parameter_checks import is_whole_number
from dpframework.tables.dask_unpickle_filter import NotPlain, client_class, plain_messages

PATIENCE = 120.0  # how many seconds to wait for a scheduler or a worker


@final
@attrs.frozen
class Connection:
    """How a cluster is reached or started. For the meaning of the attributes see `Dask`."""

    address: str | None = None
    workers: int | None = None
    ca: str | None = None
    certificate: str | None = None
    key: str | None = attrs.field(default=None, repr=False)
    trust_network: bool = False

    def __attrs_post_init__(self) -> None:
        """Refuse parameters that do not fit together."""
        address, files = self.address, (self.ca, self.certificate, self.key)
        if address is not None and (not isinstance(address, str) or "://" not in address):
            raise InputError(f"the address of a scheduler is a text such as 'tls://10.0.0.1:8786', not {address!r}")
        if self.workers is not None and not is_whole_number(self.workers):
            raise InputError(f"a local cluster needs a positive number of workers, not {self.workers!r}")
        if address is not None and self.workers is not None:
            raise InputError("a cluster with an address has its own workers; give an address or workers, not both")
        for file in files:
            if file is not None and (not isinstance(file, str) or not os.path.isabs(os.path.expanduser(file))):
                raise InputError(f"ca, certificate and key are absolute paths of files, and one is {file!r}")
        if not isinstance(self.trust_network, bool):
            raise InputError(f"trust_network is true or false, not {self.trust_network!r}")
        if address is None:
            if any(files) or self.trust_network:
                raise InputError(
                    "a local cluster makes its own certificates; leave out ca, certificate, key and trust_network, or "
                    "give an address"
                )
        elif address.startswith("tls://"):
            if not all(files):
                raise InputError(
                    f"the scheduler at {address} needs ca, certificate and key, since both sides show who they are; "
                    "give all three"
                )
        elif not self.trust_network or any(files):
            raise InputError(
                f"the connection to {address} is not encrypted, and anybody on the network can take part in it; use a "
                "tls:// address with ca, certificate and key, or write trust_network = true"
            )

    def open(self, ending: contextlib.ExitStack) -> Any:
        """Return a client of the cluster.

        Parameters
        ----------
        ending
            The stack that closes the connection when it ends, and the cluster too if it was started here.

        Raises
        ------
        NotOpened
            If a package is not installed, or no scheduler can be reached.
        """
        try:
            import cryptography  # noqa: F401 - for the certificates of a local cluster
            from dask import config
            from distributed import Client, LocalCluster
            from distributed.security import Security
        except ImportError as error:
            raise NotOpened(
                f"engine 'dask' needs {error.name}; install it with: pip install 'dpframework[dask]'"
            ) from None
        if self.address is None:
            ending.enter_context(config.set(_local_settings(config.get("distributed.nanny.pre-spawn-environ"))))
            pages = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}  # no web pages for other machines
            number = self.workers or os.cpu_count() or 1
            # These certificates exist in memory only, so another user of the machine cannot connect to the workers.
            security = Security.temporary()
            cluster = LocalCluster(
                n_workers=number, threads_per_worker=1, scheduler_kwargs=pages, security=security, host="127.0.0.1"
            )
            ending.callback(cluster.close)
            client = Client(cluster, direct_to_workers=True)
        else:
            try:
                with plain_messages():
                    client = client_class()(self.address, timeout=PATIENCE, security=self._security())
            except (OSError, ValueError, NotPlain) as error:
                raise NotOpened(
                    f"no Dask scheduler can be reached at {self.address}: {type(error).__name__}; check that it runs, "
                    "that it has the same version of Dask, and that the certificates are signed by its authority"
                ) from None
        ending.callback(client.close)
        return client

    def speaking(self) -> contextlib.AbstractContextManager[None]:
        """Return the context in which to use the client.

        In this context, answers of a cluster that was not started here are read as plain data. For a cluster that was
        started here, this would protect nothing. Its scheduler is a part of this process, and unpickles what workers
        send.
        """
        return contextlib.nullcontext() if self.address is None else plain_messages()

    def _security(self) -> Any:
        """Return Dask's settings of certificates."""
        from distributed.security import Security

        files = [os.path.expanduser(file) for file in (self.ca, self.certificate, self.key) if file is not None]
        if not files:
            return Security(require_encryption=False)
        ca, certificate, key = files
        return Security(tls_ca_file=ca, tls_client_cert=certificate, tls_client_key=key, require_encryption=True)


def _local_settings(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return Dask's settings for workers on this machine, given the environment that Dask starts them in."""
    return {
        # Dask gives up a lost worker that is not back after 15 s, but a busy machine takes longer to start a worker.
        "distributed.deploy.lost-worker-timeout": "1 hour",
        # Dask also makes a worker return the memory of each array to the system at once. The system must then clear as
        # much memory for the next array, which takes longer than counting.
        "distributed.nanny.pre-spawn-environ": {k: v for k, v in environment.items() if k != "MALLOC_TRIM_THRESHOLD_"},
    }
