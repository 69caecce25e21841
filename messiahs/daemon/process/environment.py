"""The environment in which daemons are started."""

import os
from collections.abc import Mapping


def daemon_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment for a daemon.

    gRPC reads its settings when it is loaded. By default it writes a line on stderr for every failed handshake, so that
    strangers could fill the disk.
    """
    return {"GRPC_VERBOSITY": "ERROR", **environment}
