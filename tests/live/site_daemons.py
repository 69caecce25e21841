"""Starts the modules of several sites: each from its site's topology file, and in a network namespace if one is named.

`python -m tests.live.site_daemons` reads one order a line from its input, as JSON: `{"topology": FILE, "state": FOLDER,
"module": NAME, "netns": NAME or ""}` starts a daemon, and the number of a daemon's process waits for its end. It prints
the process of the daemon that was started or has ended. It starts no daemon again, and ends with its input. The code is
loaded once, and the daemons are forks.
"""

import ctypes
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from messiahs.cli.federation.deployment import federation_directory, prepare_one
from messiahs.config.topology.reading import load_topology
from messiahs.daemon.supervision.forking import fork_daemon, load_code

_CLONE_NEWNET = 0x40000000


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A module to start."""

    topology: str
    state: str
    module: str
    netns: str


def start(order: Order) -> int:
    """Write the settings of a module as `module run` does, start it, and return its process."""
    with _inside(order.netns):
        topology = load_topology(Path(order.topology))
        directory = federation_directory(Path(order.state), topology.federation)
        file = prepare_one(topology, order.module, directory=directory, warn=partial(print, file=sys.stderr))
        return fork_daemon(file.parent).pid


@contextmanager
def _inside(netns: str) -> Iterator[None]:
    """Enter a network namespace, which forks inherit; the only thread of this process changes."""
    if not netns:
        yield
        return
    with Path("/proc/self/ns/net").open("rb") as own, Path("/run/netns", netns).open("rb") as other:
        _enter(other.fileno())
        try:
            yield
        finally:
            _enter(own.fileno())


def _enter(descriptor: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(descriptor, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    load_code()
    for _line in sys.stdin:
        _order = json.loads(_line)
        _pid = os.waitpid(_order, 0)[0] if isinstance(_order, int) else start(Order(**_order))
        print(_pid, flush=True)  # noqa: T201 - the answer
