"""Why a search is denied, and what of an accept is not believed."""

from dataclasses import replace

from messiahs.core.interface.actions import SendControl
from messiahs.core.interface.messages import ClaimEnd, DenyCode, SchedDeny, SchedRequest
from tests.unit.core.rig import CHILD, CLAIM, PARENT, Rig, accept, deny, message_in, request, sent


def test_an_attribute_that_a_machine_does_not_say_is_named(rig: Rig) -> None:
    rig.measure()
    denial = message_in(rig.hear(PARENT, request(requirement='$nosuch eq "x"')), SchedRequest)
    assert denial.requirement == '$nosuch eq "x"'
    ((_, answer),) = sent(rig.hear(CHILD, deny(denial.id)), SchedDeny)
    assert answer.reasons[0].code is DenyCode.REQUIREMENT_UNMET
    assert answer.reasons[0].text == "own machine has no $nosuch"


def test_a_lease_that_no_executor_needs_is_not_believed(rig: Rig) -> None:
    ask = message_in(rig.hear(PARENT, request()), SchedRequest)
    given = replace(accept(ask.id), lease_ns=10**18)
    assert rig.hear(CHILD, given) == (SendControl(to=CHILD, message=ClaimEnd(claim=CLAIM)),)
