"""Options of gRPC: sizes, windows, pings, and limits on what others open (MESSIAHS 5.3)."""

from typing import Final

from messiahs.channel.accepted_connections import allowed_connections
from messiahs.wire.limits import MESSAGE_LIMIT_BYTES

Options = tuple[tuple[str, int | str], ...]

_WINDOW_BYTES: Final = 4 << 20
"""What a system that was dialed may have on its way in one stream: 40 MB/s over a link of 100 ms."""
_SERVER_WINDOW_BYTES: Final = 1 << 20
"""What a system that dialed may have on its way in one stream; it may open many of them, and leave each unread."""

_IDLE_MS: Final = 120_000
"""A connection that others opened is closed after so long without a stream; modules close theirs sooner."""

STREAMS_OF_CONNECTION: Final = 40
"""Streams that the system that dialed may have open on one connection.

An honest one of release 0.1.0, which has one connection for tasks and bytes, needs 33 at a time: a task channel and 32
files that it sends. gRPC presents new streams one by one, a third of a millisecond each, and nobody can be refused
before.
"""

_LEAST_PING_MS: Final = 1_000
"""Peers that ping more often, whatever their `keep_alive`, are hung up on."""

_BOTH_SIDES: Final[Options] = (
    # Larger than the codec's limit: exceeding that one costs the sender a message, exceeding this one the stream.
    ("grpc.max_receive_message_length", 4 * MESSAGE_LIMIT_BYTES),
    ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # Otherwise a window grows with the measured bandwidth, on a fast link beyond 16 MiB, which the receiver holds.
    ("grpc.http2.bdp_probe", 0),
)
_SERVER_SIDE: Final[Options] = (
    # Otherwise two modules at one port would share its connections.
    ("grpc.so_reuseport", 0),
    # Time for TLS and HTTP/2 to be agreed; then the connection is closed.
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_concurrent_streams", STREAMS_OF_CONNECTION),
    ("grpc.http2.lookahead_bytes", _SERVER_WINDOW_BYTES),
)
_CLIENT_SIDE: Final[Options] = (
    # One connection per link: channels to the same address must not share one.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    # An attempt may take so long; TCP, TLS and HTTP/2 need three round trips, of up to a second and a half each.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    ("grpc.http2.lookahead_bytes", _WINDOW_BYTES),
    # A name that leads elsewhere now is followed as soon as a connection fails.
    ("grpc.dns_min_time_between_resolutions_ms", 1_000),
)


def server_options(silence_seconds: float) -> Options:
    """Return the options of the listening side; neighbors may ping more often than this module does."""
    least_ms = min(_LEAST_PING_MS, int(silence_seconds * 1000 / 3))
    allowed = ("grpc.http2.min_ping_interval_without_data_ms", least_ms)
    connections = ("grpc.max_allowed_incoming_connections", allowed_connections())
    idle = ("grpc.max_connection_idle_ms", _IDLE_MS)
    return (*_BOTH_SIDES, *_SERVER_SIDE, *_pings(silence_seconds), allowed, connections, idle)


def client_options(silence_seconds: float) -> Options:
    """Return the options of the side that dials."""
    return (*_BOTH_SIDES, *_CLIENT_SIDE, *_pings(silence_seconds))


def _pings(silence_seconds: float) -> Options:
    """Ping after two thirds of the time without traffic, and wait one third for the answer."""
    third = int(silence_seconds * 1000 / 3)
    return (
        ("grpc.keepalive_time_ms", 2 * third),
        ("grpc.keepalive_timeout_ms", third),
        # Newer releases of gRPC read this option instead; its default is a minute.
        ("grpc.http2.ping_timeout_ms", third),
    )
