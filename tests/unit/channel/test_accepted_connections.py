"""Connections of other systems by their remote ends, as gRPC names them."""

import pytest

from messiahs.channel.accepted_connections import CONNECTION_LIMIT, AcceptedConnections, RemoteEnd, end_of
from messiahs.core.model.ids import SystemId

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
