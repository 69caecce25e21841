"""A neighbor with a valid certificate sends hostile messages: it is answered, and nobody else is affected."""

import asyncio
import socket
from collections.abc import Callable, Iterator, Mapping
from secrets import token_bytes

import grpc
import grpc.aio
import pytest

from messiahs.channel.accepted_connections import CONNECTION_LIMIT
from messiahs.channel.certificates.tls import TlsFiles, load
from messiahs.channel.contract import ChannelSettings, Connection
from messiahs.channel.grpc_channels import GrpcTransport
from messiahs.channel.grpc_streams import open_stream
from messiahs.config.settings import load_settings
from messiahs.core.epochs import WIRE_VERSIONS
from messiahs.core.interface.hello import Hello
from messiahs.core.interface.messages import DenyCode, SchedAccept, SchedDeny, SchedRequest, TaskDeny, TaskRequest
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import Epoch, MessageId, SearchId, SystemId
from messiahs.core.model.instants import MINUTE
from messiahs.wire.codec import control_from_bytes, control_to_bytes, encode_control
from messiahs.wire.v1 import control_pb2
from tests.contract.channel_modules import Recorded
from tests.hostile.predicates import costly_texts, refused_bytes
from tests.live.conftest import Federation
from tests.live.hostile_module import played_lab
from tests.waiting import PATIENCE_SECONDS

Answer = SchedAccept | SchedDeny | TaskDeny

HOME, EVIL = SystemId("home"), SystemId("evil")
# An honest request keeps its granted places for a while: there are enough for all tests.
_TOPOLOGY = """
version: 1
federation: lab
systems:
  home: {machine: {isolation: process, slots: 8}}
  evil: {parent: home}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Share a module whose only neighbor is gone and has left its key to the tests."""
    with played_lab(tmp_path_factory.mktemp("hostile"), _TOPOLOGY) as made:
        yield made


@pytest.mark.parametrize("ask", ["for places", "for tasks"])
def test_every_hostile_predicate_is_denied_and_the_link_stays_while_users_are_served(
    home: Federation, ask: str
) -> None:
    async def scene() -> tuple[dict[str, Answer], dict[str, Answer]]:
        connection = await _connected(home)
        make = _for_places if ask == "for places" else _for_tasks
        user = asyncio.create_task(asyncio.to_thread(home.run, "run", "--", "echo", "served"))
        answers = await _asked(connection, refused_bytes(), make)
        honest = await _asked(connection, {"honest": b"$slots >= 1"}, _for_places, first=1_000)
        done = await user
        await connection.close()
        assert done.stdout == "served\n", done.stderr
        return answers, honest

    answers, honest = asyncio.run(scene())
    assert isinstance(honest["honest"], SchedAccept)
    assert answers.keys() == refused_bytes().keys()
    for name, answer in answers.items():
        assert not isinstance(answer, SchedAccept), name
        assert [reason.code for reason in answer.reasons] == [DenyCode.BAD_PREDICATE], name
        assert 0 < len(answer.reasons[0].text) < 500, name


def test_costly_predicates_are_evaluated_and_the_link_stays(home: Federation) -> None:
    texts = {name: text.encode() for name, text in costly_texts().items()}

    async def scene() -> dict[str, Answer]:
        connection = await _connected(home)
        answers = await _asked(connection, texts, _for_places)
        answers |= await _asked(connection, {f"tasks: {name}": text for name, text in texts.items()}, _for_tasks)
        await connection.close()
        return answers

    answers = asyncio.run(scene())
    assert len(answers) == 2 * len(texts)
    denied = [reason for answer in answers.values() if not isinstance(answer, SchedAccept) for reason in answer.reasons]
    assert DenyCode.BAD_PREDICATE not in {reason.code for reason in denied}


async def _connected(home: Federation) -> Connection:
    settings = load_settings(home.folder(EVIL) / "settings.json")
    (neighbor,) = settings.neighbors
    assert neighbor.address is not None
    channels = ChannelSettings(federation=settings.federation, name=EVIL, listen=settings.listen)
    files = TlsFiles(
        certificate_file=settings.certificate_file, key_file=settings.key_file, trust_file=settings.trust_file
    )
    transport = GrpcTransport(channels, Recorded(name=EVIL).callbacks(), load(files))
    connection = await transport.dial(HOME, neighbor.address)
    hello = Hello(system=EVIL, epoch=Epoch(666), wire_versions=WIRE_VERSIONS, release="evil")
    await connection.control.write(control_to_bytes((hello,)))
    return connection


async def _asked(
    connection: Connection,
    predicates: Mapping[str, bytes],
    make: Callable[[MessageId, bytes], control_pb2.ControlBatch],
    *,
    first: int = 1,
) -> dict[str, Answer]:
    """Send a request with each predicate, in separate messages, and return the answers by the predicates' names."""
    names = {MessageId(number): name for number, name in enumerate(predicates, start=first)}
    for number, name in names.items():
        await connection.control.write(make(number, predicates[name]).SerializeToString())
    answers: dict[str, Answer] = {}
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(answers) < len(names):
            content = await connection.control.read()
            assert content is not None, "the link was ended"
            for message in control_from_bytes(content):
                if isinstance(message, SchedAccept | SchedDeny | TaskDeny):
                    answers[names[message.request]] = message
    return answers


def _for_places(number: MessageId, predicate: bytes) -> control_pb2.ControlBatch:
    request = SchedRequest(
        id=number,
        search=SearchId(token_bytes(16)),
        origin=EVIL,
        tdv=TDV((("cpus", 1), ("origin", EVIL), ("user", "mallory"))),
        requirement="",
        count=1,
        hops_left=1,
        asks_left=1,
        remaining_ns=MINUTE,
    )
    batch = encode_control((request,))
    batch.messages[0].sched_request.requirement = predicate
    return batch


def _for_tasks(number: MessageId, predicate: bytes) -> control_pb2.ControlBatch:
    request = TaskRequest(
        id=number,
        search=SearchId(token_bytes(16)),
        requester=EVIL,
        wanting="",
        count=1,
        hops_left=1,
        asks_left=1,
        remaining_ns=MINUTE,
    )
    batch = encode_control((request,))
    batch.messages[0].task_request.wanting = predicate
    return batch


def test_a_stranger_that_fails_its_handshake_writes_nothing_to_a_file_without_rotation(home: Federation) -> None:
    host, _, port = load_settings(home.folder("home") / "settings.json").listen.rpartition(":")
    for _ in range(5):
        with socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            try:
                while stranger.recv(1_000):
                    pass
            except ConnectionError:
                pass
    assert "andshake" not in (home.folder("home") / "daemon.log").read_text()


def test_a_neighbor_with_very_many_connections_keeps_its_link_and_users_are_served(home: Federation) -> None:
    settings = load_settings(home.folder(EVIL) / "settings.json")
    (neighbor,) = settings.neighbors
    credentials = grpc.ssl_channel_credentials(
        settings.trust_file.read_bytes(), settings.key_file.read_bytes(), settings.certificate_file.read_bytes()
    )
    options = (("grpc.ssl_target_name_override", HOME), ("grpc.use_local_subchannel_pool", 1))

    async def scene() -> None:
        connection = await _connected(home)
        channels = [
            grpc.aio.secure_channel(str(neighbor.address), credentials, options=options)
            for _ in range(2 * CONNECTION_LIMIT)
        ]
        kept: list[grpc.aio.StreamStreamCall[bytes, bytes]] = []
        answers = await asyncio.gather(*(_answer(channel, kept) for channel in channels))
        # The link has one of them.
        refused = f"evil has {CONNECTION_LIMIT} connections with streams open, as many as it may"
        assert answers.count(refused) == CONNECTION_LIMIT + 1
        assert sum("a transfer was dropped" in answer for answer in answers) == CONNECTION_LIMIT - 1
        user = await asyncio.to_thread(home.run, "run", "--", "echo", "served")
        assert user.stdout == "served\n", user.stderr
        assert isinstance((await _asked(connection, {"honest": b"$slots >= 1"}, _for_places))["honest"], SchedAccept)
        for channel in channels:
            await channel.close(None)
        await connection.close()

    asyncio.run(scene())


async def _answer(channel: grpc.aio.Channel, kept: list[grpc.aio.StreamStreamCall[bytes, bytes]]) -> str:
    """Send garbage on a new stream, which is open while it is `kept`; return the answer, or why it is refused."""
    while True:
        stream = open_stream(channel, "/messiahs.wire.v1.Task/Transfer")
        kept.append(stream)
        try:
            await stream.write(b"garbage")
            content = await stream.read()
        except (grpc.RpcError, asyncio.InvalidStateError):
            content = None
        if isinstance(content, bytes):
            return content.decode(errors="replace")
        details = str(await stream.details())
        # gRPC tells this in place of the refusal if the stream ends while it is written to.
        if details != "Internal error from Core":
            return details
