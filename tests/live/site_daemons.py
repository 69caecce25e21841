"""Starts the modules of several sites: each from its site's topology file, and in a network namespace if one is named.

`python -m tests.live.site_daemons` reads one order a line from its input, as JSON: `{"topology": FILE, "state": FOLDER,
"module": NAME, "netns": NAME or "", "hosts": FILE or ""}` starts a daemon, which resolves names by the file `hosts` and
whose wall clock a test can set (wall_clocks.py); the number of a daemon's process waits for its end. It prints the
process of the daemon that was started or has ended. It starts no daemon again, and ends with its input. The code is
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
from tests.live.wall_clocks import follow_wall

_CLONE_NEWNET, _CLONE_NEWNS = 0x40000000, 0x20000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A module to start."""

    topology: str
    state: str
    module: str
    netns: str
    hosts: str


def start(order: Order) -> int:
    """Write the settings of a module as `module run` does, start it, and return its process."""
    with inside(order.netns), _resolving(order.hosts):
        topology = load_topology(Path(order.topology))
        directory = federation_directory(Path(order.state), topology.federation)
        file = prepare_one(topology, order.module, directory=directory, warn=partial(print, file=sys.stderr))
        follow_wall(file.parent)
        return fork_daemon(file.parent).pid


@contextmanager
def inside(netns: str) -> Iterator[None]:
    """Enter a network namespace, which forks inherit; the only thread of this process changes."""
    if not netns:
        yield
        return
    with _back_in("net"), Path("/run/netns", netns).open("rb") as other:
        _call("setns", other.fileno(), _CLONE_NEWNET)
        yield


@contextmanager
def _resolving(hosts: str) -> Iterator[None]:
    """Put a file in the place of /etc/hosts, for this process and its forks alone."""
    if not hosts:
        yield
        return
    with _back_in("mnt"):
        _call("unshare", _CLONE_NEWNS)
        _call("mount", None, b"/", None, _MS_REC | _MS_PRIVATE, None)
        _call("mount", hosts.encode(), b"/etc/hosts", None, _MS_BIND, None)
        yield


@contextmanager
def _back_in(kind: str) -> Iterator[None]:
    """Return to the present namespace after the block."""
    folder = Path.cwd()
    with Path(f"/proc/self/ns/{kind}").open("rb") as own:
        try:
            yield
        finally:
            _call("setns", own.fileno(), 0)
            # The kernel has moved this process to the root of the other namespace.
            os.chdir(folder)


def _call(name: str, *arguments: object) -> None:
    """Call a function of the C library that sets errno."""
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def serve() -> None:
    """Carry out the orders."""
    load_code()
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.waitpid(order, 0)[0] if isinstance(order, int) else start(Order(**order))
        print(pid, flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    serve()
