"""The decisions in a step of the core: who took them, about what, and for whom."""

from collections.abc import Iterable

import pytest

from messiahs.core.interface.actions import EndAttempt, Store
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.by_hand import HandAct
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import (
    AnswerTo,
    CancelRequested,
    CleanRequested,
    ControlReceived,
    DrainRequested,
    Event,
    HandRequested,
    RevokeRequested,
    ShutOffRequested,
    Submitted,
    TransferReceived,
    WorkflowSubmitted,
)
from messiahs.core.interface.messages import ClaimEnd, ControlMessage, SchedAccept, SchedDeny
from messiahs.core.interface.rows import SubmissionRow
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.recovery import Remains
from messiahs.daemon.audit.entries import Caller, Entry
from messiahs.daemon.audit.noting import Noted, Noter
from messiahs.trace.record.recorder import RecordedModule
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    COMMAND,
    ORIGIN,
    PARENT,
    TASK,
    Rig,
    accept,
    attempt,
    make_module,
    message_in,
    only,
    remote,
    request,
    status,
    statuses,
    tdv,
    transfer,
)

ANN = Caller("ann", 1000)


class Observed(Rig):
    """A module whose steps are looked at (mutable)."""

    noter: Noter

    def decisions(self, event: Event, by: Caller | None = None) -> list[Noted]:
        """Let an event happen, and return its decisions."""
        return list(self.noter.of_step(event, self.handle(event), self.now, by=by))

    def heard(self, message: ControlMessage, *, sender: SystemId = PARENT) -> list[Noted]:
        """Let a neighbor say something, and return the decisions about that."""
        return self.decisions(ControlReceived(sender=sender, message=message))


@pytest.fixture
def module() -> Observed:
    module = Observed(module=make_module())
    module.resume()
    module.greet(CHILD, PARENT)
    module.see(PARENT)
    module.noter = Noter(RecordedModule(module.module))
    return module


def submitted(key: str = "k", requirement: str = "") -> Submitted:
    description = tdv(user="ann")
    return Submitted(
        answer_to=AnswerTo(1), key=ClientKey(key), tdv=description, requirement=requirement, command=COMMAND
    )


def of(found: Iterable[Noted], what: str) -> Entry:
    (entry,) = (each.entry for each in found if each.entry.what == what)
    return entry


def test_a_submission_has_its_author_and_its_repetition_decides_nothing(module: Observed) -> None:
    found = module.decisions(submitted(), ANN)
    assert [(each.entry.what, each.entry.by, each.entry.user, each.task) for each in found] == [
        ("submitted", ANN, "ann", str(TASK))
    ]
    assert module.decisions(submitted(), ANN) == []


def test_a_refused_submission_is_counted_with_its_reason(module: Observed) -> None:
    (found,) = module.decisions(submitted(requirement="$"), ANN)
    assert (found.entry.what, found.entry.code, found.entry.is_counted) == ("refused", "submitted", True)
    assert found.entry.why


def test_submissions_of_a_workflow_are_one_act_of_its_author_on_each_of_its_tasks(module: Observed) -> None:
    def workflow(*parts: Submitted) -> WorkflowSubmitted:
        return WorkflowSubmitted(answer_to=AnswerTo(1), key=parts[0].key, submissions=parts, within=((), ((0, "ok"),)))

    found = module.decisions(workflow(submitted("k/0"), submitted("k/1")), ANN)
    assert [(each.entry.what, each.entry.by, each.entry.user, each.task) for each in found] == [
        ("submitted", ANN, "ann", str(TASK)),
        ("submitted", ANN, "ann", str(TASK._replace(number=2))),
    ]
    assert {each.entry.why for each in found} == {"2 tasks and arrays together"}
    assert module.decisions(workflow(submitted("k/0"), submitted("k/1")), ANN) == []
    (refused,) = module.decisions(workflow(submitted("l/0"), submitted("l/1", requirement="$")), ANN)
    assert (refused.entry.what, refused.entry.code) == ("refused", "submitted")


def test_a_task_is_bound_to_a_neighbor_and_ends_there_by_its_word(module: Observed) -> None:
    asked = module.submit()
    search = message_in(asked, type(request()))
    bound = of(module.heard(accept(search.id)), "bound")
    assert (bound.source, bound.origin, bound.neighbor) == (f"neighbor.{PARENT}", "me", CLAIM.executor)
    ended = [each for each in module.heard(statuses(status(attempt()))) if each.entry.what == "finished"]
    assert [each.task for each in ended] == [f"{TASK}#1"]


def test_an_executor_tells_whose_tasks_it_accepts_starts_and_ends(module: Observed) -> None:
    module.measure()
    event = ControlReceived(sender=PARENT, message=request(tdv=tdv(user="bob")))
    actions = module.handle(event)
    accepted = of(module.noter.of_step(event, actions, module.now), "accepted")
    assert (accepted.neighbor, accepted.origin, accepted.user) == (PARENT, ORIGIN, "bob")
    claim = message_in(actions, SchedAccept)
    tasks = transfer(claim.claim, claim.ticket, remote())
    assert of(module.decisions(TransferReceived(sender=ORIGIN, message=tasks)), "taken").source == f"neighbor.{PARENT}"
    (started,) = module.decisions(AttemptStarted(attempt=remote()))
    assert (started.entry.what, started.entry.user, started.task) == ("started", "bob", str(remote()))
    ended = of(module.decisions(AttemptEnded(attempt=remote(), exit_code=3)), "ended")
    assert (ended.code, ended.why) == ("finished", "exit code 3")


def test_a_denial_says_to_whom_and_why_and_is_counted(module: Observed) -> None:
    denied = of(module.heard(request()), "denied")
    assert (denied.neighbor, denied.source, denied.is_counted) == (PARENT, f"neighbor.{PARENT}", True)
    assert denied.code


def test_what_a_neighbor_has_no_right_to_say_is_counted_as_dropped(module: Observed) -> None:
    asked = message_in(module.submit(), type(request()))
    module.heard(accept(asked.id))
    dropped = of(module.heard(ClaimEnd(claim=CLAIM), sender=CHILD), "dropped")
    assert (dropped.code, dropped.is_counted) == ("no_such_claim", True)


def test_acts_by_hand_have_one_line_with_author_and_reason(module: Observed) -> None:
    module.submit()
    hold = HandRequested(answer_to=AnswerTo(2), task=TASK, act=HandAct.HOLD, text="wait")
    (held,) = module.decisions(hold, ANN)
    assert (held.entry.what, held.entry.by, held.entry.why, held.task) == ("hold by hand", ANN, "wait", str(TASK))
    found = module.decisions(CancelRequested(answer_to=AnswerTo(3), task=TASK), ANN)
    assert [(each.entry.what, each.entry.by) for each in found] == [("cancelled", ANN), ("killed", None)]


def test_a_cancel_of_what_has_ended_decides_nothing(module: Observed) -> None:
    module.submit()
    cancel = CancelRequested(answer_to=AnswerTo(3), task=TASK)
    assert module.decisions(cancel, ANN)
    assert module.decisions(cancel, ANN) == []


def test_a_clean_has_a_line_for_each_task_that_is_forgotten(module: Observed) -> None:
    module.submit()
    clean = CleanRequested(answer_to=AnswerTo(4), tasks=(TASK, TASK._replace(number=7)))
    assert module.decisions(clean, ANN) == []
    module.decisions(CancelRequested(answer_to=AnswerTo(3), task=TASK), ANN)
    (found,) = module.decisions(clean, ANN)
    assert (found.entry.what, found.entry.by, found.task) == ("cleaned", ANN, str(TASK))


def test_acts_on_members_have_one_line_with_their_author(module: Observed) -> None:
    shut = module.decisions(ShutOffRequested(answer_to=AnswerTo(1), neighbor=PARENT, text="incident"), ANN)
    off = of(shut, "shut_off")
    assert (off.by, off.neighbor, off.why, off.source) == (ANN, PARENT, "incident", "module")
    drained = of(module.decisions(DrainRequested(answer_to=AnswerTo(2), text="move"), ANN), "drained")
    assert (drained.by, drained.why) == (ANN, "move")


def test_a_denial_from_elsewhere_is_counted_for_the_neighbor_that_sent_it(module: Observed) -> None:
    asked = message_in(module.submit(), type(request()))
    denied = of(module.heard(SchedDeny(request=asked.id, reasons=(), asks_left=1)), "denied_there")
    assert (denied.source, denied.is_counted) == (f"neighbor.{PARENT}", True)


def test_the_end_of_a_task_has_its_user_after_a_restart(module: Observed) -> None:
    asked = message_in(module.submit(), type(request()))
    module.heard(accept(asked.id))
    origin = module.state.origin
    rows = (origin.submissions[TASK].row, origin.tasks[TASK], origin.claims[CLAIM].row)
    after = Observed(module=make_module())
    after.noter = Noter(RecordedModule(after.module))
    list(after.noter.of_step(None, after.resume(Remains(rows=rows)), after.now))
    after.greet(PARENT)
    ended = of(after.heard(statuses(status(attempt()))), "finished")
    assert (ended.user, ended.origin) == ("ann", "me")


def test_a_submission_that_ends_in_its_step_has_its_user(module: Observed) -> None:
    event = submitted()
    actions = module.handle(event)
    (row,) = (action.row for action in only(actions, Store) if isinstance(action.row, SubmissionRow))
    del module.state.origin.submissions[row.id]
    found = of(module.noter.of_step(event, actions, module.now, by=ANN), "submitted")
    assert (found.user, found.origin) == ("ann", "me")


def test_an_attempt_whose_claim_has_ended_ends_with_whose_it_is(module: Observed) -> None:
    module.measure()
    claim = message_in(module.hear(PARENT, request(tdv=tdv(user="bob"), count=2)), SchedAccept)
    attempts = [remote(member=member) for member in (1, 2)]
    module.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, *attempts)))
    told = [each for each in module.heard(ClaimEnd(claim=claim.claim)) if each.entry.what == "ending"]
    ended = [
        each
        for attempt in attempts
        for each in module.decisions(AttemptEnded(attempt=attempt, cause=Cause.UNBOUND))
        if each.entry.what == "ended"
    ]
    assert [each.task for each in told] == [each.task for each in ended] == [str(each) for each in attempts]
    assert {(each.entry.user, each.entry.origin, each.entry.neighbor) for each in told + ended} == {
        ("bob", ORIGIN, PARENT)
    }
    assert {each.entry.why for each in ended} == {"unbound"}


def test_an_attempt_whose_claim_ended_before_a_restart_ends_with_its_origin(module: Observed) -> None:
    module.measure()
    claim = message_in(module.hear(PARENT, request(tdv=tdv(user="bob"))), SchedAccept)
    module.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote())))
    module.hear(PARENT, ClaimEnd(claim=claim.claim))
    module.state.executor.released.clear()
    module.noter = Noter(RecordedModule(module.module))
    ended = of(module.decisions(AttemptEnded(attempt=remote(), cause=Cause.UNBOUND)), "ended")
    assert (ended.origin, ended.neighbor, ended.source) == (ORIGIN, "", "module")


def test_a_revocation_by_hand_says_whose_the_attempts_are(module: Observed) -> None:
    module.measure()
    claim = message_in(module.hear(PARENT, request(tdv=tdv(user="bob"), count=2)), SchedAccept)
    attempts = [remote(member=member) for member in (1, 2)]
    module.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, *attempts)))
    revoke = RevokeRequested(answer_to=AnswerTo(2), attempts=tuple(attempts), kills=True, text="needed")
    found = [each for each in module.decisions(revoke, ANN) if each.entry.what in ("kill by hand", "revoked")]
    assert {(each.entry.user, each.entry.origin, each.entry.neighbor) for each in found} == {("bob", ORIGIN, PARENT)}
    assert [(each.entry.what, each.entry.by, each.task) for each in found] == [
        *(("kill by hand", ANN, str(each)) for each in attempts),
        *(("revoked", None, str(each)) for each in attempts),
    ]


def test_an_attempt_that_is_told_twice_to_end_ends_once(module: Observed) -> None:
    module.measure()
    claim = message_in(module.hear(PARENT, request(tdv=tdv(user="bob"))), SchedAccept)
    module.handle(TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote())))
    told = EndAttempt(attempt=remote(), grace_ns=0, cause=Cause.KILLED)
    found = list(module.noter.of_step(None, (told, told), module.now))
    assert [(each.entry.what, each.task) for each in found] == [("ending", str(remote()))]
