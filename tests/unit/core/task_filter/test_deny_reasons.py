"""Why a search is denied, and what of an accept is not believed."""

from dataclasses import replace

from messiahs.core.interface.actions import SendControl, Store
from messiahs.core.interface.messages import ClaimEnd, DenyCode, SchedDeny, SchedRequest
from messiahs.core.interface.rows import TaskRow
from messiahs.core.model.counted import requirement_for
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import CHILD, CLAIM, PARENT, Rig, accept, deny, message_in, only, request, sent, tdv


def test_an_attribute_that_a_machine_does_not_say_is_named(rig: Rig) -> None:
    rig.measure()
    denial = message_in(rig.hear(PARENT, request(requirement='$nosuch eq "x"')), SchedRequest)
    assert denial.requirement == '$nosuch eq "x"'
    ((_, answer),) = sent(rig.hear(CHILD, deny(denial.id)), SchedDeny)
    assert answer.reasons[0].code is DenyCode.REQUIREMENT_UNMET
    assert answer.reasons[0].text == "own machine has no $nosuch"


def test_things_that_a_machine_does_not_count_are_named_as_the_user_names_them(module: ModuleFactory) -> None:
    alone = module()
    alone.measure(speed=5)
    requirement = f'{requirement_for([("gpus", 2)])} and $lab eq "x"'
    stored = (each.row for each in only(alone.submit(requirement=requirement, waits=False, tdv=tdv(gpus=2)), Store))
    (own,) = (row for row in stored if isinstance(row, TaskRow))
    assert own.reasons[0].text == "own machine has no GPUs, no $lab"


def test_the_term_that_is_not_met_is_named_for_an_own_task_alone(module: ModuleFactory) -> None:
    alone = module()
    alone.greet(CHILD)
    alone.measure(speed=5)
    requirement = "$speed = 5 and $speed > 6"
    stored = (each.row for each in only(alone.submit(requirement=requirement, waits=False), Store))
    (own,) = (row for row in stored if isinstance(row, TaskRow))
    assert own.reasons[0].text == "own machine does not meet $speed > 6"
    denial = message_in(alone.hear(CHILD, request(requirement=requirement)), SchedDeny)
    assert [(each.code, each.text) for each in denial.reasons] == [(DenyCode.REQUIREMENT_UNMET, "")]


def test_a_lease_that_no_executor_needs_is_not_believed(rig: Rig) -> None:
    ask = message_in(rig.hear(PARENT, request()), SchedRequest)
    given = replace(accept(ask.id), lease_ns=10**18)
    assert rig.hear(CHILD, given) == (SendControl(to=CHILD, message=ClaimEnd(claim=CLAIM)),)
