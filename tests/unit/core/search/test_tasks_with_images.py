"""Tasks in images at a machine that cannot unpack them, although their requirement does not exclude it."""

import pytest

from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import DenyCode, SchedAccept, SchedDeny, SchedRequest, TaskState, TaskStatus
from messiahs.core.model.descriptions import TDV
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
