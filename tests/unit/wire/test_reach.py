"""Questions about reach, and their answers, on the wire."""

import pytest

from messiahs.errors import CodecError
from messiahs.wire.reach import (
    ReachAnswer,
    ReachMessage,
    ReachRequest,
    ReachResult,
    reach_message_from_bytes,
    reach_message_to_bytes,
)
from messiahs.wire.v1 import reach_pb2

LARGEST = (1 << 63) - 1


@pytest.mark.parametrize(
    "message",
    [
        ReachRequest(number=0),
        ReachRequest(number=LARGEST),
        *(ReachAnswer(number=7, result=result, clock_ns=1) for result in ReachResult),
        ReachAnswer(
            number=LARGEST,
            result=ReachResult.FAILED,
            clock_ns=LARGEST,
            took_ns=LARGEST,
            address="host.example.org:7101",
            text="why not",
        ),
    ],
)
def test_a_message_is_read_as_it_was_written(message: ReachMessage) -> None:
    assert reach_message_from_bytes(reach_message_to_bytes(message)) == message


def test_a_long_text_is_cut() -> None:
    answer = ReachAnswer(number=1, result=ReachResult.FAILED, clock_ns=1, text="a" * 600)
    read = reach_message_from_bytes(reach_message_to_bytes(answer))
    assert isinstance(read, ReachAnswer)
    assert read.text == "a" * 512


@pytest.mark.parametrize(
    "wire",
    [
        reach_pb2.ReachMessage(request=reach_pb2.ReachRequest(number=1 << 63)),
        reach_pb2.ReachMessage(answer=reach_pb2.ReachAnswer(number=1)),
        *(
            reach_pb2.ReachMessage(answer=reach_pb2.ReachAnswer(result=reach_pb2.REACH_RESULT_FAILED, **fields))
            for fields in (
                {"number": 1 << 63},
                {"clock_ns": 1 << 63},
                {"took_ns": 1 << 63},
                {"address": "a b"},
                {"address": "a" * 301},
                {"text": "a\nb"},
                {"text": "a" * 513},
            )
        ),
    ],
)
def test_a_value_outside_its_bound_is_refused(wire: reach_pb2.ReachMessage) -> None:
    with pytest.raises(CodecError):
        reach_message_from_bytes(wire.SerializeToString())


def test_a_result_of_a_later_release_is_refused() -> None:
    # Field 2 of the answer in field 2.
    with pytest.raises(CodecError, match="99 is no result"):
        reach_message_from_bytes(b"\x12\x02\x10\x63")


def test_what_is_no_message_is_refused_and_an_unknown_kind_is_none() -> None:
    with pytest.raises(CodecError):
        reach_message_from_bytes(b"\xff")
    assert reach_message_from_bytes(b"") is None
