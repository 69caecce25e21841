"""The network of a box whose task may open connections: made by its first process, which then becomes bubblewrap.

That process becomes root of a user namespace in which it starts slirp4netns, and then enters a network namespace of its
own. Before it becomes bubblewrap it is an ordinary process of its account again, in a user namespace below that one: no
process of the box has a right in the network. slirp4netns remains its child and in its process group, so it is
suspended, counted and killed with the task, and dies with it in any case.
"""

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Final, NamedTuple, NoReturn

from messiahs.executor.linux import namespaces
from messiahs.executor.linux.kernel import boottime_ns, die_with_parent
from messiahs.executor.starter.sandbox.outbound import LOOPBACK, PROGRAM, execute_slirp, last_line

_TEXT_BYTES: Final = 4096
_GONE_NS: Final = 200_000_000
"""How long the end of a box, with which slirp4netns ends, may take to be noticed."""


class Channel(NamedTuple):
    """Open files: what slirp4netns says, for whoever reads it, and where it says it. Only slirp4netns keeps the latter.

    Neither is ever waited for.
    """

    said: int
    says: int


def new_channel() -> Channel:
    """Return a new one, which the caller closes. Raises `OSError`."""
    return Channel(*os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK))


def enter_outbound(path: str, channel: Channel) -> None:
    """Enter a new network that slirp4netns serves, which is found on `path`. Raises `OSError`.

    This process has one thread.
    """
    uid, gid = os.geteuid(), os.getegid()
    program = shutil.which(PROGRAM, path=path)
    if program is None:
        raise FileNotFoundError(0, f"{PROGRAM} is not installed any more")
    # Else the files in /proc with the numbers of accounts would be root's.
    namespaces.be_transparent()
    namespaces.unshare(namespaces.NEW_USERS)
    namespaces.map_account(0, uid, 0, gid)
    (ready, is_ready), (begins, begin) = os.pipe(), os.pipe()
    own = os.getpid()
    if os.fork() == 0:
        os.close(begin)
        _be_slirp(program, own, begins=begins, is_ready=is_ready, says=channel.says)
    os.close(is_ready)
    namespaces.unshare(namespaces.NEW_NETWORK)
    os.write(begin, b"x")
    if not os.read(ready, 1):
        raise OSError(0, f"{PROGRAM} does not start: {last_line(channel.said)}")
    namespaces.cut_off(LOOPBACK)
    namespaces.unshare(namespaces.NEW_USERS)
    namespaces.map_account(uid, 0, gid, 0)
    for file in (ready, begins, begin):
        os.close(file)


def _be_slirp(program: str, served: int, *, begins: int, is_ready: int, says: int) -> NoReturn:
    """Become slirp4netns, once the process that it serves has entered its network."""
    try:
        die_with_parent()
        if os.read(begins, 1):
            network = os.open(f"/proc/{served}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            execute_slirp(program, says=says, is_ready=is_ready, network=network)
    except OSError as error:
        os.write(says, f"{error}\n".encode())
    finally:
        os._exit(1)


class Networks:
    """The networks of boxes, by the first processes of these (mutable): open files with what slirp4netns says."""

    def __init__(self) -> None:
        self._said: dict[int, int] = {}
        self._texts: dict[int, str] = {}
        self._ended: dict[int, int] = {}

    def add(self, leader: int, said: int) -> None:
        """Watch the network of a box, whose file is closed with it."""
        self._said[leader] = said

    def forget(self, leader: int) -> None:
        """Note that a box has ended; nothing happens if it has no such network."""
        said = self._said.pop(leader, None)
        if said is not None:
            os.close(said)
        self._texts.pop(leader, None)
        self._ended.pop(leader, None)

    def ended(self, *, starting: Collection[int]) -> Iterator[tuple[int, str]]:
        """Yield each box whose network has ended before it, with what slirp4netns said last.

        A first process that is not bubblewrap yet is left alone: it reads itself why its network does not start.
        """
        now = boottime_ns()
        for leader, said in [(leader, said) for leader, said in self._said.items() if leader not in starting]:
            with suppress(BlockingIOError):
                while text := os.read(said, _TEXT_BYTES):
                    self._texts[leader] = text.decode(errors="replace").splitlines()[-1]
                if now - self._ended.setdefault(leader, now) >= _GONE_NS:
                    yield leader, self._texts.get(leader, "it gives no reason")
