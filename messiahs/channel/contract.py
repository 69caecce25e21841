"""The interface of a module's channels, independent of their transport (MESSIAHS 5.3).

`grpc_channels` (gRPC over mutual TLS) and `memory` (in-process, with every message passing through the codec)
implement it. Both are `LinkedChannels` over a `Transport` (transport.py).
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from messiahs.core.interface.events import Event
from messiahs.core.interface.messages import ControlMessage, StatusVector, TaskTransfer
from messiahs.core.interface.transfer_answers import TransferAnswer
from messiahs.core.model.ids import SystemId
from messiahs.core.model.routes import Address, Leg
from messiahs.wire.codec import FeedAnswer, FeedPiece, FeedRequest, PutRequest, ReadRequest, SpliceQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A system that has proved its name and its key on a stream.

    `key` is the fingerprint of its public key: the first 16 bytes of the SHA-256 of its SubjectPublicKeyInfo.
    """

    system: SystemId
    key: bytes


ReadOutput = Callable[[ReadRequest, Peer], AsyncGenerator[bytes, None]]
"""Serves an output of this machine to a peer, piece by piece.

Raises `PermissionError` for a wrong ticket, `FileNotFoundError` for an output that is gone; `fetch` raises the same.
"""


class ByteSource(Protocol):
    """Bytes in order, read by one thread, which may block. Each end of a stream has its own buffer of at most 1 MiB."""

    def read_into(self, buffer: memoryview, /) -> int:
        """Wait for the next bytes, write them to the beginning of the buffer, and return their number; 0 at the end.

        The source may still read these bytes until its next call, so the buffer must not change before.
        Raises `ChannelError`, or an `OSError` of a disk.
        """

    def close(self) -> None:
        """End the source, from any thread: a read in progress ends. Repeated calls are allowed."""


class OutputSource(ByteSource, Protocol):
    """An output that is read to its end."""

    @property
    def sha256(self) -> bytes:
        """SHA-256 of the whole output, as the executor computed it: known after the end.

        Empty if an earlier release sends the rest of an output in frames. The origin compares it with what it has.
        """


OpenFile = Callable[[bytes, int], ByteSource]
"""Opens a file, named by its hash, at an offset, in the thread that reads it; the source ends where the file ends.

An `OSError` if the file is missing.
"""

OpenOutput = Callable[[ReadRequest, Peer], Awaitable[OutputSource]]
"""Opens an output of this machine, or of one that is reached through it, for a peer; raises what `ReadOutput` raises.

Used for large outputs of attempts that have ended.
"""


class Receipt(Protocol):
    """Files that a peer sends one after the other. Errors are `MessiahsError`, and their text is sent to the peer."""

    async def begin(self) -> tuple[int, ...]:
        """Return how many bytes of each file are stored."""

    async def take(self, source: ByteSource, /) -> None:
        """Return when the missing bytes of all files, in order, are read from a source and stored.

        What was read before an error or a cancellation stays for a later receipt.
        """

    async def close(self) -> None:
        """End the receipt; an incomplete file stays for a later one."""


class Feed(Protocol):
    """Standard input on its way to one attempt, which takes each byte once.

    Errors are `RefusedError` if the attempt does not get it, `ProtocolError` if an answer is malformed, and
    `ChannelError` if another `Feed` may help.
    """

    async def send(self, piece: FeedPiece) -> None:
        """Send the next piece, at first the one at the offset in the first answer; waits while there is no room."""

    async def answer(self) -> FeedAnswer | None:
        """Wait for the next answer: one before the first piece, one for each piece, and one that is closed.

        None if the other side has ended it without a reason.
        """

    def close(self) -> None:
        """End it at once; what the attempt has not taken is lost."""


OpenFeed = Callable[[FeedRequest, Peer], Awaitable[Feed]]
"""Opens the way for standard input that a peer sends.

Raises `PermissionError` for a wrong ticket, `FileNotFoundError` for an attempt that has left, and what `Feed` raises.
"""


class Splicing(NamedTuple):
    """A connection passed on to a leg. `wait_for` counts bytes to and from it; `DeclinedError` beyond a bound."""

    leg: Leg
    wait_for: Callable[[int, int], Awaitable[None]]
    close: Callable[[], None]


class Arrivals(Protocol):
    """Receives files that other systems send for tasks of this machine."""

    async def keep(self, peer: Peer, transfer: TaskTransfer, contents: tuple[bytes, ...], /) -> str:
        """Store small files; return why the transfer is refused, or "" if all inputs of its tasks are stored."""

    def receive(self, peer: Peer, request: PutRequest) -> Receipt:
        """Begin to receive files; a `MessiahsError` if this peer may not send them."""


InTurn = Callable[[SystemId, Iterator[Event | None], int], Awaitable[None]]
"""Handles the events of a message of another system in its turn, which are decoded then (None: not an event).

They are queued at once, and the result is done when the last one is handled, or with an error in decoding. Wait for it
before a further message of the same stream is queued: so a system that sends too much is not read. The last argument is
the size of the message in bytes. Without events, only its turn is awaited.
"""

NO_FILES: Final[Mapping[bytes, bytes]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborAddress:
    """A neighbor and the address at which this side dials it (host:port); None if the neighbor dials."""

    system: SystemId
    address: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSettings:
    """Name and address of this module, and its neighbors. Without an address (empty) nobody can dial it.

    An unused connection carries a ping after two thirds of `silence_seconds`, and a peer that has not answered at their
    end is considered gone. `http_proxy` is the URL of the proxy through which this module dials. A task channel that is
    unused for `idle_seconds` is closed. Connections that a neighbor dials for bytes need the folder `sockets`, which is
    made and removed.

    Transfers of at least `bulk_least_bytes` use streams of raw bytes, for which the module listens on `bulk_port` of
    the same host (0: any free port; None: such transfers use the frames of their gRPC streams, too).
    """

    federation: str
    name: SystemId
    listen: str
    neighbors: tuple[NeighborAddress, ...] = ()
    silence_seconds: float = 15.0
    http_proxy: str | None = None
    sockets: Path | None = None
    idle_seconds: float = 60.0
    bulk_port: int | None = 0
    bulk_least_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """Functions that the channels call in the thread of their event loop. They must not block.

    `on_refused` reports a connection that failed or was refused, and of consecutive equal failures only the first;
    `on_dropped` reports a message that was dropped. Both get the peer, or its address if its name is unknown, and a
    text for people.
    """

    on_event: Callable[[Event], None]
    in_turn: InTurn
    read_output: ReadOutput
    open_output: OpenOutput
    open_feed: OpenFeed
    open_splice: Callable[[SpliceQuery, Peer], Splicing]
    arrivals: Arrivals
    on_refused: Callable[[str, str], None]
    on_dropped: Callable[[str, str], None]


@dataclass(slots=True, kw_only=True)
class Counters:
    """Messages exchanged with one neighbor since the start (mutable). `dropped` counts both directions.

    Bytes are those of messages as they are written and read, before TLS; files on streams of their own are not counted.
    """

    sent: int = 0
    received: int = 0
    dropped: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0


class Channels(Protocol):
    """The three channels of one module. The `send_` functions never wait, raise, or call `on_event`.

    An empty address of another system means that nobody can dial it; it must be a neighbor that dials this module.

    Each connection produces one `LinkUp` before anything received on it, and one `LinkDown` after all of that, also at
    `stop`.
    """

    @property
    def address(self) -> str:
        """Address at which others dial this module; port 0 is replaced by the actual port. Empty if nobody can."""

    @property
    def counters(self) -> Mapping[SystemId, Counters]:
        """Counters of all neighbors; others choose what other systems there are, and how many."""

    async def start(self) -> None:
        """Listen, and dial neighbors that have an address until `stop`; a `ChannelError` if it cannot listen."""

    async def stop(self) -> None:
        """End every connection and return when no task of the channels runs."""

    def send_control(self, to: SystemId, message: ControlMessage) -> None:
        """Send in order; without a connection the message is dropped."""

    def send_vector(self, to: SystemId, message: StatusVector) -> None:
        """Send unless a newer vector of the same kind replaces it first; without a connection it is dropped."""

    def send_tasks(
        self, to: SystemId, address: Address, message: TaskTransfer, /, *, files: Mapping[bytes, bytes] = NO_FILES
    ) -> None:
        """Send tasks to another system; if the stream breaks, `TransferFailed` is reported for each claim sent on it.

        `files` are contents of small inputs by their hash; they arrive before the tasks.
        """

    def refuse_transfer(self, to: Peer, answer: TransferAnswer) -> None:
        """Answer a system that tasks which it sent in a claim were dropped.

        Without the stream that brought them the answer is dropped.
        """

    async def begin_put(self, to: SystemId, address: Address, request: PutRequest, /) -> "Put":
        """Ask how much of some files an executor lacks. Raises `ChannelError`."""

    async def put(self, to: SystemId, address: Address, request: PutRequest, open_file: OpenFile, /) -> None:
        """Send files that an executor lacks; they are stored there when this returns.

        Raises `ChannelError`, and an `OSError` of a disk; a later call continues where this one stopped.
        """

    def drop_link(self, neighbor: SystemId, text: str = "") -> None:
        """End the connection with a neighbor; a new one may follow."""

    def link(self, neighbor: NeighborAddress) -> None:
        """Begin to dial or to accept a neighbor, or change where it is dialed; a repetition changes nothing.

        Before `start` it is dialed when that is called.
        """

    def unlink(self, system: SystemId) -> None:
        """Forget a neighbor: its connection and streams end, and it is refused; a repetition changes nothing.

        Its `LinkDown` is reported at once. What was sent to it before has a second to arrive.
        """

    def shut_off(self, peer: SystemId) -> None:
        """End every connection and stream with a peer, in both directions, and refuse new ones until `readmit`.

        The peer learns the code `shut_off`: when it dials, or else within a minute, if it can be dialed.
        """

    def readmit(self, peer: SystemId) -> None:
        """Allow connections with a peer again; repeated calls are allowed, as for `shut_off`."""

    def fetch(self, to: SystemId, address: Address, request: ReadRequest, /) -> AsyncGenerator[bytes, None]:
        """Read an output from its executor.

        Raises `PermissionError` or `FileNotFoundError` if the executor reports so, `ProtocolError` if its answer is
        malformed, `RefusedError` or `BeyondError` in the words of a system on the way that lets no bytes pass or cannot
        reach the next one, and `ChannelError` if reading again from a new offset may help.
        """

    async def feed(self, to: SystemId, address: Address, request: FeedRequest, /) -> Feed:
        """Open the way for standard input to an attempt; a `ChannelError` if that fails, also at its first use."""

    async def open_read(
        self, to: SystemId, address: Address, request: ReadRequest, /, *, size_bytes: int
    ) -> OutputSource:
        """Open an output of about this size for reading by a thread; it must be closed.

        Raises what `fetch` raises, as do its reads. The reader compares the hash.
        """


class Put(Protocol):
    """Files on their way to an executor. Errors are `ChannelError`. Must be closed."""

    @property
    def offsets_bytes(self) -> tuple[int, ...]:
        """How many bytes of each file the executor has."""

    async def send(self, open_file: OpenFile, /) -> None:
        """Send what is missing, from each offset on, in one thread; everything is stored there when this returns.

        Raises an `OSError` of a source, too. Called once.
        """

    def close(self) -> None:
        """End the stream; repeated calls are allowed."""


class Stream(Protocol):
    """Messages in both directions. Errors are `ChannelError`; cancelling a read or write ends the stream."""

    async def read(self) -> bytes | None:
        """Wait for the next message; None if the other side has ended the stream."""

    async def write(self, content: bytes) -> None:
        """Send a message; waits while the other side does not keep up."""


class OutgoingStream(Stream, Protocol):
    """A stream that this side opened."""

    async def finish(self) -> None:
        """End this direction; the other side can still answer."""

    def close(self) -> None:
        """End the stream at once; messages in transit may be lost."""


class Connection(Protocol):
    """One connection of a link."""

    @property
    def control(self) -> Stream:
        """The open control channel."""

    async def updates(self) -> Stream:
        """Wait for the update channel of the same connection."""

    async def close(self) -> None:
        """End the connection; repeated calls are allowed."""
