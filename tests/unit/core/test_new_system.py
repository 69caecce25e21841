"""A neighbor whose epoch has changed: the same system if it announces that, else another one with the same name."""

from dataclasses import replace

from messiahs.core.interface.actions import Action, EndAttempt, Forget, Report, ReportCode, Store
from messiahs.core.interface.attempts import AttemptStarted
from messiahs.core.interface.events import LinkUp, TransferReceived
from messiahs.core.interface.messages import ClaimEnd, SchedAccept, SchedRequest, TaskState
from messiahs.core.interface.rows import RowKind
from messiahs.core.model.ids import Epoch, SearchId, SystemId
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    LEASE_NS,
    PARENT,
    Rig,
    accept,
    attempt,
    hello,
    message_in,
    only,
    remote,
    reported,
    request,
    sent,
    status,
    statuses,
    transfer,
)

NEW = Epoch(4)


def become_new(rig: Rig, system: SystemId, *former: Epoch) -> tuple[Action, ...]:
    """Let a neighbor come back in another epoch."""
    rig.handle(LinkUp(neighbor=system))
    return rig.hear(system, replace(hello(system), epoch=NEW, former=former))


def test_an_announced_epoch_changes_nothing_but_what_is_remembered(rig: Rig) -> None:
    actions = become_new(rig, CHILD, Epoch(1), Epoch(3))
    assert only(actions, Report) == ()
    assert rig.state.remembered[CHILD].epoch == NEW


def test_an_unannounced_epoch_is_reported_once(rig: Rig) -> None:
    (report,) = only(become_new(rig, CHILD), Report)
    assert report.code is ReportCode.NEW_EPOCH
    assert only(become_new(rig, CHILD), Report) == ()


def test_what_was_granted_to_the_earlier_system_ends_here(rig: Rig) -> None:
    rig.measure()
    granted = message_in(rig.hear(PARENT, request()), SchedAccept)
    rig.handle(TransferReceived(sender=PARENT, message=transfer(granted.claim, granted.ticket, remote())))
    rig.handle(AttemptStarted(attempt=remote()))
    actions = become_new(rig, PARENT)
    assert [each.attempt for each in only(actions, EndAttempt)] == [remote()]
    assert Forget(key=(RowKind.GRANTED_CLAIM, granted.claim)) in actions


def test_claims_between_the_earlier_system_and_others_do_not_pass_through_any_more(rig: Rig) -> None:
    rig.see(CHILD)
    ((_, ask),) = sent(rig.hear(PARENT, request(search=SearchId(b"y" * 16))), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    assert CLAIM in rig.state.hop.passed
    assert Forget(key=(RowKind.PASSED_CLAIM, CLAIM)) in become_new(rig, CHILD)
    assert rig.state.hop.passed == {}


def test_nothing_that_the_new_system_says_about_a_claim_of_before_counts(rig: Rig) -> None:
    rig.hear(CHILD, accept(message_in(rig.submit(), SchedRequest).id))
    rig.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING)))
    cut_off = rig.state.origin.claims[CLAIM]
    assert Store(row=replace(cut_off.row, is_cut_off=True)) in become_new(rig, CHILD)
    assert reported(rig.hear(CHILD, statuses(status(attempt())))) == "no_such_claim"
    assert reported(rig.hear(CHILD, ClaimEnd(claim=CLAIM))) == "no_such_claim"
    (row,) = rig.state.origin.tasks.values()
    assert (row.state, row.attempt, row.claim) == (TaskState.EXECUTING, 1, CLAIM)
    rig.wait(2 * LEASE_NS)
    (row,) = rig.state.origin.tasks.values()
    assert row.claim is None
    assert [entry.event for entry in row.history][-1] == "lost"
