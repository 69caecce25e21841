"""From a protobuf message to bytes and back, with every kind of trouble turned into a `CodecError`."""

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from messiahs.errors import CodecError
from messiahs.wire.limits import MESSAGE_LIMIT_BYTES, at_most

SomeMessage = TypeVar("SomeMessage", bound=Message)


def serialized(wire: Message) -> bytes:
    """Give the bytes of a message that is small enough to be sent."""
    content = wire.SerializeToString()
    at_most(len(content), MESSAGE_LIMIT_BYTES, what="bytes of message")
    return content


def parsed(wire: SomeMessage, content: bytes) -> SomeMessage:
    """Fill in a message from bytes that anybody may have sent."""
    at_most(len(content), MESSAGE_LIMIT_BYTES, what="bytes of message")
    try:
        wire.ParseFromString(content)
    except DecodeError as error:
        raise CodecError(f"not a {wire.DESCRIPTOR.name}: {error}") from error
    return wire
