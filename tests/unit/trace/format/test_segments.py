"""Segment files: what was cut off is missing and nothing else, and damage is never taken for a trace."""

from dataclasses import replace

import msgspec
import pytest

from messiahs.core.interface.events import LinkUp
from messiahs.errors import TraceError
from messiahs.trace.format.segments import read_segment, segment_start
from tests.unit.core.rig import SIBLING, Rig, make_module
from tests.unit.trace.taping import Taping, taping


def _file() -> tuple[Taping, bytes]:
    tape = taping(Rig(module=make_module()))
    tape.record()
    tape.start()
    tape.handle(LinkUp(neighbor=SIBLING))
    tape.module.end_recording()
    (data,) = tape.files.files
    return tape, data


def test_a_segment_holds_the_head_and_every_step() -> None:
    tape, data = _file()
    segment = read_segment("one", data)
    assert segment is not None
    assert (segment.head.system, segment.head.number, segment.note) == ("me", 0, "")
    *_, last = segment.records()
    assert (last.subject, last.at) == (LinkUp(neighbor=SIBLING), tape.now)


def test_wherever_a_file_was_cut_off_what_is_before_can_be_read() -> None:
    _, data = _file()
    whole = read_segment("whole", data)
    assert whole is not None
    seen: set[int] = set()
    for length in range(len(data)):
        segment = read_segment("cut", data[:length])
        if segment is None:
            seen.add(-1)
            continue
        assert segment.frames == whole.frames[: len(segment.frames)]
        assert segment.state == whole.state
        seen.add(len(segment.frames))
    assert seen == {-1, 0, 1, 2}
    cut = read_segment("cut", data[:-1])
    assert cut is not None
    assert cut.note == "the last record is incomplete"


def test_no_changed_byte_goes_unnoticed() -> None:
    _, data = _file()
    for place in range(len(data)):
        changed = data[:place] + bytes((data[place] ^ 4,)) + data[place + 1 :]
        try:
            segment = read_segment("changed", changed)
        except TraceError:
            continue
        # A length that is wrong may point behind the end.
        assert segment is None or segment.note


def test_another_file_is_refused_as_a_trace() -> None:
    with pytest.raises(TraceError, match="notes: this is not a trace"):
        read_segment("notes", b"what I did")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": 1}, "written by release 0.9.0, format 1; this release reads format 2: use the one that wrote it"),
        ({"format": 3}, "written by release 0.9.0, format 3; this release reads format 2: use the one that wrote it"),
        ({"fingerprint": "other"}, "written by release 0.9.0, format 2, with other messages or states"),
    ],
)
def test_what_another_release_wrote_is_said_so(changes: dict[str, int | str], said: str) -> None:
    tape, data = _file()
    segment = read_segment("one", data)
    assert segment is not None
    head = replace(segment.head, release="0.9.0", **changes)  # type: ignore[arg-type]
    with pytest.raises(TraceError, match=said):
        read_segment("one", segment_start(head, tape.module.state))


def test_a_record_that_cannot_be_decoded_is_named() -> None:
    _, data = _file()
    segment = read_segment("one", data)
    assert segment is not None
    strange = replace(segment, frames=(*segment.frames, msgspec.msgpack.encode(["Nobody", 1])))
    with pytest.raises(TraceError, match="one: record 4 cannot be read"):
        list(strange.records())
