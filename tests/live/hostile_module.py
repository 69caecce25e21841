"""A module with a valid certificate whose every message and answer a test decides: a hostile neighbor and executor."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import randbelow
from typing import Any, cast

from messiahs.channel.certificates.tls import TlsFiles, load
from messiahs.channel.contract import ChannelSettings, Connection, Peer, Stream
from messiahs.channel.grpc_channels import GrpcTransport
from messiahs.config.settings import ModuleSettings, load_settings
from messiahs.core.epochs import WIRE_VERSIONS
from messiahs.core.interface.hello import Hello
from messiahs.core.interface.messages import (
    AttemptStatus,
    ControlMessage,
    SchedAccept,
    SchedRequest,
    StatusVector,
    Substate,
    TaskState,
    TaskStatus,
    VectorKind,
)
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SystemId, Ticket
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.core.model.neighbors import Relation
from messiahs.core.vectors.vectors import vector_of
from messiahs.wire.codec import (
    ReadRequest,
    control_from_bytes,
    control_to_bytes,
    read_request_from_bytes,
    status_vector_to_bytes,
    transfer_and_files_from_bytes,
)
from tests.contract.channel_modules import Recorded
from tests.live.conftest import Federation
from tests.live.lab import lab
from tests.waiting import PATIENCE_SECONDS

EPOCH = Epoch(666)
TICKET = Ticket(b"0123456789abcdef")
MACHINE: Mapping[str, int | str] = {
    "nproc": 64,
    "num_slots": 64,
    "free_slots": 64,
    "speed": 900,
    "load": 0,
    "arch": "x86_64",
    "os": "Linux",
    "total_mem": 64 << 30,
    "avail_mem": 64 << 30,
    "total_disk": 900 << 30,
    "avail_disk": 900 << 30,
    "site": "evil",
}

Serve = Callable[[Peer, Stream], Awaitable[None]]
ServeRead = Callable[[Peer, ReadRequest], AsyncGenerator[bytes, None]]


async def read_all(_: Peer, stream: Stream) -> None:
    """Read a stream and never answer."""
    while await stream.read() is not None:
        pass


async def never_answer(_: Peer, __: ReadRequest) -> AsyncGenerator[bytes, None]:
    """Accept a read, and send nothing."""
    await asyncio.Event().wait()
    yield b""


@dataclass(kw_only=True)
class HostileModule:
    """The module; `serve_*` are what it does with streams that others open (mutable).

    `machine` is what its vector shows, and `vectors` has the bytes of those that it was sent, if they are kept.
    """

    settings: ModuleSettings
    machine: Mapping[str, int | str] = field(default_factory=lambda: MACHINE)
    release: str = "evil"
    vectors: "asyncio.Queue[bytes] | None" = None
    address: str = ""
    connection: Connection | None = None
    claim: ClaimId | None = None
    """The claim of the last task that `run_next` took."""
    received: "asyncio.Queue[ControlMessage]" = field(default_factory=asyncio.Queue)
    transfers: "asyncio.Queue[bytes]" = field(default_factory=asyncio.Queue)
    has_ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether the link is over."""
    puts: Serve = read_all
    reads: ServeRead = never_answer
    feeds: Serve = read_all

    def __post_init__(self) -> None:
        """Read the keys of the module that it replaces."""
        settings = self.settings
        (self.neighbor,) = (each for each in settings.neighbors if each.neighbor.relation is Relation.PARENT)
        files = TlsFiles(
            certificate_file=settings.certificate_file, key_file=settings.key_file, trust_file=settings.trust_file
        )
        self.channels = ChannelSettings(
            federation=settings.federation, name=self.name, listen=settings.listen, bulk_port=None
        )
        self.tls = load(files)
        self.transport = GrpcTransport(self.channels, Recorded(name=self.name).callbacks(), self.tls)

    @property
    def name(self) -> SystemId:
        """Its name, which its certificate has."""
        return SystemId(self.settings.name)

    async def send(self, *messages: ControlMessage) -> None:
        """Send control messages to the neighbor."""
        assert self.connection is not None
        await self.connection.control.write(control_to_bytes(messages))

    async def next_of(self, *kinds: type) -> ControlMessage:
        """Wait for the next control message of some kinds; others are skipped."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not isinstance(message := await self.received.get(), kinds):
                pass
        return message

    async def grant(self, **changes: object) -> SchedAccept:
        """Grant one place for the next request, and return the accept."""
        request = await self.next_of(SchedRequest)
        assert isinstance(request, SchedRequest)
        accept = SchedAccept(
            request=request.id,
            claim=ClaimId(self.name, EPOCH, randbelow(1 << 40)),
            address=self.address,
            ticket=TICKET,
            places=1,
            window=1,
            lease_ns=10 * MINUTE,
            asks_left=1,
        )
        accept = replace(accept, **cast("dict[str, Any]", changes))
        await self.send(accept)
        return accept

    async def run_next(self, **changes: object) -> AttemptId:
        """Take the next task, and report that it runs."""
        accept = await self.grant(**changes)
        async with asyncio.timeout(PATIENCE_SECONDS):
            transfer, _ = transfer_and_files_from_bytes(await self.transfers.get())
        self.claim, attempt = accept.claim, transfer.tasks[0].attempt
        await self.report(AttemptStatus(attempt=attempt, state=TaskState.EXECUTING, substate=Substate.RUNNING))
        return attempt

    async def report(self, *attempts: AttemptStatus) -> None:
        """Report states of attempts in the claim of the last task that was taken."""
        assert self.claim is not None
        await self.send(TaskStatus(claim=self.claim, attempts=attempts, window=1))

    def on_impostor(self, name: SystemId, text: str) -> None:
        """Let anybody pass for anybody."""

    def on_distrusted(self, peer: SystemId) -> None:
        """Go on with anybody."""

    def refusal(self, peer: SystemId) -> str:
        """Accept nobody's link."""
        return f"{peer} is no neighbor"

    def on_shut_off(self, peer: SystemId) -> None:
        """Shrug."""

    def admitted(self, _: SystemId) -> AbstractAsyncContextManager[None]:
        """Admit everybody."""
        return nullcontext()

    async def serve_link(self, peer: SystemId, connection: Connection) -> None:
        """Accept no link."""

    async def serve_transfers(self, _: Peer, stream: Stream) -> None:
        """Keep what arrives."""
        while (content := await stream.read()) is not None:
            transfer_and_files_from_bytes(content)
            self.transfers.put_nowait(content)

    async def serve_put(self, peer: Peer, stream: Stream) -> None:
        """Do what the test says."""
        await self.puts(peer, stream)

    async def serve_feed(self, peer: Peer, stream: Stream) -> None:
        """Do what the test says."""
        await self.feeds(peer, stream)

    def serve_read(self, peer: Peer, content: bytes) -> AsyncGenerator[bytes, None]:
        """Do what the test says."""
        return self.reads(peer, read_request_from_bytes(content))


@contextmanager
def played_lab(folder: Path, topology: str, /) -> Iterator[Federation]:
    """Start a federation, and end its module `evil`, which tests play with its keys; users submit at `home`."""
    file = folder / "lab.yaml"
    file.write_text(topology)
    with lab(file, name="lab", module="home") as made:
        made.kill("evil")
        yield made.federation


@asynccontextmanager
async def hostile(federation: Federation, name: SystemId) -> AsyncIterator[HostileModule]:
    """Listen and link with the parent, as a machine with `site` "evil" and free slots."""
    module = HostileModule(settings=load_settings(federation.folder(name) / "settings.json"))
    async with linked(module):
        yield module


@asynccontextmanager
async def linked(module: HostileModule, *, hello: bytes = b"") -> AsyncIterator[Connection]:
    """Listen and link with the parent; `hello` is a batch that opens the link in place of its own."""
    module.address = await module.transport.start(module)
    assert module.neighbor.address is not None
    connection = module.connection = await module.transport.dial(
        module.neighbor.neighbor.system, module.neighbor.address
    )
    own = Hello(system=module.name, epoch=EPOCH, wire_versions=WIRE_VERSIONS, release=module.release)
    await connection.control.write(hello or control_to_bytes((own,)))
    reading = asyncio.create_task(_read(module, connection))
    reporting = asyncio.create_task(_report(module, connection))
    try:
        yield connection
    finally:
        reading.cancel()
        reporting.cancel()
        await asyncio.gather(reading, reporting, return_exceptions=True)
        await connection.close()
        await module.transport.stop()


async def _read(module: HostileModule, connection: Connection) -> None:
    try:
        while (content := await connection.control.read()) is not None:
            for message in control_from_bytes(content):
                module.received.put_nowait(message)
    finally:
        module.has_ended.set()


async def _report(module: HostileModule, connection: Connection) -> None:
    updates = await connection.updates()
    vector = vector_of(SDV(sorted_pairs(module.machine)))
    message = StatusVector(kind=VectorKind.FOR_PARENTS, vector=vector, period_ns=60 * SECOND, age_ns=0)
    await updates.write(status_vector_to_bytes(message))
    with suppress(Exception):
        while (content := await updates.read()) is not None:
            if module.vectors is not None:
                module.vectors.put_nowait(content)
