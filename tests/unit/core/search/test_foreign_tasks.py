"""Tasks of other sites at a machine that contains no tasks, and what is passed on about them."""

from dataclasses import replace

import pytest

from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import DenyCode, SchedAccept, SchedDeny, SchedRequest, TaskState, TaskStatus
from messiahs.core.model.ids import SystemId
from messiahs.core.model.trust import Trust
from tests.unit.core.rig import (
    CHILD,
    PARENT,
    SIBLING,
    Rig,
    make_module,
    message_in,
    remote,
    request,
    sent,
    transfer,
)

OWN, OTHERS = b"o" * 16, b"x" * 16
TEXT = "it takes no tasks of other sites: it has no sandboxes, and its account is not lent to them"


def rig_of(*, keeps_account: bool = True, trust: Trust | None = None, apart: tuple[SystemId, ...] = (PARENT,)) -> Rig:
    """Return a module with a neighbor at another site, which runs tasks as its own account."""
    module = make_module(trust=trust or Trust(), apart=apart)
    module.state.identity = replace(module.state.identity, keeps_account=keeps_account)
    rig = Rig(module)
    rig.resume()
    rig.greet(PARENT, SIBLING, CHILD)
    return rig


def denied(rig: Rig, **said: object) -> tuple[DenyCode, str]:
    (reason,) = message_in(rig.hear(PARENT, request(**said)), SchedDeny).reasons
    return reason.code, reason.text


@pytest.mark.parametrize("said", [{"isolation": "process"}, {}])
def test_it_takes_none_and_says_why(said: dict[str, str]) -> None:
    rig = rig_of()
    rig.measure(**said)
    assert denied(rig) == (DenyCode.REFUSED_BY_POLICY, TEXT)


def test_it_takes_those_of_its_own_site() -> None:
    rig = rig_of()
    rig.measure(isolation="process")
    assert message_in(rig.hear(SIBLING, request()), SchedAccept).places == 1


@pytest.mark.parametrize(("isolation", "keeps_account"), [("sandbox", True), ("bubblewrap", True), ("process", False)])
def test_sandboxes_and_owners_that_lend_their_account_take_all(isolation: str, *, keeps_account: bool) -> None:
    rig = rig_of(keeps_account=keeps_account)
    rig.measure(isolation=isolation)
    assert message_in(rig.hear(PARENT, request()), SchedAccept).places == 1


def test_a_task_that_no_machine_could_hold_is_told_that() -> None:
    rig = rig_of()
    rig.measure(isolation="process")
    assert denied(rig, requirement='$arch eq "none"') == (DenyCode.REQUIREMENT_UNMET, "")


def test_what_has_crossed_once_is_foreign_also_behind_the_neighbors_of_its_own_site() -> None:
    rig = rig_of()
    rig.measure(isolation="process")
    assert sent(rig.hear(SIBLING, request(is_foreign=True)), SchedDeny)


def test_it_is_passed_on_as_foreign_to_systems_that_may_contain_it() -> None:
    rig = rig_of()
    rig.measure(isolation="process")
    rig.see(CHILD)
    ((to, passed),) = sent(rig.hear(PARENT, request()), SchedRequest)
    assert (to, passed.is_foreign) == (CHILD, True)


@pytest.mark.parametrize(("vouchers", "is_taken"), [((OWN,), True), ((OTHERS,), False), ((), False)])
def test_a_module_that_marks_nothing_is_found_out_by_the_roots_of_the_origin(
    vouchers: tuple[bytes, ...], *, is_taken: bool
) -> None:
    rig = rig_of(trust=Trust(roots=(OWN,), vouchers=(OWN,)), apart=())
    rig.measure(isolation="process")
    actions = rig.hear(SIBLING, request(trust=Trust(roots=vouchers, vouchers=vouchers)))
    assert bool(sent(actions, SchedAccept)) == is_taken


def test_a_claim_of_before_sandboxes_were_lost_takes_no_further_tasks() -> None:
    rig = rig_of()
    rig.measure(isolation="sandbox")
    granted = message_in(rig.hear(PARENT, request()), SchedAccept)
    rig.measure(isolation="process")
    brought = transfer(granted.claim, granted.ticket, remote())
    actions = rig.handle(TransferReceived(sender=PARENT, message=brought))
    actions += rig.wait(0)
    (said,) = message_in(actions, TaskStatus).attempts
    assert (said.state, said.text) == (TaskState.DENIED, TEXT)
    assert rig.state.executor.attempts[remote()].status.state is TaskState.DENIED
