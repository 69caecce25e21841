"""The environment in which daemons are started."""

import os
from collections.abc import Mapping


def daemon_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment for a daemon.

    gRPC reads its settings when it is loaded. By default it writes a line on stderr for every failed handshake, and as
    an error for every unknown name of a server, so that strangers could fill the disk. Its own resolver asks DNS even
    for a name in /etc/hosts, and waits for servers that do not answer.
    """
    return {"GRPC_VERBOSITY": "NONE", "GRPC_DNS_RESOLVER": "native", **environment}
