"""Connections of other systems by their remote ends, as gRPC names them."""

import asyncio
import socket

import pytest

from messiahs.channel.accepted_connections import CONNECTION_LIMIT, AcceptedConnections, RemoteEnd, end_of
from messiahs.core.model.ids import SystemId
from tests.descriptors import no_free_descriptor
from tests.waiting import until

CS, XINU = SystemId("cs"), SystemId("xinu")


@pytest.mark.parametrize(
    ("peer", "end"),
    [
        ("ipv4:192.0.2.1:5", RemoteEnd("192.0.2.1", 5)),
        ("ipv6:%5B2001:db8::1%5D:5", RemoteEnd("2001:db8::1", 5)),
        ("ipv6:[::1]:5", RemoteEnd("::1", 5)),
        ("ipv6:%5Bfe80::1%25eth0%5D:5", RemoteEnd("fe80::1", 5)),
        ("ipv6:%5B::ffff:192.0.2.1%5D:5", RemoteEnd("192.0.2.1", 5)),
        ("unix:/proc/self/fd/9/messiahs", None),
        ("unix:", None),
    ],
)
def test_the_remote_end_of_a_connection_is_the_one_that_its_socket_has(peer: str, end: RemoteEnd | None) -> None:
    assert end_of(peer) == end


def test_a_connection_counts_until_its_last_stream_has_ended() -> None:
    connections = AcceptedConnections(100)
    for number in range(CONNECTION_LIMIT):
        connections.begin(CS, str(number))
    connections.begin(CS, "0")
    connections.end(CS, "0")
    assert not connections.may_carry(CS, "another")
    assert connections.may_carry(CS, "0")
    assert connections.may_carry(XINU, "another")
    connections.end(CS, "0")
    assert connections.may_carry(CS, "another")


def test_those_without_a_stream_are_counted_again_after_no_file_could_be_opened(
    caplog: pytest.LogCaptureFixture,
) -> None:
    share, excess = 2, 3

    async def main() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        dialed = [socket.create_connection(("127.0.0.1", port)) for _ in range(share + excess)]
        accepted = [listener.accept()[0] for _ in dialed]
        with no_free_descriptor():
            watching = asyncio.create_task(AcceptedConnections(4 * share).watch(port))
            await until(lambda: "could not be counted" in caplog.text)
        try:
            await until(lambda: sum(map(has_ended, dialed)) == excess)
        finally:
            watching.cancel()
            for each in (listener, *dialed, *accepted):
                each.close()

    asyncio.run(main())


def has_ended(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return not connection.recv(1)
    except BlockingIOError:
        return False
