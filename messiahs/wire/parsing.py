"""Parsing and serialising protobuf messages; every error becomes a `CodecError`."""

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from messiahs.errors import CodecError
from messiahs.wire.limits import MESSAGE_LIMIT_BYTES, at_most

SomeMessage = TypeVar("SomeMessage", bound=Message)


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
