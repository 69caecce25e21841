"""Ports of the loopback interface: those that nothing uses at the moment, and those of a process."""

import socket

import psutil


def free_port() -> int:
    """Return a free port, which a process that is started next can take."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def listening_ports(process: int) -> set[int]:
    """Return the TCP ports at which a process listens."""
    return {
        connection.laddr.port
        for connection in psutil.Process(process).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
