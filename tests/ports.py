"""Ports of the loopback interface: those that nothing uses at the moment, and those of a process."""

import errno
import os
import random
import socket
from collections.abc import Iterator
from functools import cache

import psutil

_FIRST_PORT, _LAST_PORT = 1_024, 10_239
"""Below those that `messiahs up` chooses for the modules of other tests."""


def free_port() -> int:
    """Return a free port, which a process that is started next can take: no other test of this run gets it.

    Neither `messiahs up` nor the system, for outgoing connections, gives it to anybody meanwhile.
    """
    for port in _own_ports():
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise AssertionError("no port is left for this process")


@cache
def _own_ports() -> Iterator[int]:
    """Yield the ports of this process, each once: the workers of pytest share all ports among them."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    ports = range(_FIRST_PORT + worker, _LAST_PORT + 1, workers)
    return iter(random.Random().sample(ports, k=len(ports)))


def listening_ports(process: int) -> set[int]:
    """Return the TCP ports at which a process listens."""
    return {
        connection.laddr.port
        for connection in psutil.Process(process).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
