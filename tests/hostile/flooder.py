"""A neighbor with a valid certificate that sends all it can: `python -m tests.hostile.flooder SETTINGS KIND`.

It ends when its standard input ends. A link that the module ends is opened again.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from secrets import token_bytes, token_hex
from typing import Final

import grpc
import grpc.aio

from messiahs.channel.certificates.tls import TlsFiles, load
from messiahs.channel.contract import ChannelSettings, Connection
from messiahs.channel.grpc_channels import GrpcTransport
from messiahs.channel.grpc_streams import open_stream
from messiahs.config.settings import ModuleSettings, NeighborSettings, load_settings
from messiahs.core.epochs import WIRE_VERSIONS
from messiahs.core.interface.hello import Hello
from messiahs.core.interface.messages import (
    BoundTask,
    ClaimEnd,
    Command,
    ControlMessage,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    StatusVector,
    TaskStatus,
    TaskTransfer,
    VectorKind,
)
from messiahs.core.model.descriptions import SDV, TDV, sorted_pairs
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, MessageId, SearchId, SystemId, TaskId, Ticket
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.core.model.neighbors import Relation
from messiahs.core.vectors.vectors import coalesce, vector_of
from messiahs.errors import ChannelError
from messiahs.wire.codec import (
    control_from_bytes,
    control_to_bytes,
    encode_control,
    status_vector_to_bytes,
    transfer_to_bytes,
)
from tests.contract.channel_modules import Recorded

_EPOCH: Final = Epoch(666)
_BATCH: Final = 200
_METHODS: Final = ("Transfer", "Put", "Feed", "Read")
_CONNECTIONS, _STREAMS_OF_ONE = 8, 250
_BRINGING: Final = 64
_PLACES: Final = 4


@dataclass(kw_only=True)
class Flooder:
    """The neighbor, while it has a link (mutable)."""

    settings: ModuleSettings
    transport: GrpcTransport
    connection: Connection
    answers: "asyncio.Queue[SchedAccept | SchedDeny]" = field(default_factory=lambda: asyncio.Queue(4096))
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def name(self) -> SystemId:
        """Its name, which its certificate has."""
        return SystemId(self.settings.name)

    @property
    def parent(self) -> NeighborSettings:
        """The module, as its settings have it."""
        return _parent_in(self.settings)

    @property
    def address(self) -> str:
        """Where it dials the module."""
        assert self.parent.address is not None
        return self.parent.address

    def request(self, requirement: str) -> SchedRequest:
        """Return a request that was never sent before."""
        return SchedRequest(
            id=MessageId(next(self.numbers)),
            search=SearchId(token_bytes(16)),
            origin=self.name,
            tdv=TDV((("cpus", 1), ("origin", self.name), ("user", "mallory"))),
            requirement=requirement,
            count=1,
            hops_left=1,
            asks_left=1,
            remaining_ns=MINUTE,
        )

    async def send(self, messages: Sequence[ControlMessage]) -> None:
        """Send control messages in one batch."""
        await self.connection.control.write(control_to_bytes(messages))

    async def read(self) -> None:
        """Read what the module sends until the link ends."""
        while (content := await self.connection.control.read()) is not None:
            for message in control_from_bytes(content):
                if isinstance(message, SchedAccept | SchedDeny) and not self.answers.full():
                    self.answers.put_nowait(message)

    def channel(self) -> grpc.aio.Channel:
        """Open another connection."""
        files = (self.settings.trust_file, self.settings.key_file, self.settings.certificate_file)
        credentials = grpc.ssl_channel_credentials(*(file.read_bytes() for file in files))
        name = ("grpc.ssl_target_name_override", str(self.parent.neighbor.system))
        return grpc.aio.secure_channel(self.address, credentials, options=(name, ("grpc.use_local_subchannel_pool", 1)))


async def single_requests(evil: Flooder) -> None:
    """Send small requests, each in its own message, which no machine fulfils."""
    batch = encode_control((evil.request("$slots > 9999"),))
    while True:
        batch.messages[0].sched_request.id = next(evil.numbers)
        batch.messages[0].sched_request.search = token_bytes(16)
        await evil.connection.control.write(batch.SerializeToString())


async def many_requests(evil: Flooder) -> None:
    """Send small requests in batches."""
    while True:
        await evil.send([evil.request("$slots > 9999") for _ in range(_BATCH)])


async def predicates(evil: Flooder) -> None:
    """Send requests with predicates of 4 KB that were never seen before."""
    while True:
        terms = (f"$a{token_hex(3)} > {next(evil.numbers)}" for _ in range(180))
        await evil.send([evil.request(" or ".join(terms)[:4096].rpartition(" or ")[0])])


async def garbage(evil: Flooder) -> None:
    """Send bytes that are no messages, and messages of which every part is malformed."""
    batch = encode_control([evil.request("true")] * _BATCH)
    for message in batch.messages:
        message.sched_request.search = b"short"
    malformed = batch.SerializeToString()
    while True:
        await evil.connection.control.write(os.urandom(100))
        await evil.connection.control.write(malformed)


async def unknown_claims(evil: Flooder) -> None:
    """Send news of claims that do not exist, and tasks for them on a stream of their own."""
    channel = evil.channel()
    bringing = open_stream(channel, "/messiahs.wire.v1.Task/Transfer")
    answers = asyncio.create_task(_read_all(bringing))
    try:
        while True:
            await evil.send(
                [
                    TaskStatus(claim=evil_claim(evil, next(evil.numbers)), attempts=(), window=4, renewal=1)
                    for _ in range(_BATCH)
                ]
            )
            await bringing.write(transfer_to_bytes(_transfer(evil_claim(evil, next(evil.numbers)), Ticket(b"0" * 16))))
    finally:
        answers.cancel()
        await channel.close(None)


def evil_claim(evil: Flooder, number: int) -> ClaimId:
    """Return a claim that nobody has granted."""
    return ClaimId(evil.name, _EPOCH, number)


async def vectors(evil: Flooder) -> None:
    """Send vectors of many classes, of which no two are alike."""
    updates = await evil.connection.updates()
    prepared = [_vector_of_machines(20 * number) for number in range(100)]
    while True:
        for content in prepared:
            await updates.write(content)


def _vector_of_machines(first: int) -> bytes:
    machines: list[dict[str, int | str]] = [
        {
            "nproc": 1 + number % 64,
            "num_slots": 1 + number % 64,
            "free_slots": number % 2,
            "speed": 1 + number % 900,
            "load": number % 100,
            "arch": ("x86_64", "arm64")[number % 2],
            "site": f"evil-{number}",
        }
        for number in range(first, first + 20)
    ]
    vector = coalesce(vector_of(SDV(sorted_pairs(machine))) for machine in machines)
    kind, waiting = VectorKind.FOR_PARENTS, first % 7
    message = StatusVector(kind=kind, vector=vector, period_ns=60 * SECOND, age_ns=0, waiting=waiting)
    return status_vector_to_bytes(message)


async def claims(evil: Flooder) -> None:
    """Ask for a few places, and give them back at once: each makes the module write to its disk."""
    await evil.send([evil.request("") for _ in range(_PLACES)])
    while True:
        answer = await evil.answers.get()
        ends = (ClaimEnd(claim=answer.claim),) if isinstance(answer, SchedAccept) else ()
        await evil.send((*ends, evil.request("")))


async def unread_answers(evil: Flooder) -> None:
    """Send requests and read no answer."""
    await many_requests(evil)


async def streams(evil: Flooder) -> None:
    """Open thousands of streams, send garbage on each, and begin anew."""
    channels = [evil.channel() for _ in range(_CONNECTIONS)]
    try:
        await asyncio.gather(
            *(_open_again_and_again(channel, number) for channel in channels for number in range(_STREAMS_OF_ONE))
        )
    finally:
        for channel in channels:
            await channel.close(None)


async def _open_again_and_again(channel: grpc.aio.Channel, number: int) -> None:
    method = f"/messiahs.wire.v1.Task/{_METHODS[number % len(_METHODS)]}"
    while True:
        stream = open_stream(channel, method)
        with suppress(grpc.RpcError, asyncio.InvalidStateError):
            await stream.write(b"garbage")
            await stream.read()
        stream.cancel()


async def transfers(evil: Flooder) -> None:
    """Bring tasks that nobody asked for, with large commands and files, on many streams."""
    await evil.send((evil.request(""),))
    accept = await evil.answers.get()
    if not isinstance(accept, SchedAccept):
        return
    channel = evil.channel()
    try:
        await asyncio.gather(*(_bring(evil, accept, channel=channel) for _ in range(_BRINGING)))
    finally:
        await channel.close(None)


async def _bring(evil: Flooder, accept: SchedAccept, *, channel: grpc.aio.Channel) -> None:
    stream = open_stream(channel, "/messiahs.wire.v1.Task/Transfer")
    answers = asyncio.create_task(_read_all(stream))
    try:
        while True:
            many = _transfer(accept.claim, accept.ticket, tasks=100, evil=evil)
            await stream.write(transfer_to_bytes(many))
            few = _transfer(accept.claim, accept.ticket)
            await stream.write(transfer_to_bytes(few, [token_bytes(60_000) for _ in range(8)]))
    finally:
        answers.cancel()


def _transfer(claim: ClaimId, ticket: Ticket, *, tasks: int = 0, evil: Flooder | None = None) -> TaskTransfer:
    bound = tuple(
        BoundTask(
            attempt=AttemptId(TaskId(evil.name, _EPOCH, next(evil.numbers), 0), 1),
            command=Command(argv=("true", "x" * 1000)),
        )
        for _ in range(tasks)
        if evil is not None
    )
    return TaskTransfer(claim=claim, ticket=ticket, tasks=bound)


async def _read_all(stream: "grpc.aio.StreamStreamCall[bytes, bytes]") -> None:
    with suppress(grpc.RpcError):
        while isinstance(await stream.read(), bytes):
            pass


Flood = Callable[[Flooder], Awaitable[None]]
KINDS: Final[dict[str, Flood]] = {
    "single requests": single_requests,
    "many requests": many_requests,
    "predicates": predicates,
    "garbage": garbage,
    "unknown claims": unknown_claims,
    "vectors": vectors,
    "claims": claims,
    "unread answers": unread_answers,
    "streams": streams,
    "transfers": transfers,
}


async def flood(settings_file: Path, kind: str) -> None:
    """Send a flood of one kind until this is cancelled."""
    settings = load_settings(settings_file)
    files = TlsFiles(
        certificate_file=settings.certificate_file, key_file=settings.key_file, trust_file=settings.trust_file
    )
    name = SystemId(settings.name)
    channels = ChannelSettings(federation=settings.federation, name=name, listen=settings.listen, bulk_port=None)
    transport = GrpcTransport(channels, Recorded(name=name).callbacks(), load(files))
    parent = _parent_in(settings)
    assert parent.address is not None
    while True:
        try:
            connection = await transport.dial(parent.neighbor.system, parent.address)
        except ChannelError:
            await asyncio.sleep(0)
            continue
        await _flood(Flooder(settings=settings, transport=transport, connection=connection), kind)


def _parent_in(settings: ModuleSettings) -> NeighborSettings:
    return next(each for each in settings.neighbors if each.neighbor.relation is Relation.PARENT)


async def _flood(evil: Flooder, kind: str) -> None:
    hello = Hello(system=evil.name, epoch=_EPOCH, wire_versions=WIRE_VERSIONS, release="evil")
    work = [asyncio.ensure_future(_begin(evil, hello, kind))]
    if kind != "unread answers":
        work.append(asyncio.ensure_future(evil.read()))
    try:
        await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in work:
            each.cancel()
        for error in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(error, Exception) and not isinstance(error, ChannelError | grpc.RpcError):
                sys.stderr.write(f"{error!r}\n")
        await evil.connection.close()


async def _begin(evil: Flooder, hello: Hello, kind: str) -> None:
    await evil.send((hello,))
    sys.stdout.write("flooding\n")
    sys.stdout.flush()
    await KINDS[kind](evil)


async def _main() -> None:
    flooding = asyncio.create_task(flood(Path(sys.argv[1]), sys.argv[2]))
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.buffer.read))
    await asyncio.wait((flooding, ended), return_when=asyncio.FIRST_COMPLETED)
    if flooding.done():
        sys.stderr.write(f"{flooding.exception()!r}\n")
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(_main())
