"""What a module needs of its channels, whatever carries them (MESSIAHS 5.3).

Two implementations keep it: `grpc_channels` (gRPC over mutual TLS) and `memory_channels` (the in-process twin, in which
every message passes through the codec too). Both are `LinkedChannels` over a `Transport`.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

from messiahs.core.interface.events import Event
from messiahs.core.interface.messages import ControlMessage, StatusVector, TaskTransfer
from messiahs.core.model.ids import SystemId
from messiahs.wire.codec import PutRequest, ReadRequest

ReadOutput = Callable[[ReadRequest, SystemId], AsyncGenerator[bytes, None]]
"""Serves an output of the own machine to a peer, piece by piece.

It raises `PermissionError` (wrong ticket) or `FileNotFoundError` (gone for ever), and so does the peer's `fetch`.
"""

ReadFile = Callable[[bytes, int], AsyncGenerator[bytes, None]]
"""Gives a file, named by its hash, from an offset on, in pieces of any size."""


class Receipt(Protocol):
    """Files that a peer brings, one after the other. Trouble is a `MessiahsError`, whose text the peer is told."""

    async def begin(self) -> tuple[int, ...]:
        """Say how much of each file is here."""

    async def add(self, content: bytes) -> None:
        """Take the next piece of the first file that is not here."""

    async def finish(self) -> None:
        """Return when all that was taken is stored."""

    async def close(self) -> None:
        """Let go; what came of an incomplete file stays for a later receipt."""


class Arrivals(Protocol):
    """Where files go that other systems bring for tasks of this machine."""

    async def keep(self, peer: SystemId, transfer: TaskTransfer, contents: tuple[bytes, ...], /) -> str:
        """Store small files, and say why the transfer cannot be taken; empty if all inputs of its tasks are here."""

    def receive(self, peer: SystemId, request: PutRequest) -> Receipt:
        """Take files; a `MessiahsError` if this peer may not bring them."""


NO_FILES: Final[Mapping[bytes, bytes]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborAddress:
    """A neighbor, and where this side dials it (host:port); None: it dials us."""

    system: SystemId
    address: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSettings:
    """Who this module is, where it listens, and whom it is linked with.

    A peer that does not even answer pings for `silence_seconds` is gone, and a task channel that nobody used for
    `idle_seconds` is closed.
    """

    federation: str
    name: SystemId
    listen: str
    neighbors: tuple[NeighborAddress, ...] = ()
    silence_seconds: float = 15.0
    idle_seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """What the channels call, in the thread of their event loop; none of them may block.

    `on_refused` and `on_dropped` get the peer (or its address, if nobody knows its name) and a text for people: about
    a connection that could not be made or was turned away (of a row of equal failures only the first is told), and
    about a message that was left out.
    """

    on_event: Callable[[Event], None]
    read_output: ReadOutput
    arrivals: Arrivals
    on_refused: Callable[[str, str], None]
    on_dropped: Callable[[str, str], None]


@dataclass(slots=True, kw_only=True)
class Counters:
    """Messages exchanged with one peer since the start; mutable. `dropped` counts both directions."""

    sent: int = 0
    received: int = 0
    dropped: int = 0


class Channels(Protocol):
    """The three channels of one module. None of the `send_` functions waits, raises, or calls `on_event`.

    `LinkUp` comes once for each connection, before anything that was received on it, and `LinkDown` once after all of
    that, also at `stop`.
    """

    @property
    def address(self) -> str:
        """Where others dial this module; with the port that was found if port 0 was asked for."""

    @property
    def counters(self) -> Mapping[SystemId, Counters]:
        """Counters by peer."""

    async def start(self) -> None:
        """Listen, and dial the neighbors that have an address until `stop`; a `ChannelError` if it cannot listen."""

    async def stop(self) -> None:
        """End every connection and wait until nothing of the channels runs any more."""

    def send_control(self, to: SystemId, message: ControlMessage) -> None:
        """Send after everything sent before on this connection; without a connection the message is dropped."""

    def send_vector(self, to: SystemId, message: StatusVector) -> None:
        """Send unless a newer vector of the same kind comes first; without a connection it is dropped."""

    def send_tasks(
        self, to: SystemId, address: str, message: TaskTransfer, /, *, files: Mapping[bytes, bytes] = NO_FILES
    ) -> None:
        """Bring tasks to another system; if the stream breaks, each claim that was sent on it has `TransferFailed`.

        `files` are contents of small inputs by their hash: they are there before the tasks are.
        """

    async def put(self, to: SystemId, address: str, request: PutRequest, read: ReadFile, /) -> None:
        """Bring files to an executor: what it lacks of them; when this returns they are there.

        A `ChannelError` says what went wrong; a later attempt goes on where this one was cut.
        """

    def drop_link(self, neighbor: SystemId, text: str = "") -> None:
        """End the connection with a neighbor; it may be made again."""

    def fetch(self, to: SystemId, address: str, request: ReadRequest, /) -> AsyncGenerator[bytes, None]:
        """Read an output at its executor.

        Raises `PermissionError` or `FileNotFoundError` if the executor says so, `ProtocolError` if its answer is
        malformed, and `ChannelError` if a later attempt from a new offset may help.
        """


class Stream(Protocol):
    """Messages in both directions. Trouble is a `ChannelError`; cancelling a read or write ends the stream."""

    async def read(self) -> bytes | None:
        """Wait for the next message; None when the other side has ended the stream."""

    async def write(self, content: bytes) -> None:
        """Send a message, waiting while the other side does not keep up."""


class OutgoingStream(Stream, Protocol):
    """A stream that this side opened."""

    async def finish(self) -> None:
        """Say that nothing more will be written; the other side can still answer."""

    def close(self) -> None:
        """End the stream at once; what is on its way may be lost."""


class Connection(Protocol):
    """One connection of a link."""

    @property
    def control(self) -> Stream:
        """The control channel, open."""

    async def updates(self) -> Stream:
        """Wait for the update channel of the same connection."""

    async def close(self) -> None:
        """End it; may be called again."""


class Incoming(Protocol):
    """What a transport calls when others connect."""

    def refusal(self, peer: SystemId) -> str:
        """Say why a peer may not open a link with this module; empty: it may."""

    async def serve_link(self, peer: SystemId, connection: Connection) -> None:
        """Keep a link that a peer has opened until it ends."""

    async def serve_transfers(self, peer: SystemId, stream: Stream) -> None:
        """Take the tasks that a peer brings until it ends the stream."""

    async def serve_put(self, peer: SystemId, stream: Stream) -> None:
        """Take the files that a peer brings."""

    def serve_read(self, peer: SystemId, content: bytes) -> AsyncGenerator[bytes, None]:
        """Answer a request for an output; raises as `ReadOutput` does, and `CodecError`."""


class Transport(Protocol):
    """How connections are made and taken."""

    async def start(self, incoming: Incoming) -> str:
        """Listen, and give the address; a `ChannelError` if that is not possible."""

    async def stop(self) -> None:
        """Take and keep no connections any more."""

    async def dial(self, peer: SystemId, address: str) -> Connection:
        """Open a link with a neighbor; a `ChannelError` says why not."""

    def open_transfers(self, peer: SystemId, address: str) -> OutgoingStream:
        """Open a task channel; that it could not be made shows at the first read or write."""

    def open_put(self, peer: SystemId, address: str) -> OutgoingStream:
        """Open a stream that brings files; trouble shows as with a task channel."""

    def read(self, peer: SystemId, address: str, request: bytes, /) -> AsyncGenerator[bytes, None]:
        """Send a request for an output and give the pieces of the answer; raises as `Channels.fetch` does."""
