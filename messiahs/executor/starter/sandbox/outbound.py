"""The network of a slot whose task may open connections: slirp4netns(1) passes them on, and nobody can connect to it.

Its network namespace belongs to a user namespace in which the account of the slot stands for root. There slirp4netns
may do what it needs; on the machine it is a process of that account, which has no capability. The user namespace
belongs to the machine's root, so the task has no right in it, although it has the same account.
"""

import fcntl
import os
import resource
import select
import shutil
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from messiahs.config.settings import OUTBOUND
from messiahs.executor.linux import namespaces
from messiahs.executor.linux.kernel import give_up_new_privileges

NAME_SERVER: Final = "10.0.2.3"
"""Where slirp4netns takes questions about names, which it passes on to the servers that the machine asks."""
PROGRAM: Final = "slirp4netns"
_DEVICE: Final = "tap0"
LOOPBACK: Final = "127.0.0.0/8"
_TUN: Final = Path("/dev/net/tun")
_FOR_ALL: Final = 0o006
_LARGEST_PACKET_BYTES: Final = 65_520
_MOST_FILES: Final = 1024
"""How many files slirp4netns may open, one for each connection: what a task takes of the ports of the machine."""
_READY_FILE, _END_FILE, _NAMESPACE_FILE = 3, 4, 5
_HIGH: Final = 64
_NAME_BYTES, _FILE_BYTES, _TEXT_BYTES = 512, 4, 4096
_ENDS: Final = f"--exit-fd={_END_FILE}"
_ARGUMENTS: Final = (
    "--configure",
    f"--mtu={_LARGEST_PACKET_BYTES}",
    "--disable-host-loopback",
    "--enable-sandbox",
    "--enable-seccomp",
    f"--ready-fd={_READY_FILE}",
    "--netns-type=path",
    f"/proc/self/fd/{_NAMESPACE_FILE}",
    _DEVICE,
)


def why_no_outbound(path: str | None = None) -> str:
    """Return why tasks cannot have such a network here; empty if nothing is known against it.

    `path` is where programs are looked for; None: where this process finds them.
    """
    needs = f"`network: {OUTBOUND}` needs"
    if shutil.which(PROGRAM, path=path) is None:
        return f"{needs} {PROGRAM} (the package {PROGRAM}), which is not installed"
    try:
        mode = _TUN.stat().st_mode
    except OSError:
        return f"{needs} {_TUN}, which is not there: load the module tun of the kernel"
    if mode & _FOR_ALL != _FOR_ALL:
        return f"{needs} {_TUN} open to all accounts, as systemd sets it: chmod 666 {_TUN}"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """What the zygote of a slot needs of its network: open files, which it does not keep.

    `ready` has a byte once the network can be used, and none if slirp4netns ends before; `said` has what that said.
    """

    namespace: int
    ready: int
    said: int

    def join(self) -> None:
        """Wait for the network, and enter its namespace. Raises `OSError` with what slirp4netns said if it ended."""
        if not os.read(self.ready, 1):
            raise OSError(0, f"{PROGRAM} does not start: {last_line(self.said)}")
        namespaces.enter(self.namespace, namespaces.NEW_NETWORK)
        # A socket that is bound to the device sends even these to slirp4netns, which would reach the machine's own.
        namespaces.cut_off(LOOPBACK)


def last_line(said: int) -> str:
    """Return the last line that slirp4netns has said."""
    lines = [b""]
    with suppress(BlockingIOError):
        lines += os.read(said, _TEXT_BYTES).splitlines()
    return lines[-1].decode(errors="replace") or "it gives no reason"


class OutboundNetworks:
    """The networks of all slots of a starter (mutable), each with its process, which ends with the starter.

    `_said` has an open file for each process that is not reaped, with the end of what it says.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        # Each process ends when the last writer is gone, which is the starter.
        self._end, self._lives = os.pipe()
        self._said: dict[int, int] = {}

    def open(self, uid: int, groups: tuple[str, ...]) -> tuple[int, Joining]:
        """Start slirp4netns for the slot of an account, in its control groups; return its number. Raises `OSError`.

        The caller closes the files with `close_files` once the zygote has them.
        """
        program = shutil.which(PROGRAM, path=self._path)
        if program is None:
            raise FileNotFoundError(0, why_no_outbound(self._path))
        users, network = _new_namespaces(uid)
        ready, is_ready = os.pipe()
        said, says = os.pipe()
        for end in (said, says):
            # What nobody reads must not stop it.
            os.set_blocking(end, False)
        process = os.fork()
        if process == 0:
            _be_slirp(program, users, groups, says, (is_ready, self._end, network))
        for file in (users, is_ready, says):
            os.close(file)
        self._said[process] = said
        return process, Joining(namespace=network, ready=ready, said=said)

    def reaped(self, process: int) -> str | None:
        """Note that a process has ended; return what it said, or None if it is none of these."""
        said = self._said.pop(process, None)
        if said is None:
            return None
        text = last_line(said)
        os.close(said)
        return text

    def end(self, process: int) -> None:
        """Kill the process of a slot that has ended; nothing happens if it was reaped."""
        if process in self._said:
            os.kill(process, signal.SIGKILL)


def close_files(joining: Joining) -> None:
    """Close what only the zygote needs."""
    os.close(joining.namespace)
    os.close(joining.ready)


def _new_namespaces(uid: int) -> tuple[int, int]:
    """Return a user namespace in which the account is root, and a network namespace that belongs to it, as files.

    Root owns both. A process cannot leave the former, so another one makes them. Raises `OSError`.
    """
    ours, theirs = socket.socketpair()
    holder = os.fork()
    if holder == 0:
        ours.close()
        _hold_new_namespaces(theirs)
    theirs.close()
    files: list[int] = []
    try:
        text, extra, _, _ = ours.recvmsg(_NAME_BYTES, socket.CMSG_SPACE(2 * _FILE_BYTES), socket.MSG_CMSG_CLOEXEC)
        for _, _, packed in extra:
            files += memoryview(packed).cast("i")
        if not files:
            raise OSError(0, f"no namespaces for the network: {text.decode(errors='replace')}")  # noqa: TRY301 - as if open had
        for kind in ("uid_map", "gid_map"):
            Path("/proc", text.decode(), kind).write_text(f"0 {uid} 1\n", encoding="ascii")
    except OSError:
        for file in files:
            os.close(file)
        raise
    finally:
        ours.close()
        os.waitpid(holder, 0)
    users, network = files
    return users, network


def _hold_new_namespaces(link: socket.socket) -> NoReturn:
    """Make both namespaces, pass them on, and keep this process in them until the other end is closed."""
    try:
        try:
            namespaces.unshare(namespaces.NEW_USERS | namespaces.NEW_NETWORK)
            files = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in ("user", "net")]
            # /proc may use other numbers than this namespace of processes.
            socket.send_fds(link, [os.fsencode(os.readlink("/proc/self"))], files)  # noqa: PTH115 - a name, not a path
        except OSError as error:
            link.send(str(error.strerror).encode())
        select.select([link], [], [])
    finally:
        os._exit(0)


def _be_slirp(program: str, users: int, groups: tuple[str, ...], says: int, files: tuple[int, int, int]) -> NoReturn:
    """Become slirp4netns with the account of a slot: root of the user namespace, and nothing outside of it."""
    is_ready, end, network = files
    try:
        for group in groups:
            with open(group, "wb", buffering=0) as file:  # noqa: PTH123 - a few, once
                file.write(b"0")
        os.setgroups([])
        namespaces.enter(users, namespaces.NEW_USERS)
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
        execute_slirp(program, says=says, is_ready=is_ready, network=network, end=end)
    except OSError as error:
        os.write(says, f"{error}\n".encode())
    finally:
        os._exit(1)


def execute_slirp(program: str, *, says: int, is_ready: int, network: int, end: int = -1) -> None:
    """Become slirp4netns, as root of the user namespace to which the network belongs. Raises `OSError`.

    It ends with the last writer of `end`, if there is that file.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    wanted = (nothing, nothing, says, is_ready, nothing if end < 0 else end, network)
    sources = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _HIGH) for file in wanted]
    for target, source in enumerate(sources):
        os.dup2(source, target)
    # Nothing else of a box or slot is for it. Its caller writes to `says` why it cannot be executed.
    for file in range(len(sources), _HIGH):
        with suppress(OSError):
            os.set_inheritable(file, False)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_MOST_FILES, most), min(_MOST_FILES, most)))
    give_up_new_privileges()
    arguments = (PROGRAM, *(() if end < 0 else (_ENDS,)), *_ARGUMENTS)
    os.execve(program, arguments, {})  # noqa: S606 - it must not have one
