"""The format of a segment file: a magic line, then frames, each with its length and a checksum.

The first frame is the head, the second the state of the module at that moment, and each further one a record. If the
process was killed, only the end of the frame being written is missing.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from messiahs.config.policies import PolicySource
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.policies import Calendar, Randomness
from messiahs.core.model.ids import SystemId
from messiahs.core.state.module import ModuleState
from messiahs.errors import TraceError
from messiahs.language.predicate.predicates import predicate_parser
from messiahs.trace.format.records import Record, contents
from messiahs.trace.format.values import decode, encode

FORMAT = 2
"""In format 1, a record without a subject stands for all timeouts that were due; since then, for one."""
MAGIC = b"messiahs trace\n"

_FRAME = struct.Struct(">II")


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The recorded module, its release and its policy.

    An instant plus `wall_offset_ns` is nanoseconds since 1970. The segments of one `recording` (identified by the time
    of its start) are numbered from 0, and each starts where the previous one ended.
    """

    format: int
    release: str
    fingerprint: str
    system: SystemId
    wall_offset_ns: int
    recording: int
    number: int
    policy: PolicySource


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A segment read from a file; `state` and `frames` are not decoded yet.

    `note` describes an incomplete end, if there is one.
    """

    name: str
    head: Head
    state: bytes
    frames: tuple[bytes, ...]
    note: str = ""

    def records(self) -> Iterator[Record]:
        """Yield the steps in order; a `TraceError` if one cannot be read."""
        for number, body in enumerate(self.frames, start=1):
            record = _decoded(body, {}, where=f"{self.name}: record {number}")
            assert isinstance(record, Record)
            yield record

    def state_with(self, *, policy: Policy, randomness: Randomness, calendar: Calendar) -> ModuleState:
        """Return the state at the beginning, with these ports; a `TraceError` if it is damaged."""
        ports = {"policy": policy, "parse": predicate_parser, "randomness": randomness, "calendar": calendar}
        state = _decoded(self.state, ports, where=f"{self.name}: the state")
        assert isinstance(state, ModuleState)
        return state


def segment_start(head: Head, state: ModuleState) -> bytes:
    """Return the beginning of a segment file."""
    return MAGIC + _frame(msgspec.msgpack.encode(head)) + _frame(state_bytes(state))


def state_bytes(state: ModuleState) -> bytes:
    """Return a state as bytes, which are equal for indistinguishable states."""
    return encode(state, contents(), is_canonical=True)


def record_frame(record: Record) -> bytes:
    """Return the frame of a record."""
    return _frame(encode(record, contents()))


def read_segment(name: str, data: bytes) -> Segment | None:
    """Return the segment in a file, None if the process was killed before its start was complete.

    Raises `TraceError` if it is not a trace, is damaged, or cannot be read by this build; `name` is for the messages.
    """
    if not data.startswith(MAGIC[: len(data)]):
        raise TraceError(f"{name}: this is not a trace")
    frames, is_whole = _frames(name, data)
    if not frames:
        return None
    head = _head(name, frames[0])
    if len(frames) == 1:
        return None
    note = "" if is_whole else "the last record is incomplete"
    return Segment(name=name, head=head, state=frames[1], frames=tuple(frames[2:]), note=note)


def _head(name: str, body: bytes) -> Head:
    try:
        head = msgspec.msgpack.decode(body)
        written_by = f"written by release {head['release']}, format {head['format']}"
        if head["format"] != FORMAT:
            raise TraceError(f"{name}: {written_by}; this release reads format {FORMAT}: use the one that wrote it")
        if head["fingerprint"] != contents().fingerprint:
            raise TraceError(
                f"{name}: {written_by}, with other messages or states than this build has: use that one, or delete it"
            )
        return msgspec.msgpack.decode(body, type=Head)
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise TraceError(f"{name}: the head of this trace is damaged: {error}") from error


def _frame(body: bytes) -> bytes:
    return _FRAME.pack(len(body), zlib.crc32(body)) + body


def _frames(name: str, data: bytes) -> tuple[list[bytes], bool]:
    """Return the complete frames, and whether nothing follows them."""
    frames: list[bytes] = []
    place = len(MAGIC)
    while place + _FRAME.size <= len(data):
        length, checksum = _FRAME.unpack_from(data, place)
        body = data[place + _FRAME.size : place + _FRAME.size + length]
        if len(body) < length:
            return frames, False
        if zlib.crc32(body) != checksum:
            raise TraceError(f"{name}: damaged at byte {place}: the checksum of frame {len(frames) + 1} is wrong")
        frames.append(body)
        place += _FRAME.size + length
    return frames, place >= len(data)


def _decoded(body: bytes, ports: dict[str, object], *, where: str) -> object:
    try:
        return decode(body, contents(), ports)
    except Exception as error:
        raise TraceError(f"{where} cannot be read: {error}") from error
