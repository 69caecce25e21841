"""Whether neighbors reach a module, and what their clocks show. Not in the papers."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from messiahs.errors import CodecError
from messiahs.wire.limits import TEXT_LIMIT_BYTES, address, counter, line, shortened
from messiahs.wire.parsing import parsed, serialized
from messiahs.wire.v1 import reach_pb2


class ReachResult(StrEnum):
    """What happened when a module was dialed."""

    ANSWERED = "answered"
    REFUSED = "refused"
    SILENT = "silent"
    UNRESOLVED = "unresolved"
    OTHER = "other"
    FAILED = "failed"
    NO_ADDRESS = "no_address"
    NOT_NOW = "not_now"


_WIRE: Final = {
    ReachResult.ANSWERED: reach_pb2.REACH_RESULT_ANSWERED,
    ReachResult.REFUSED: reach_pb2.REACH_RESULT_REFUSED,
    ReachResult.SILENT: reach_pb2.REACH_RESULT_SILENT,
    ReachResult.UNRESOLVED: reach_pb2.REACH_RESULT_UNRESOLVED,
    ReachResult.OTHER: reach_pb2.REACH_RESULT_OTHER,
    ReachResult.FAILED: reach_pb2.REACH_RESULT_FAILED,
    ReachResult.NO_ADDRESS: reach_pb2.REACH_RESULT_NO_ADDRESS,
    ReachResult.NOT_NOW: reach_pb2.REACH_RESULT_NOT_NOW,
}
_RESULTS: Final = {wire: result for result, wire in _WIRE.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachRequest:
    """Asks the receiver to dial the sender at the address that is configured for it there."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachAnswer:
    """What happened at `address` (host:port; empty: none was dialed), and the wall clock of the sender.

    `clock_ns` counts from 1970 in UTC; `took_ns` is the time from the request's arrival until the answer is sent.
    """

    number: int
    result: ReachResult
    clock_ns: int
    took_ns: int = 0
    address: str = ""
    text: str = ""


ReachMessage = ReachRequest | ReachAnswer


def reach_message_to_bytes(message: ReachMessage) -> bytes:
    """Serialise a message; texts are cut to their bound."""
    wire = reach_pb2.ReachMessage()
    match message:
        case ReachRequest():
            # Also if the number is 0.
            wire.request.SetInParent()
            wire.request.number = message.number
        case ReachAnswer():
            wire.answer.number, wire.answer.result = message.number, _WIRE[message.result]
            wire.answer.clock_ns, wire.answer.took_ns = message.clock_ns, message.took_ns
            wire.answer.address, wire.answer.text = message.address, shortened(message.text, TEXT_LIMIT_BYTES)
    return serialized(wire)


def reach_message_from_bytes(content: bytes) -> ReachMessage | None:
    """Parse a message; None if its kind is unknown, and a `CodecError` if a value is outside its bound."""
    wire = parsed(reach_pb2.ReachMessage(), content)
    match wire.WhichOneof("kind"):
        case "request":
            return ReachRequest(number=counter(wire.request.number))
        case "answer":
            return _answer(wire.answer)
        case _:
            return None


def _answer(wire: reach_pb2.ReachAnswer) -> ReachAnswer:
    if wire.result not in _RESULTS:
        raise CodecError(f"{wire.result} is no result of dialing")
    return ReachAnswer(
        number=counter(wire.number),
        result=_RESULTS[wire.result],
        clock_ns=counter(wire.clock_ns),
        took_ns=counter(wire.took_ns),
        address=address(wire.address),
        text=line(wire.text, TEXT_LIMIT_BYTES),
    )
