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
    pieces = [("a.1", b"a\nb"), ("a.1", b"c\r\xff"), ("a.2", b"\nd\n"), ("a.4", b"e"), ("a.5", b"f\n")]
    assert b"".join(prefixed(pieces)) == (b"a.1: a\na.1: bc\r\xff\na.2: \na.2: d\na.4: e\na.5: f\n")
    assert b"".join(prefixed([("a.7", b"x")])) == b"a.7: x\n"


def test_lines_of_members_that_write_at_once_are_whole_and_the_last_one_follows_at_its_end() -> None:
    pieces = [
        ("a.1", b"a"),
        ("a.2", b"b\nc"),
        ("a.1", b"d\ne\xff"),
        ("a.2", b""),
        ("a.3", b"f"),
        ("a.1", b"g\n"),
        ("a.1", b""),
    ]
    assert list(lines_of(pieces)) == [
        b"a.2: b\n",
        b"a.1: ad\n",
        b"a.2: c\n",
        b"a.1: e\xffg\n",
        b"a.3: f\n",
    ]


def test_what_has_no_end_of_line_for_long_is_shown_as_a_line() -> None:
    (line,) = lines_of([("a.1", b"x" * 70_000)])
    assert line == b"a.1: " + b"x" * 70_000 + b"\n"
