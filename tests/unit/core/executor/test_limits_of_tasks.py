"""The most that the site gives to one task: who states more is denied, and who states nothing is limited to it."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import StartAttempt
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import (
    AttemptStatus,
    DenyCode,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    TaskState,
    TaskStatus,
)
from messiahs.core.model.attributes import Value
from messiahs.core.model.instants import SECOND
from messiahs.core.model.task_limits import Maxima, TaskLimits
from tests.unit.core.rig import (
    CHILD,
    ORIGIN,
    PARENT,
    Rig,
    make_module,
    message_in,
    only,
    remote,
    request,
    sent,
    tdv,
    transfer,
    view,
)

_MIB, _GIB = 1 << 20, 1 << 30
_MAXIMA = Maxima(memory_bytes=8 * _GIB, disk_bytes=20 * _GIB, run_seconds=7200)


def rig_of(maxima: Maxima = _MAXIMA) -> Rig:
    module = make_module()
    module.state.identity = replace(module.state.identity, maxima=maxima)
    rig = Rig(module)
    rig.resume()
    rig.greet(PARENT, CHILD)
    rig.measure()
    return rig


def started(rig: Rig, **stated: Value) -> StartAttempt:
    """Let a task come here that states needs; return its start."""
    accept = message_in(rig.hear(PARENT, request(tdv=tdv(**stated))), SchedAccept)
    moved = transfer(accept.claim, accept.ticket, remote())
    (start,) = only(rig.handle(TransferReceived(sender=ORIGIN, message=moved)), StartAttempt)
    return start


def ended(rig: Rig, cause: Cause, *, text: str = "") -> AttemptStatus:
    actions = rig.end(AttemptEnded(attempt=remote(), cause=cause, text=text, ran_ns=SECOND))
    (status,) = message_in(actions, TaskStatus).attempts
    return status


@pytest.mark.parametrize(
    ("stated", "text"),
    [
        ({"mem": 16 * _GIB}, "it states 16 GiB of memory: at most 8 GiB here"),
        ({"mem": 8 * _GIB + _MIB}, "it states 8.000976562 GiB of memory: at most 8 GiB here"),
        ({"disk": 1 << 45}, "it states 32 TiB of disk: at most 20 GiB here"),
        ({"est_time": 7201}, "it states 7201 s of run time: at most 7200 s here"),
        (
            {"mem": 9 * _GIB, "est_time": 9000},
            "it states 9 GiB of memory: at most 8 GiB here; it states 9000 s of run time: at most 7200 s here",
        ),
    ],
)
def test_a_task_that_states_more_is_denied_with_both_values(stated: dict[str, Value], text: str) -> None:
    (reason,) = message_in(rig_of().hear(PARENT, request(tdv=tdv(**stated))), SchedDeny).reasons
    assert (reason.code, reason.text) == (DenyCode.NO_CLASS, text)


def test_a_search_for_more_goes_elsewhere() -> None:
    rig = rig_of()
    rig.see(CHILD, view())
    ((to, _),) = sent(rig.hear(PARENT, request(tdv=tdv(mem=9 * _GIB))), SchedRequest)
    assert to == CHILD


def test_a_task_that_states_no_more_than_the_maxima_gets_what_it_states() -> None:
    start = started(rig_of(), mem=8 * _GIB, disk=_MIB, est_time=7200)
    assert start.limits == TaskLimits(memory_bytes=8 * _GIB, disk_bytes=_MIB)
    assert start.limit_ns == 7200 * SECOND


def test_a_task_that_states_nothing_is_limited_to_the_maxima() -> None:
    start = started(rig_of())
    assert start.limits == TaskLimits(memory_bytes=8 * _GIB, disk_bytes=20 * _GIB, of_site=("mem", "disk"))
    assert start.limit_ns == 7200 * SECOND


def test_without_maxima_nothing_is_limited_that_is_not_stated() -> None:
    start = started(rig_of(Maxima()))
    assert (start.limits, start.limit_ns) == (TaskLimits(), None)


def test_a_task_that_the_time_of_the_site_has_ended_is_told_so() -> None:
    rig = rig_of()
    started(rig)
    status = ended(rig, Cause.TIME_LIMIT)
    assert (status.state, status.cause) == (TaskState.ABORTED, Cause.TIME_LIMIT)
    text = "a task that states no time runs for at most 7200 s on this machine: state what it needs with --time"
    assert status.text == text


def test_a_task_that_its_own_time_has_ended_needs_no_text() -> None:
    rig = rig_of()
    started(rig, est_time=5)
    assert ended(rig, Cause.TIME_LIMIT).text == ""


def test_other_ends_keep_their_text() -> None:
    rig = rig_of()
    started(rig)
    assert ended(rig, Cause.DISK_LIMIT, text="too much").text == "too much"
