"""Connections that run through a stream, for systems that nobody can dial (MESSIAHS 5.3.3)."""

from typing import Final

from messiahs.errors import CodecError
from messiahs.wire.limits import at_most, secret
from messiahs.wire.parsing import parsed, serialized
from messiahs.wire.v1 import control_pb2, task_pb2

PIPE_PIECE_BYTES: Final = 256 << 10
"""Maximum length of a piece of a connection."""


def bytes_wanted_to_bytes(token: bytes) -> bytes:
    """Serialise a request for a pipe."""
    return serialized(control_pb2.BytesWanted(token=token))


def bytes_wanted_from_bytes(content: bytes) -> bytes:
    """Return the token in a request for a pipe."""
    return secret(parsed(control_pb2.BytesWanted(), content).token)


def pipe_token_to_bytes(token: bytes) -> bytes:
    """Serialise the first message of a pipe."""
    return serialized(task_pb2.PipeMessage(token=token))


def pipe_token_from_bytes(content: bytes) -> bytes:
    """Return the token in the first message of a pipe."""
    wire = parsed(task_pb2.PipeMessage(), content)
    if wire.WhichOneof("kind") != "token":
        raise CodecError("a pipe begins without a token")
    return secret(wire.token)


def pipe_content_to_bytes(content: bytes) -> bytes:
    """Serialise a piece of a connection."""
    at_most(len(content), PIPE_PIECE_BYTES, what="bytes of a connection in a piece")
    return serialized(task_pb2.PipeMessage(content=content))


def pipe_content_from_bytes(content: bytes) -> bytes:
    """Return a piece of a connection."""
    wire = parsed(task_pb2.PipeMessage(), content)
    if wire.WhichOneof("kind") != "content":
        raise CodecError("a pipe carries a second token")
    at_most(len(wire.content), PIPE_PIECE_BYTES, what="bytes of a connection in a piece")
    return wire.content
