"""The environment in which daemons are started."""

import os
from collections.abc import Mapping


def daemon_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Give the environment for a daemon.

    gRPC reads its own when it is loaded, and writes a line on stderr for every handshake that fails unless told
    otherwise: strangers could fill the disk with them.
    """
    return {"GRPC_VERBOSITY": "ERROR", **environment}
