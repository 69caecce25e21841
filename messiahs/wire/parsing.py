"""Parsing and serialising protobuf messages; every error becomes a `CodecError`."""

from collections.abc import Callable, Generator, Iterable
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message

from messiahs.errors import CodecError
from messiahs.wire.limits import MESSAGE_LIMIT_BYTES, at_most

SomeMessage = TypeVar("SomeMessage", bound=Message)
Wire = TypeVar("Wire")
Read = TypeVar("Read")
_ENTRIES_AT_ONCE: Final = 256
"""Each takes a few microseconds to check, and a message may have tens of thousands."""


def serialized(wire: Message) -> bytes:
    """Serialise a message; a `CodecError` if it exceeds the limit for messages."""
    content = wire.SerializeToString()
    at_most(len(content), MESSAGE_LIMIT_BYTES, what="bytes of message")
    return content


def parsed(wire: SomeMessage, content: bytes) -> SomeMessage:
    """Parse untrusted bytes into `wire`, and return it."""
    at_most(len(content), MESSAGE_LIMIT_BYTES, what="bytes of message")
    try:
        wire.ParseFromString(content)
    except DecodeError as error:
        raise CodecError(f"not a {wire.DESCRIPTOR.name}: {error}") from error
    return wire


def in_parts(
    read: Callable[[Wire], Read], wires: Iterable[Wire], *, entries: Callable[[Wire], int]
) -> Generator[None, None, tuple[Read, ...]]:
    """Check the elements of a message and return them; it yields after some hundred `entries`, where others may go on.

    One element is checked without a pause.
    """
    found: list[Read] = []
    since_pause = 0
    for wire in wires:
        found.append(read(wire))
        since_pause += 1 + entries(wire)
        if since_pause >= _ENTRIES_AT_ONCE:
            since_pause = 0
            yield
    return tuple(found)


def whole(parts: Generator[None, None, Read]) -> Read:
    """Run a check that pauses to its end, and return what it returns."""
    while True:
        try:
            next(parts)
        except StopIteration as end:
            found: Read = end.value
            return found
