"""Tasks in images at a machine that cannot unpack them, although their requirement does not exclude it."""

import pytest

from messiahs.core.interface.actions import StartAttempt
from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import DenyCode, SchedAccept, SchedDeny, SchedRequest, TaskState, TaskStatus
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.environments import lacking_text
from messiahs.core.model.ids import SearchId
from messiahs.core.model.instants import SECOND
from tests.unit.core.rig import CHILD, PARENT, Rig, make_module, message_in, remote, request, sent, tdv, transfer

TEXT = "it runs no task in an image: only machines whose `$isolation` is `sandbox` do"


def in_image(digest: str = "ab" * 32) -> TDV:
    return tdv(image=digest)


@pytest.fixture
def rig() -> Rig:
    made = Rig(make_module())
    made.resume()
    made.greet(PARENT, CHILD)
    return made


@pytest.mark.parametrize("said", [{"isolation": "process"}, {"isolation": "bubblewrap"}, {}])
def test_it_denies_them_and_says_why(rig: Rig, said: dict[str, str]) -> None:
    rig.measure(**said)
    (reason,) = message_in(rig.hear(PARENT, request(tdv=in_image())), SchedDeny).reasons
    assert (reason.code, reason.text) == (DenyCode.REQUIREMENT_UNMET, TEXT)


def test_a_machine_with_sandboxes_takes_them(rig: Rig) -> None:
    rig.measure(isolation="sandbox")
    assert message_in(rig.hear(PARENT, request(tdv=in_image())), SchedAccept).places == 1


def test_they_are_passed_on_to_systems_that_may_unpack_it(rig: Rig) -> None:
    rig.measure(isolation="process")
    rig.see(CHILD)
    ((to, _),) = sent(rig.hear(PARENT, request(tdv=in_image())), SchedRequest)
    assert to == CHILD


def test_what_is_no_hash_is_no_image(rig: Rig) -> None:
    rig.measure(isolation="process")
    assert sent(rig.hear(PARENT, request(tdv=in_image("debian"))), SchedAccept)


def test_a_claim_of_before_sandboxes_were_lost_takes_none_any_more(rig: Rig) -> None:
    rig.measure(isolation="sandbox")
    granted = message_in(rig.hear(PARENT, request(tdv=in_image())), SchedAccept)
    rig.measure(isolation="process")
    actions = rig.handle(TransferReceived(sender=PARENT, message=transfer(granted.claim, granted.ticket, remote())))
    (said,) = message_in((*actions, *rig.wait(0)), TaskStatus).attempts
    assert (said.state, said.text) == (TaskState.DENIED, TEXT)


def again(number: int, tdv: TDV) -> SchedRequest:
    return request(number, search=SearchId(number.to_bytes(16)), tdv=tdv)


def with_environment(**stated: str) -> TDV:
    return tdv(environment="cd" * 32, **stated)


@pytest.mark.parametrize("isolation", ["process", ""])
def test_a_machine_that_shows_no_environments_denies_them_and_says_why(rig: Rig, isolation: str) -> None:
    rig.measure(isolation=isolation)
    (reason,) = message_in(rig.hear(PARENT, request(tdv=with_environment())), SchedDeny).reasons
    assert reason.code == DenyCode.REQUIREMENT_UNMET
    assert reason.text == "it shows no environment to a task: only machines with sandboxes do"


def test_a_machine_that_lacked_an_interpreter_denies_tasks_that_need_it_for_a_while(rig: Rig) -> None:
    rig.measure(isolation="sandbox", slots=8)
    needs = with_environment(python="/usr/bin/python3.99")
    granted = message_in(rig.hear(PARENT, request(tdv=needs)), SchedAccept)
    moved = rig.handle(TransferReceived(sender=PARENT, message=transfer(granted.claim, granted.ticket, remote())))
    (start,) = [action for action in moved if isinstance(action, StartAttempt)]
    assert start.environment == "cd" * 32
    text = lacking_text("/usr/bin/python3.99")
    rig.handle(AttemptEnded(attempt=start.attempt, cause=Cause.NO_INTERPRETER, text=text))
    (reason,) = message_in(rig.hear(PARENT, again(2, needs)), SchedDeny).reasons
    assert (reason.code, reason.text) == (DenyCode.REQUIREMENT_UNMET, text)
    assert sent(rig.hear(PARENT, again(3, with_environment(python="/usr/bin/python3.11"))), SchedAccept)
    rig.wait(600 * SECOND)
    rig.greet(PARENT)
    assert sent(rig.hear(PARENT, again(4, needs)), SchedAccept)


def test_nobody_can_say_for_others_that_an_interpreter_is_lacking(rig: Rig) -> None:
    rig.measure(isolation="sandbox", slots=8)
    stated = with_environment(python="/usr/bin/python3.11")
    granted = message_in(rig.hear(PARENT, request(tdv=stated)), SchedAccept)
    moved = rig.handle(TransferReceived(sender=PARENT, message=transfer(granted.claim, granted.ticket, remote())))
    (start,) = [action for action in moved if isinstance(action, StartAttempt)]
    # The archive of that task needs another one.
    text = lacking_text("/usr/bin/python3.99")
    rig.handle(AttemptEnded(attempt=start.attempt, cause=Cause.NO_INTERPRETER, text=text))
    others = tdv(environment="ab" * 32, python="/usr/bin/python3.11")
    assert sent(rig.hear(PARENT, again(2, others)), SchedAccept)
    (reason,) = message_in(rig.hear(PARENT, again(3, stated)), SchedDeny).reasons
    assert reason.text == "it could not use the environment of the task a short while ago"


def test_a_machine_that_could_not_show_an_environment_denies_it_for_a_while(rig: Rig) -> None:
    rig.measure(isolation="sandbox", slots=8)
    granted = message_in(rig.hear(PARENT, request(tdv=with_environment())), SchedAccept)
    moved = rig.handle(TransferReceived(sender=PARENT, message=transfer(granted.claim, granted.ticket, remote())))
    (start,) = [action for action in moved if isinstance(action, StartAttempt)]
    rig.handle(AttemptEnded(attempt=start.attempt, cause=Cause.NO_PLACE, text="it cannot be shown"))
    assert sent(rig.hear(PARENT, again(2, with_environment())), SchedDeny)
    assert sent(rig.hear(PARENT, again(3, tdv(environment="ab" * 32))), SchedAccept)
    rig.wait(600 * SECOND)
    rig.greet(PARENT)
    assert sent(rig.hear(PARENT, again(4, with_environment())), SchedAccept)
