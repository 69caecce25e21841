"""The output of all members of an array, as frames and as lines."""

import http.client

import pytest
from hypothesis import given
from hypothesis import strategies as st

from messiahs.client.member_logs import framed, lines_of, prefixed


def frame(member: int, piece: bytes) -> bytes:
    return member.to_bytes(4) + len(piece).to_bytes(4) + piece


@given(st.lists(st.tuples(st.integers(1, 10**6), st.binary(max_size=9))), st.integers(1, 20))
def test_frames_arrive_as_they_were_sent_however_they_are_cut(frames: list[tuple[int, bytes]], size: int) -> None:
    sent = b"".join(frame(member, piece) for member, piece in frames)
    assert list(framed(sent[begin : begin + size] for begin in range(0, len(sent), size))) == frames


def test_an_answer_that_ends_within_a_frame_is_incomplete() -> None:
    with pytest.raises(http.client.IncompleteRead):
        list(framed([frame(1, b"abc")[:-1]]))


def test_each_line_has_the_id_of_its_member_before_it() -> None:
    pieces = [(1, b"a\nb"), (1, b"c\r\xff"), (2, b"\nd\n"), (4, b"e"), (5, b"f\n")]
    assert b"".join(prefixed("left.9", pieces)) == (
        b"left.9.1: a\nleft.9.1: bc\r\xff\nleft.9.2: \nleft.9.2: d\nleft.9.4: e\nleft.9.5: f\n"
    )
    assert b"".join(prefixed("left.9", [(7, b"x")])) == b"left.9.7: x\n"


def test_lines_of_members_that_write_at_once_are_whole_and_the_last_one_follows_at_its_end() -> None:
    pieces = [(1, b"a"), (2, b"b\nc"), (1, b"d\ne\xff"), (2, b""), (3, b"f"), (1, b"g\n"), (1, b"")]
    assert list(lines_of("left.9", pieces)) == [
        b"left.9.2: b\n",
        b"left.9.1: ad\n",
        b"left.9.2: c\n",
        b"left.9.1: e\xffg\n",
        b"left.9.3: f\n",
    ]


def test_what_has_no_end_of_line_for_long_is_shown_as_a_line() -> None:
    (line,) = lines_of("left.9", [(1, b"x" * 70_000)])
    assert line == b"left.9.1: " + b"x" * 70_000 + b"\n"
