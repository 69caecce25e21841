"""Control characters in texts for people are refused on receipt and escaped before sending."""

from collections.abc import Callable

import pytest

from messiahs.core.interface.hello import Hello
from messiahs.core.interface.messages import (
    AttemptStatus,
    ControlMessage,
    DenyCode,
    Reason,
    SchedDeny,
    SchedRequest,
    TaskRevoke,
    TaskState,
    TaskStatus,
)
from messiahs.core.interface.transfer_answers import TransferAnswer
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, MessageId, SearchId, SystemId, TaskId
from messiahs.errors import CodecError
from messiahs.wire.codec import (
    PutAnswer,
    answer_from_bytes,
    answer_to_bytes,
    control_from_bytes,
    control_to_bytes,
    decode_control,
    encode_control,
    put_answer_from_bytes,
    put_answer_to_bytes,
)
from messiahs.wire.v1 import control_pb2, task_pb2

CS = SystemId("cs")
CLAIM = ClaimId(CS, Epoch(1), 1)
ATTEMPT = AttemptId(TaskId(CS, Epoch(1), 1), 1)
HELLO = Hello(system=CS, epoch=Epoch(1), wire_versions=(1,), release="1.0")
ENDED = AttemptStatus(attempt=ATTEMPT, state=TaskState.FINISHED, exit_code=0)
STATUS = TaskStatus(claim=CLAIM, attempts=(ENDED,), window=1)
REVOKE = TaskRevoke(claim=CLAIM, attempts=(ATTEMPT,), text="away")
DENY = SchedDeny(request=MessageId(1), reasons=(Reason(module=CS, code=DenyCode.LOST),), asks_left=0)
REQUEST = SchedRequest(
    id=MessageId(1),
    search=SearchId(bytes(16)),
    origin=CS,
    tdv=TDV((("cpus", 1), ("origin", "cs"), ("user", "ada"), ("zone", "b"))),
    requirement="",
    count=1,
    hops_left=1,
    asks_left=1,
    remaining_ns=1,
)
CONTROLS = ("\x1b[2J", "a\nb", "\x7f", "\x9b31m", "\u202egpj", "\u2066", "\u2028", "\u200f")


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize(
    ("message", "put"),
    [
        (HELLO, lambda wire, text: setattr(wire.hello, "release", text)),
        (STATUS, lambda wire, text: setattr(wire.task_status.attempts[0], "cause", text)),
        (STATUS, lambda wire, text: setattr(wire.task_status.attempts[0], "text", text)),
        (REVOKE, lambda wire, text: setattr(wire.task_revoke, "text", text)),
        (DENY, lambda wire, text: setattr(wire.sched_deny.reasons[0], "rule", text)),
        (DENY, lambda wire, text: setattr(wire.sched_deny.reasons[0], "text", text)),
        (REQUEST, lambda wire, text: setattr(wire.sched_request.tdv.pairs[2], "text", text)),
        (REQUEST, lambda wire, text: setattr(wire.sched_request.tdv.pairs[3], "text", text)),
    ],
)
def test_a_text_with_control_characters_is_refused(
    message: ControlMessage, put: Callable[[control_pb2.ControlMessage, str], None], control: str
) -> None:
    batch = encode_control((message,))
    put(batch.messages[0], "naïve 日本")
    assert decode_control(batch)
    put(batch.messages[0], control)
    with pytest.raises(CodecError, match="control characters"):
        decode_control(batch)


@pytest.mark.parametrize("control", CONTROLS)
def test_an_answer_on_the_task_channel_with_control_characters_is_refused(control: str) -> None:
    with pytest.raises(CodecError, match="control characters"):
        answer_from_bytes(task_pb2.TransferAnswer(problem=control).SerializeToString())
    with pytest.raises(CodecError, match="control characters"):
        put_answer_from_bytes(task_pb2.PutAnswer(problem=control).SerializeToString())


def test_every_text_that_is_sent_has_its_control_characters_escaped() -> None:
    """A task chooses the names of its files, and they must not cost its executor the status."""
    text = "left out: x\x1b[2J\n\udcff"
    reported = AttemptStatus(attempt=ATTEMPT, state=TaskState.ABORTED, cause="a\tb", text=text)
    (received,) = control_from_bytes(control_to_bytes((TaskStatus(claim=CLAIM, attempts=(reported,), window=1),)))
    assert isinstance(received, TaskStatus)
    assert (received.attempts[0].cause, received.attempts[0].text) == (r"a\tb", r"left out: x\x1b[2J\n\udcff")
    answer = TransferAnswer(claim=CLAIM, problem="\u202e" * 300)
    assert answer_from_bytes(answer_to_bytes(answer)).problem == r"\u202e" * 85 + r"\u"
    assert put_answer_from_bytes(put_answer_to_bytes(PutAnswer(problem="\n"))).problem == r"\n"
