"""Ports of the loopback interface that nothing uses at the moment."""

import socket


def free_port() -> int:
    """Return a free port, which a process that is started next can take."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
