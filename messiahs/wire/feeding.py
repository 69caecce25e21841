"""Standard input on the task channel (MESSIAHS 5.3.3)."""

from dataclasses import dataclass
from typing import Final

from messiahs.core.model.ids import AttemptId, ClaimId, Ticket
from messiahs.errors import CodecError
from messiahs.wire.ids import read_attempt, read_claim, write_attempt, write_claim
from messiahs.wire.limits import TEXT_LIMIT_BYTES, at_most, counter, line, secret, shortened
from messiahs.wire.parsing import parsed, serialized
from messiahs.wire.v1 import task_pb2

FEED_PIECE_BYTES: Final = 256 << 10
"""Maximum length of a piece of standard input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRequest:
    """Announces the standard input of an attempt."""

    claim: ClaimId
    ticket: Ticket
    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPiece:
    """The next bytes of standard input; `is_end` if nothing follows."""

    content: bytes = b""
    is_end: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedAnswer:
    """How many bytes an attempt has taken, and whether it takes no more; or in `problem` why it gets none.

    If `has_ended`, the attempt takes no more because it has ended or is unknown, not because it closed its input.
    """

    offset_bytes: int = 0
    is_closed: bool = False
    problem: str = ""
    has_ended: bool = False
    has_terminal: bool = False
    """The attempt has a terminal, and takes frames (core/model/terminals.py)."""


def feed_request_to_bytes(request: FeedRequest) -> bytes:
    """Serialise the first message of a stream of standard input."""
    wire = task_pb2.FeedMessage()
    write_claim(wire.request.claim, request.claim)
    write_attempt(wire.request.attempt, request.attempt)
    wire.request.ticket = request.ticket
    return serialized(wire)


def feed_request_from_bytes(content: bytes) -> FeedRequest:
    """Parse the first message of a stream of standard input."""
    wire = parsed(task_pb2.FeedMessage(), content)
    if wire.WhichOneof("kind") != "request":
        raise CodecError("standard input arrived before a request")
    return FeedRequest(
        claim=read_claim(wire.request.claim),
        ticket=Ticket(secret(wire.request.ticket)),
        attempt=read_attempt(wire.request.attempt),
    )


def feed_piece_to_bytes(piece: FeedPiece) -> bytes:
    """Serialise a piece of standard input."""
    at_most(len(piece.content), FEED_PIECE_BYTES, what="bytes of standard input in a piece")
    return serialized(task_pb2.FeedMessage(piece=task_pb2.FeedPiece(content=piece.content, is_end=piece.is_end)))


def feed_piece_from_bytes(content: bytes) -> FeedPiece:
    """Parse a piece of standard input."""
    wire = parsed(task_pb2.FeedMessage(), content)
    if wire.WhichOneof("kind") != "piece":
        raise CodecError("a stream of standard input carries a second request")
    at_most(len(wire.piece.content), FEED_PIECE_BYTES, what="bytes of standard input in a piece")
    return FeedPiece(content=wire.piece.content, is_end=wire.piece.is_end)


def feed_answer_to_bytes(answer: FeedAnswer) -> bytes:
    """Serialise the answer to the sender of standard input."""
    problem = shortened(answer.problem, TEXT_LIMIT_BYTES)
    return serialized(
        task_pb2.FeedAnswer(
            offset_bytes=answer.offset_bytes,
            is_closed=answer.is_closed,
            problem=problem,
            has_ended=answer.has_ended,
            has_terminal=answer.has_terminal,
        )
    )


def feed_answer_from_bytes(content: bytes) -> FeedAnswer:
    """Parse the answer to the sender of standard input."""
    wire = parsed(task_pb2.FeedAnswer(), content)
    return FeedAnswer(
        offset_bytes=counter(wire.offset_bytes),
        is_closed=wire.is_closed,
        problem=line(wire.problem, TEXT_LIMIT_BYTES),
        has_ended=wire.has_ended,
        has_terminal=wire.has_terminal,
    )
