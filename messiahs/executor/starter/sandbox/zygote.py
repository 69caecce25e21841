"""The zygote of a slot: the init of its process namespace, which starts one task after the other.

It is root with few capabilities, and starts each task with the account of the slot, without any. It ends when the
starter does, and the kernel then ends everything in the slot. Tasks cannot signal it, see it, or reach its socket.

Everything that it needs is imported and opened before it leaves the machine's root.
"""

import ctypes
import fcntl
import os
import resource
import select
import signal
import socket
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, assert_never

import msgspec

from messiahs.core.interface.causes import Cause
from messiahs.core.model.usage import Usage
from messiahs.executor.attempts import NotSpawned
from messiahs.executor.linux import namespaces
from messiahs.executor.linux.kernel import be_named, give_up_new_privileges
from messiahs.executor.linux.local_accounts import LocalAccount
from messiahs.executor.linux.processes import standing_of
from messiahs.executor.linux.seccomp import install
from messiahs.executor.linux.unix_sockets import UnixSockets
from messiahs.executor.protocol.frames import FrameReader, encode_frames
from messiahs.executor.starter.capabilities import KILL, NET_ADMIN, SETGID, SETUID, SYS_ADMIN, keep_only
from messiahs.executor.starter.pool import Taken
from messiahs.executor.starter.sandbox.environments import NoPlaceError
from messiahs.executor.starter.sandbox.messages import (
    Became,
    Cleared,
    Continue,
    Kill,
    Left,
    Ready,
    Run,
    Stop,
    Stopped,
    Terminate,
    ToStarter,
    ToZygote,
    Unusable,
)
from messiahs.executor.starter.sandbox.outbound import Joining
from messiahs.executor.starter.sandbox.own_network import LOOPBACK, OwnNetwork
from messiahs.executor.starter.sandbox.shared_objects import SharedObjects
from messiahs.executor.starter.sandbox.view import TASK, Temporary, View, as_tasks_see, make_view
from messiahs.executor.starter.spawn import NOT_FOUND, Process, Spawner, problem_in
from messiahs.executor.starter.used_resources import usage_of

PROCESSES: Final = 8192
"""Maximum number of processes and threads of a slot's account."""
_NOTHING_FILE, _INPUTS_FILE, _SOCKET_FILE, _SCORE_FILE = 3, 4, 5, 6
"""The zygote's open files: /dev/null, the folder of inputs, the socket, and its score as a victim of lack of memory."""
INPUTS: Final = f"/proc/self/fd/{_INPUTS_FILE}"
"""The folder of inputs, for the process of a task that copies them before it becomes the task."""
_NAMESPACES = namespaces.NEW_MOUNTS | namespaces.NEW_HOST_NAME | namespaces.NEW_IPC | namespaces.NEW_CGROUP
HOST: Final = "host"
"""The network of the machine, as the one of a slot."""
_HOST_NAME: Final = "messiahs"
_READ_BYTES, _MOST_FILES = 1 << 16, 8
_REPORT_BYTES = 65_536
_PAUSE_SECONDS = 0.05
_PASSES, _PASS_SECONDS = 100, 0.0005
_AWAKE: Final = (b"R", b"S")
_OWN_NUMBER: Final = b"1"
_ANY_NOW: Final = os.WNOHANG | 0x40000000
"""Also children that end without a signal (`__WALL`)."""
_SIGNALS_BYTES, _NOT_BLOCKING = 128, os.O_NONBLOCK | os.O_CLOEXEC
_HIGH: Final = 64
_OPEN: Final = (_NOTHING_FILE, _INPUTS_FILE, _SOCKET_FILE, _SCORE_FILE)
_FIRST_VICTIM: Final = b"1000"
_VISIBLE: Final = " (its sandbox shows the system, its inputs, and the folders that the machine's administrator shows)"
_IN_IMAGE: Final = " (its sandbox shows its image and its inputs)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a slot is set up.

    `folder` appears to tasks as `TASK`, and `inputs` is where the contents of inputs are. `network` is `none`,
    `loopback`, `host`, or what the zygote joins. It also joins the cgroups whose `cgroup.procs` are in `groups`.
    """

    account: LocalAccount
    folder: str
    view: View
    network: str | Joining
    path: str
    inputs: str | None = None
    groups: tuple[str, ...] = ()


def be_zygote(plan: Plan, sock: socket.socket) -> None:
    """Set the slot up and serve until the socket ends; this process is the first of a new process namespace.

    Never returns.
    """
    cause = Cause.SPAWN_FAILED
    try:
        zygote = Zygote(*_set_up(plan, sock), plan)
        cause = Cause.LOST
        zygote.serve()
    except BaseException as error:  # noqa: BLE001 - the starter's code must not go on here
        cause = Cause.NO_PLACE if isinstance(error, NoPlaceError) else cause
        why = Unusable(text=as_tasks_see(plan.view, error), cause=cause)
        text = encode_frames(msgspec.msgpack.Encoder(), [why])
        for link in (sock.fileno(), _SOCKET_FILE):
            # Only one of them is open.
            with suppress(OSError):
                os.write(link, text)
    finally:
        os._exit(1)


def _set_up(plan: Plan, sock: socket.socket) -> tuple[socket.socket, UnixSockets | None]:
    """Enter the slot for ever; return the socket, which stays open like few files, and what notes those of tasks."""
    be_named("messiahs-slot")
    os.umask(0o022)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for group in plan.groups:
        with open(group, "wb", buffering=0) as file:  # noqa: PTH123 - a few, once
            file.write(b"0")
    os.setsid()
    _, most = resource.getrlimit(resource.RLIMIT_NPROC)
    limit = PROCESSES if most == resource.RLIM_INFINITY else min(most, PROCESSES)
    resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
    _enter_network(plan.network)
    namespaces.unshare(_NAMESPACES)
    socket.sethostname(_HOST_NAME)
    link = fcntl.fcntl(sock, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    inputs = os.open(plan.inputs or "/dev/null", os.O_PATH | os.O_CLOEXEC)
    inputs = fcntl.fcntl(inputs, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    # In the sandbox, nobody can write there.
    score = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    score = fcntl.fcntl(score, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    make_view(plan.view, slot_folder=plan.folder, account=plan.account)
    nothing = fcntl.fcntl(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), fcntl.F_DUPFD_CLOEXEC, _HIGH)
    for source, target in zip((nothing, inputs, link, score), _OPEN, strict=True):
        os.dup2(source, target, inheritable=False)
    os.closerange(max(_OPEN) + 1, os.sysconf("SC_OPEN_MAX"))
    os.setgroups(plan.account.groups)
    namespaces.bound_capabilities()
    keep_only((KILL, SETGID, SETUID, SYS_ADMIN, *((NET_ADMIN,) if plan.network == LOOPBACK else ())))
    namespaces.be_opaque()
    give_up_new_privileges()
    # The filter of tasks refuses such a one.
    sockets = _noticed_sockets()
    install()
    return socket.socket(fileno=_SOCKET_FILE), sockets


def _enter_network(network: str | Joining) -> None:
    if isinstance(network, Joining):
        network.join()
    elif network != HOST:
        OwnNetwork(network).enter()


def _own_network(network: str | Joining) -> OwnNetwork | None:
    """Return the network in which this process is, if it is to be renewed."""
    if network == HOST or isinstance(network, Joining):
        # The machine's network is that of others, too, and one that was joined is not used again.
        return None
    own = OwnNetwork(network)
    own.watch()
    return own


def _noticed_sockets() -> UnixSockets | None:
    """Return what notes the Unix sockets of tasks; None if this Linux has no way to do that."""
    try:
        return UnixSockets()
    except OSError:
        return None


class Zygote:
    """Serves one task at a time (mutable); `_leader` is the first process of the task, 0 if there is none."""

    def __init__(self, link: socket.socket, sockets: UnixSockets | None, plan: Plan) -> None:
        self._link, self._account = link, plan.account
        self._shown = _IN_IMAGE if plan.view.image else _VISIBLE
        self._spawner = Spawner(user=plan.account.name, path=plan.path, nothing=_NOTHING_FILE, kept_files=1)
        self._frames, self._files = FrameReader(), deque[int]()
        self._encoder, self._decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(list[ToZygote])
        self._leader, self._report = 0, -1
        self._problem: NotSpawned | None = None
        self._temporary, self._objects = Temporary(), SharedObjects()
        self._poll = select.poll()
        self._network, self._sockets = _own_network(plan.network), sockets
        if self._sockets is not None:
            self._poll.register(self._sockets, select.POLLIN)
        self._poll.register(link, select.POLLIN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        self._ended = _signal_file(signal.SIGCHLD)
        self._poll.register(self._ended, select.POLLIN)

    def serve(self) -> None:
        """Serve until the starter is gone."""
        self._send(Ready())
        while True:
            ready = [descriptor for descriptor, _ in self._poll.poll()]
            if self._ended in ready:
                os.read(self._ended, _SIGNALS_BYTES * 8)
            if self._sockets is not None and self._sockets.fileno() in ready:
                self._sockets.let_go_on()
            if self._report in ready:
                self._read_report()
            if self._leader:
                self._reap()
            if self._link.fileno() in ready and not self._receive():
                return

    def _receive(self) -> bool:
        """Handle what the starter has sent; False if it is gone."""
        space = socket.CMSG_SPACE(_MOST_FILES * 4)
        # The standard library's `recv_fds` does not close the files in programs that are started.
        data, extra, _, _ = self._link.recvmsg(_READ_BYTES, space, socket.MSG_CMSG_CLOEXEC)
        for _, _, packed in extra:
            self._files += memoryview(packed).cast("i")
        for body in self._frames.feed(data):
            for message in self._decoder.decode(body):
                self._handle(message)
        return bool(data)

    def _handle(self, message: ToZygote) -> None:
        match message:
            case Run():
                self._run(message)
            case Terminate() if self._leader:
                _signal_group(self._leader, signal.SIGTERM)
                _signal_group(self._leader, signal.SIGCONT)
            case Kill() if self._leader:
                _signal_all(signal.SIGKILL)
            case Stop():
                if self._leader:
                    _stop_all()
                self._send(Stopped())
            case Continue() if self._leader:
                _signal_all(signal.SIGCONT)
            case Terminate() | Kill() | Continue():
                # The task has ended, which the starter hears soon.
                pass
            case _:
                assert_never(message)

    def _run(self, run: Run) -> None:
        stdout, stderr = self._files.popleft(), self._files.popleft()
        stdin = self._files.popleft() if run.has_stdin else None
        taken = Taken(TASK, stdout, stderr, stdin)
        try:
            outcome = self._spawn(run, taken)
        finally:
            taken.close()
        if isinstance(outcome, NotSpawned):
            text = self._told(outcome)
            self._send(Left(exit_code=outcome.exit_code, signal=None, cause=outcome.cause, text=text), Cleared())
            return
        self._leader, self._report, _ = outcome
        if self._report >= 0:
            self._poll.register(self._report, select.POLLIN)

    def _spawn(self, run: Run, taken: Taken) -> Process | NotSpawned:
        os.write(_SCORE_FILE, _FIRST_VICTIM)
        # A process keeps the saved ids of the zygote until it executes its program: no task may touch the zygote.
        os.setresgid(self._account.gid, self._account.gid, 0)
        os.setresuid(self._account.uid, self._account.uid, 0)
        try:
            return self._spawner.spawn(run.start, taken)
        except OSError as error:
            return NotSpawned(cause=Cause.SPAWN_FAILED, exit_code=None, text=f"the task cannot be set up: {error}")
        finally:
            os.setresuid(0, 0, 0)
            os.setresgid(0, 0, 0)
            os.write(_SCORE_FILE, b"0")

    def _read_report(self) -> None:
        """Find out whether a process has become its task; for one that has ended, this is the final check."""
        try:
            report = os.read(self._report, _REPORT_BYTES)
        except BlockingIOError:
            return
        self._poll.unregister(self._report)
        os.close(self._report)
        self._report = -1
        if report:
            # Whatever it reported, it never becomes the task.
            self._problem = problem_in(report)
            _signal_all(signal.SIGKILL)
        else:
            self._send(Became())

    def _reap(self) -> None:
        """Reap ended processes; when the leader is among them, end the task."""
        try:
            while (ended := os.wait4(-1, os.WNOHANG))[0]:
                if ended[0] == self._leader:
                    self._end(os.waitstatus_to_exitcode(ended[1]), usage_of(ended[2]))
                    return
        except ChildProcessError:
            return

    def _end(self, code: int, usage: Usage) -> None:
        self._leader = 0
        if self._report >= 0:
            self._read_report()
        problem, self._problem = self._problem, None
        if problem is not None:
            left = Left(
                exit_code=problem.exit_code, signal=None, cause=problem.cause, text=self._told(problem), usage=usage
            )
        elif code >= 0:
            left = Left(exit_code=code, signal=None, usage=usage)
        else:
            left = Left(exit_code=None, signal=-code, usage=usage)
        # Every process of the slot is below a child of this one. Most tasks leave none, and a signal to all looks at
        # every process of the machine.
        if _reaped_all():
            self._send(left, self._cleaned())
            return
        _signal_all(signal.SIGKILL)
        self._send(left)
        while not _reaped_all():
            _signal_all(signal.SIGKILL)
            signal.sigtimedwait({signal.SIGCHLD}, _PAUSE_SECONDS)
        self._send(self._cleaned())

    def _cleaned(self) -> Cleared:
        """Have nothing that the task has changed; the slot is spent if it can have handed out anything of it.

        Whoever has its root open reaches what is mounted there later, and has every file of it at hand.
        """
        if self._sockets is None or self._sockets.are_made:
            return Cleared(is_spent=True)
        try:
            self._temporary.clean()
            self._objects.remove()
            if self._network is not None:
                self._network.renew()
        except OSError:
            return Cleared(is_spent=True)
        return Cleared()

    def _told(self, problem: NotSpawned) -> str:
        """Return the text of a problem, and for a program that is missing what there is."""
        return problem.text + (self._shown if problem.exit_code == NOT_FOUND else "")

    def _send(self, *messages: ToStarter) -> None:
        self._link.sendall(encode_frames(self._encoder, messages))


def _reaped_all() -> bool:
    """Reap every process that has ended; whether none is left."""
    try:
        while os.waitpid(-1, _ANY_NOW)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def _signal_all(number: int) -> None:
    """Signal every process of the slot except this one, and all at once: none can start another one meanwhile."""
    with suppress(ProcessLookupError):
        os.kill(-1, number)


def _stop_all() -> None:
    """Stop every process of the slot; one in uninterruptible sleep stops when it wakes up."""
    _signal_all(signal.SIGSTOP)
    for _ in range(_PASSES):
        states = (standing_of(name) for name in os.listdir(b"/proc") if name.isdigit() and name != _OWN_NUMBER)  # noqa: PTH208 - names, not paths
        if not any(found is not None and found.state in _AWAKE for found in states):
            return
        select.select([], [], [], _PASS_SECONDS)


def _signal_group(leader: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, number)


def _signal_file(number: int) -> int:
    """Return a descriptor that is readable when a signal, which is blocked, has arrived."""
    mask = (1 << (number - 1)).to_bytes(_SIGNALS_BYTES, "little")
    descriptor: int = ctypes.CDLL(None, use_errno=True).signalfd(-1, mask, _NOT_BLOCKING)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "signalfd")
    return descriptor
