"""Ports of the loopback interface: those that nothing uses at the moment, and those of a process."""

import errno
import random
import socket
from pathlib import Path

import psutil

_FIRST_PORT = 10_000


def free_port() -> int:
    """Return a free port, which a process that is started next can take.

    It is none of those that the system gives to outgoing connections, of which other tests open many meanwhile.
    """
    end = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.Random().sample(range(_FIRST_PORT, end), k=end - _FIRST_PORT):
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise AssertionError(f"no port from {_FIRST_PORT} to {end} is free")


def listening_ports(process: int) -> set[int]:
    """Return the TCP ports at which a process listens."""
    return {
        connection.laddr.port
        for connection in psutil.Process(process).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
