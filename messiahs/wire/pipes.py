"""Connections that run through a stream, for systems that nobody can dial (MESSIAHS 5.3.3)."""

from dataclasses import dataclass
from typing import Final

from messiahs.core.model.ids import ClaimId, Ticket
from messiahs.errors import CodecError
from messiahs.wire.ids import read_claim, write_claim
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SpliceQuery:
    """A request to pass a connection on: the claim on whose path, and the ticket of the hop that gets it."""

    claim: ClaimId
    ticket: Ticket


def pipe_begin_to_bytes(begin: bytes | SpliceQuery) -> bytes:
    """Serialise the first message of a pipe: a token, or how to pass the pipe on."""
    if isinstance(begin, bytes):
        return serialized(task_pb2.PipeMessage(token=begin))
    wire = task_pb2.PipeMessage()
    write_claim(wire.splice.claim, begin.claim)
    wire.splice.ticket = begin.ticket
    return serialized(wire)


def pipe_begin_from_bytes(content: bytes) -> bytes | SpliceQuery:
    """Return the token in the first message of a pipe, or how to pass it on."""
    wire = parsed(task_pb2.PipeMessage(), content)
    match wire.WhichOneof("kind"):
        case "token":
            return secret(wire.token)
        case "splice":
            return SpliceQuery(claim=read_claim(wire.splice.claim), ticket=Ticket(secret(wire.splice.ticket)))
        case _:
            raise CodecError("a pipe begins without a token")


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
