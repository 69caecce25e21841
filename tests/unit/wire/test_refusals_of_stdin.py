"""What is refused of messages about standard input."""

import pytest

from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SystemId, TaskId, Ticket
from messiahs.errors import CodecError
from messiahs.wire.codec import (
    FEED_PIECE_BYTES,
    FeedPiece,
    FeedRequest,
    feed_piece_from_bytes,
    feed_piece_to_bytes,
    feed_request_from_bytes,
    feed_request_to_bytes,
)
from messiahs.wire.v1 import task_pb2

CLAIM = ClaimId(SystemId("cs"), Epoch(1), 1)
ATTEMPT = AttemptId(TaskId(SystemId("xinu"), Epoch(1), 1), 1)


def test_a_piece_has_at_most_256_kib() -> None:
    largest = FeedPiece(content=bytes(262_144))
    assert feed_piece_from_bytes(feed_piece_to_bytes(largest)) == largest
    with pytest.raises(CodecError, match="262145"):
        feed_piece_to_bytes(FeedPiece(content=bytes(FEED_PIECE_BYTES + 1)))
    wire = task_pb2.FeedMessage(piece=task_pb2.FeedPiece(content=bytes(FEED_PIECE_BYTES + 1)))
    with pytest.raises(CodecError, match="262145"):
        feed_piece_from_bytes(wire.SerializeToString())


def test_a_request_and_a_piece_are_not_taken_for_each_other() -> None:
    request = feed_request_to_bytes(FeedRequest(claim=CLAIM, ticket=Ticket(bytes(16)), attempt=ATTEMPT))
    with pytest.raises(CodecError, match="second request"):
        feed_piece_from_bytes(request)
    with pytest.raises(CodecError, match="before a request"):
        feed_request_from_bytes(feed_piece_to_bytes(FeedPiece(is_end=True)))


def test_a_ticket_of_another_length_is_refused() -> None:
    with pytest.raises(CodecError):
        feed_request_from_bytes(
            feed_request_to_bytes(FeedRequest(claim=CLAIM, ticket=Ticket(b"short"), attempt=ATTEMPT))
        )
