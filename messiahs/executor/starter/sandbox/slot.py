"""One slot of a sandboxed machine, as the starter sees it: its zygote, and what the two tell each other."""

import os
import select
import signal
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from messiahs.core.interface.causes import Cause
from messiahs.executor.attempts import Held
from messiahs.executor.linux import namespaces
from messiahs.executor.linux.local_accounts import LocalAccount
from messiahs.executor.protocol.frames import FrameReader, encode_frames
from messiahs.executor.starter.sandbox.messages import Stop, Stopped, ToStarter, ToZygote
from messiahs.executor.starter.sandbox.work_folder import WorkFolder
from messiahs.executor.starter.sandbox.zygote import Plan, be_zygote

_READ_BYTES = 1 << 16
_STOP_MILLISECONDS = 1_000
_BUFFER_BYTES = 4 << 20
_SEND_TIMEOUT = struct.pack("ll", 5, 0)
"""Seconds and microseconds."""
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(list[ToStarter])


@dataclass(slots=True, kw_only=True)
class Slot:
    """A slot and the attempt in it (mutable); its zygote runs until it is reaped."""

    number: int
    account: LocalAccount
    work: WorkFolder
    zygote: int
    link: socket.socket
    lock: int
    """Keeps other starters of the machine from using the number, and the account that goes with it."""
    frames: FrameReader = field(default_factory=FrameReader)
    archive: str = ""
    """The image or environment that its task sees; empty: none."""
    is_for_one: bool = False
    """Whether it was opened for one attempt, with an image, environment, devices or account of the host."""
    reaches: str = ""
    """The network of its tasks, if it is narrower than the machine's; empty: that one."""
    held: Held | None = None
    has_exited: bool = False
    """Whether the first process of the attempt has ended."""
    is_closed: bool = False
    """Whether the zygote has closed the link, because it ends."""
    killed_at: int = 0
    """When the processes of the attempt were to end at once; 0 if they were not."""
    is_given_up: bool = False
    """Whether the zygote was killed because those processes did not end."""
    problem: str = ""
    """Why the zygote ended."""
    cause: Cause = Cause.LOST
    """Why its attempt ends with the zygote."""
    is_spent: bool = False
    """Whether something of the last attempt is left in it."""
    network: int = 0
    """The process that passes the connections of tasks on; 0 if there is none."""

    @property
    def uid(self) -> int:
        """The number of its account."""
        return self.account.uid

    def send(self, message: ToZygote, files: Sequence[int] = ()) -> None:
        """Send a message with open files. Raises `OSError` if the zygote does not take it."""
        data = memoryview(encode_frames(_ENCODER, [message]))
        sent = socket.send_fds(self.link, [data], list(files)) if files else 0
        if sent < len(data):
            self.link.sendall(data[sent:])

    def tell(self, message: ToZygote) -> None:
        """Send a message; a zygote that does not take it is ended."""
        try:
            self.send(message)
        except OSError:
            self.end()

    def stop(self) -> list[ToStarter]:
        """Stop all processes, and wait until they are; return what else the zygote has sent meanwhile."""
        self.tell(Stop())
        other: list[ToStarter] = []
        poll = select.poll()
        poll.register(self.link, select.POLLIN)
        while not self.is_closed and poll.poll(_STOP_MILLISECONDS):
            messages = self.received()
            other += [message for message in messages if not isinstance(message, Stopped)]
            if any(isinstance(message, Stopped) for message in messages):
                break
        return other

    def received(self) -> list[ToStarter]:
        """Return what the zygote has sent, or a part of it."""
        messages: list[ToStarter] = []
        try:
            data = self.link.recv(_READ_BYTES, socket.MSG_DONTWAIT)
            for body in self.frames.feed(data):
                messages += _DECODER.decode(body)
            self.is_closed = not data
        except BlockingIOError:
            pass
        except (OSError, msgspec.MsgspecError):
            self.is_closed = True
        return messages

    def end(self) -> None:
        """Kill the zygote, and with it everything in the slot."""
        os.kill(self.zygote, signal.SIGKILL)


def open_slot(number: int, plan: Plan, *, work: WorkFolder, lock: int) -> Slot:
    """Start a zygote, which sets the slot up. Raises `OSError`."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # A command may be large, and the starter waits until the zygote has it.
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _SEND_TIMEOUT)
        zygote = _forked(plan, theirs)
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return Slot(number=number, account=plan.account, work=work, zygote=zygote, link=ours, lock=lock)


def _forked(plan: Plan, link: socket.socket) -> int:
    """Fork into a new process namespace, and stay in the present one."""
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        namespaces.unshare(namespaces.NEW_PROCESSES)
        try:
            zygote = os.fork()
            if zygote == 0:
                be_zygote(plan, link)
        finally:
            namespaces.enter(own, namespaces.NEW_PROCESSES)
    finally:
        os.close(own)
    return zygote
