"""Tasks that run here, offered to whoever asks for some: what their executor says, does, and refuses to do."""

import pytest

from messiahs.core.interface.actions import Action, Decision, EndAttempt, SendVector, StartAttempt
from messiahs.core.interface.attempts import AttemptEnded, AttemptStarted
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import TransferReceived, VectorReceived
from messiahs.core.interface.messages import (
    ClaimEnd,
    DenyCode,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    StatusVector,
    TaskAccept,
    TaskDeny,
    TaskKill,
    TaskRequest,
    TaskRevoke,
    TaskState,
    TaskStatus,
    TaskStatusAck,
    TaskTransfer,
    VectorKind,
)
from messiahs.core.interface.rows import AttemptRow, GrantedClaimRow
from messiahs.core.model.ids import MessageId, SearchId, SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND
from messiahs.core.recovery import Remains, RunningAttempt
from messiahs.core.vectors.vectors import EMPTY
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    ORIGIN,
    PARENT,
    SIBLING,
    Rig,
    accept,
    attempt,
    make_module,
    message_in,
    only,
    remote,
    request,
    sent,
    tdv,
    transfer,
)
from tests.unit.core.scripted_policy import ScriptedPolicy

SEARCH = SearchId(b"w" * 16)
SHORT = "migrate { offer when $task.ran < 10min; }"
_AT_MOST_NS = 15 * SECOND
"""As long as an offer stands: the time that the request has left, and a margin."""


def wanting(number: int = 1, /, **said: object) -> TaskRequest:
    given = {
        "search": SearchId(bytes([number]) * 16), "requester": "idle", "wanting": "", "count": 4,
        "hops_left": 32, "asks_left": 64, "remaining_ns": 10 * SECOND, **said,
    }  # fmt: skip
    return TaskRequest(id=MessageId(number), **given)  # type: ignore[arg-type]


def machine(module: ModuleFactory, rules: str, *, slots: int = 4) -> Rig:
    """Make a module with a machine, by a policy's `migrate` and `running`, linked with all."""
    compiled = parse_policy(rules, file="rules.policy")
    rig = module(policy=ScriptedPolicy(transfer=compiled.transfer, running=compiled.running))
    rig.greet(CHILD, SIBLING, PARENT)
    rig.measure(slots=slots)
    return rig


def run(rig: Rig, *members: int, number: int = 1, **said: object) -> SchedAccept:
    """Let tasks of a far origin run here, in a claim of their own that came through the parent."""
    ask = request(number, search=bytes([99, number]) * 8, count=len(members), **said)
    granted = message_in(rig.hear(PARENT, ask), SchedAccept)
    attempts = [remote(member=member) for member in members]
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(granted.claim, granted.ticket, *attempts)))
    for each in attempts:
        rig.handle(AttemptStarted(attempt=each))
    return granted


def named(actions: tuple[Action, ...]) -> list[int]:
    """Return the members that are offered."""
    return [each.task.member for _, revoke in sent(actions, TaskRevoke) for each in revoke.attempts]


def offers_shown(actions: tuple[Action, ...]) -> dict[SystemId, bool]:
    """Return what each neighbor was last sent about offers of running tasks."""
    return {action.to: action.message.lets_go for action in only(actions, SendVector)}


def code(actions: tuple[Action, ...]) -> DenyCode:
    (reason,) = message_in(actions, TaskDeny).reasons
    return reason.code


def test_an_offered_attempt_has_the_id_of_its_origin_though_another_claim_has_the_same(module: ModuleFactory) -> None:
    rig = machine(module, SHORT)
    _, second = run(rig, 1), run(rig, 1, number=2)
    for here in rig.state.executor.claims[second.claim].attempts:
        rig.handle(AttemptStarted(attempt=here))
    offered = {revoke.claim: revoke.attempts for _, revoke in sent(rig.hear(CHILD, wanting(count=2)), TaskRevoke)}
    assert offered[second.claim] == (remote(member=1),)
    assert rig.hear(PARENT, TaskStatusAck(claim=second.claim, moving=(remote(member=1),))) == ()


def test_a_running_task_is_offered_to_the_requester_and_its_origin_is_informed(module: ModuleFactory) -> None:
    rig = machine(module, SHORT)
    granted = run(rig, 1)
    actions = rig.hear(CHILD, wanting(count=1))
    assert sent(actions, TaskAccept) == ((CHILD, TaskAccept(request=MessageId(1), count=1, asks_left=64)),)
    ((to, revoke),) = sent(actions, TaskRevoke)
    assert (to, revoke.claim, revoke.attempts) == (PARENT, granted.claim, (remote(member=1),))
    assert (revoke.answers, revoke.text) == (wanting().search, "idle asked for tasks")
    assert [each.what for each in only(actions, Decision)] == ["task_accept", "offer"]
    assert only(actions, EndAttempt) == ()


@pytest.mark.parametrize(("asker", "toward"), [(CHILD, None), (SIBLING, SIBLING), (PARENT, PARENT)])
def test_an_offer_names_the_parent_or_sibling_that_brought_the_request(
    module: ModuleFactory, asker: SystemId, toward: SystemId | None
) -> None:
    rig = machine(module, SHORT)
    run(rig, 1)
    assert message_in(rig.hear(asker, wanting()), TaskRevoke).toward == toward


def test_those_that_wait_go_before_those_that_run(module: ModuleFactory) -> None:
    rig = machine(module, SHORT, slots=2)
    run(rig, 1, 2)
    rig.submit(tdv=tdv(cpus=2), members=2)
    actions = rig.hear(CHILD, wanting(count=3))
    assert message_in(actions, TaskAccept).count == 3
    assert (message_in(actions, SchedRequest).count, len(named(actions))) == (2, 1)
    rig = machine(module, SHORT, slots=2)
    run(rig, 1, 2)
    rig.submit(tdv=tdv(cpus=2), members=2)
    assert named(rig.hear(CHILD, wanting(count=2))) == []


@pytest.mark.parametrize(
    ("rules", "predicate", "expected"),
    [
        ("", "", DenyCode.REFUSED_BY_POLICY),
        ("migrate { }", "", DenyCode.REFUSED_BY_POLICY),
        ("migrate { offer when $task.ran > 1h; }", "", DenyCode.REFUSED_BY_POLICY),
        ("migrate { offer when $task.ran < 10min; keep at least 2 tasks; }", "", DenyCode.REFUSED_BY_POLICY),
        (SHORT, "$cpus = 2", DenyCode.NO_TASK),
        (SHORT, "$ran < 5", DenyCode.NO_TASK),
    ],
)
def test_why_nothing_that_runs_is_let_go(module: ModuleFactory, rules: str, predicate: str, expected: DenyCode) -> None:
    rig = machine(module, rules)
    run(rig, 1, 2)
    actions = rig.hear(CHILD, wanting(wanting=predicate))
    assert (code(actions), sent(actions, TaskRevoke)) == (expected, ())


def test_the_rules_see_how_long_a_task_has_run(module: ModuleFactory) -> None:
    rig = machine(module, "migrate { offer when $task.ran < 1min; }")
    run(rig, 1)
    rig.wait(70 * SECOND)
    run(rig, 2, number=2)
    assert named(rig.hear(CHILD, wanting())) == [2]


def test_those_that_have_run_least_go_first_and_so_many_as_are_kept_stay(module: ModuleFactory) -> None:
    rig = machine(module, "migrate { offer when $task.ran < 1h; keep at least 1 tasks; }")
    for member in (1, 2, 3):
        run(rig, member, number=member)
        rig.wait(5 * SECOND)
    assert named(rig.hear(CHILD, wanting(1, count=1))) == [3]
    assert named(rig.hear(CHILD, wanting(2, count=4))) == [2]
    assert code(rig.hear(CHILD, wanting(3, count=4))) == DenyCode.REFUSED_BY_POLICY


def test_suspended_ones_go_before_all_others(module: ModuleFactory) -> None:
    rig = machine(module, SHORT + "running { suspend when $mem default 0 = 1; }")
    run(rig, 1, tdv=tdv(mem=1))
    rig.wait(20 * SECOND)
    run(rig, 2, number=2)
    assert named(rig.hear(CHILD, wanting(count=1))) == [1]


def test_an_attempt_ends_only_when_there_is_another_place(module: ModuleFactory) -> None:
    rig = machine(module, SHORT)
    granted = run(rig, 1)
    rig.hear(CHILD, wanting())
    kill = TaskKill(claim=granted.claim, attempts=(remote(member=1),), is_move=True)
    (end,) = only(rig.hear(PARENT, kill), EndAttempt)
    assert (end.cause, end.grace_ns) == ("moved", rig.state.policy.timeouts.kill_grace_ns)
    assert rig.hear(PARENT, kill) == ()
    ended = rig.end(AttemptEnded(attempt=remote(member=1), signal=15, cause=Cause.MOVED))
    (status,) = message_in(ended, TaskStatus).attempts
    assert (status.state, status.cause, status.text) == (TaskState.REVOKED, "moved", "idle asked for tasks")
    assert sent(rig.wait(_AT_MOST_NS), TaskRevoke) == ()


def test_an_offer_without_a_taker_ends_and_the_task_continues(module: ModuleFactory) -> None:
    rig = machine(module, SHORT)
    granted = run(rig, 1)
    rig.hear(CHILD, wanting())
    late = rig.wait(_AT_MOST_NS)
    assert sent(late, TaskRevoke) == ((PARENT, TaskRevoke(claim=granted.claim, attempts=())),)
    assert only(late, EndAttempt) == ()
    kill = TaskKill(claim=granted.claim, attempts=(remote(member=1),), is_move=True)
    refused = rig.hear(PARENT, kill)
    assert (only(refused, EndAttempt), message_in(refused, TaskRevoke).attempts) == ((), ())


def test_an_offer_is_repeated_with_renewals_while_it_stands_and_called_off_after_it(module: ModuleFactory) -> None:
    rig = machine(module, SHORT)
    granted = run(rig, 1)
    rig.hear(CHILD, wanting())
    again = message_in(rig.greet(PARENT), TaskRevoke)
    assert (again.attempts, again.answers) == ((remote(member=1),), wanting().search)
    believed = TaskStatusAck(claim=granted.claim, renewal=1, moving=(remote(member=1),))
    assert sent(rig.hear(PARENT, believed), TaskRevoke) == ()
    # The link breaks while the offer is called off.
    rig.wait(_AT_MOST_NS)
    assert sent(rig.greet(PARENT), TaskRevoke) == ()
    off = message_in(rig.hear(PARENT, believed), TaskRevoke)
    assert (off.attempts, off.answers) == ((), None)


def test_the_search_for_it_finds_no_place_where_it_runs(module: ModuleFactory) -> None:
    rig = machine(module, SHORT)
    run(rig, 1)
    rig.hear(CHILD, wanting())
    answering = rig.hear(PARENT, request(7, search=b"n" * 16, answers=wanting().search))
    assert sent(answering, SchedAccept) == ()
    # The neighbor that brought the request is asked, whatever is known of it.
    assert [to for to, _ in sent(answering, SchedRequest)] == [CHILD]
    assert sent(rig.hear(PARENT, request(8, search=b"o" * 16)), SchedAccept) != ()


def test_no_task_is_offered_twice_at_once_or_again_at_once(module: ModuleFactory) -> None:
    rig = machine(module, SHORT)
    run(rig, 1)
    assert named(rig.hear(CHILD, wanting(1))) == [1]
    assert code(rig.hear(SIBLING, wanting(2))) == DenyCode.NO_TASK
    rig.wait(_AT_MOST_NS)
    assert code(rig.hear(CHILD, wanting(3))) == DenyCode.NO_TASK
    rig.wait(60 * SECOND - _AT_MOST_NS)
    assert named(rig.hear(CHILD, wanting(4))) == [1]


def test_a_neighbor_that_asks_without_end_ends_nothing_and_is_told_no(module: ModuleFactory) -> None:
    rig = machine(module, SHORT, slots=8)
    run(rig, 1, 2, 3)
    ended: list[EndAttempt] = []
    revoked = 0
    for number in range(1, 251):
        actions = (*rig.hear(CHILD, wanting(number, search=number.to_bytes(16), count=1)), *rig.wait(100 * MILLISECOND))
        ended.extend(only(actions, EndAttempt))
        revoked += sum(bool(revoke.attempts) for _, revoke in sent(actions, TaskRevoke))
    assert ended == []
    # The claim answers one request at a time, and each of its three tasks once a minute.
    assert revoked <= 2


def test_what_came_because_it_was_asked_for_is_not_offered_on(module: ModuleFactory) -> None:
    rig = machine(module, SHORT)
    run(rig, 1, answers=SEARCH)
    assert code(rig.hear(CHILD, wanting())) == DenyCode.NO_TASK


@pytest.mark.parametrize(("answers", "offered"), [(SEARCH, []), (None, [1])])
def test_what_came_because_it_was_asked_for_is_not_offered_on_after_a_restart_either(
    module: ModuleFactory, answers: SearchId | None, offered: list[int]
) -> None:
    before = machine(module, SHORT)
    run(before, 1, answers=answers)
    executor = before.state.executor
    granted = (each.row for each in executor.claims.values())
    rows: tuple[GrantedClaimRow | AttemptRow, ...] = (*granted, *executor.attempts.values())
    running = tuple(RunningAttempt(attempt=each, is_running=True) for each in executor.attempts)
    rig = Rig(module=make_module(policy=before.state.policy), now=before.now)
    rig.resume(Remains(rows=rows, running=running))
    rig.greet(CHILD, SIBLING, PARENT)
    rig.measure()
    assert named(rig.hear(CHILD, wanting())) == offered


def test_the_owners_rules_still_act_on_what_is_offered(module: ModuleFactory) -> None:
    rig = machine(module, SHORT + "running { move when $here.load > 50% grace 5s; }")
    granted = run(rig, 1)
    rig.hear(CHILD, wanting())
    rig.measure(load=9000)
    rig.measure(load=9000)
    guard = rig.state.executor.guards[remote(member=1)]
    assert guard.memory.moving is not None
    late = rig.wait(6 * SECOND)
    (end,) = only(late, EndAttempt)
    assert end.cause == "revoked"
    assert granted.claim in rig.state.executor.claims


def test_a_task_that_the_owner_moves_is_reported_instead_of_offered(module: ModuleFactory) -> None:
    rig = machine(module, SHORT + "running { move when $here.load > 50%; }")
    run(rig, 1, 2)
    rig.hear(CHILD, wanting(count=1))
    rig.measure(load=9000)
    last = message_in(rig.greet(PARENT), TaskRevoke)
    assert (sorted(each.task.member for each in last.attempts), last.answers) == ([1, 2], None)


def test_nothing_of_a_claim_is_offered_while_its_owner_wants_any_of_it_away(module: ModuleFactory) -> None:
    rig = machine(module, SHORT + "running { move when $task.ran >= 20s; }")
    granted = run(rig, 1)
    rig.wait(15 * SECOND)
    late = transfer(granted.claim, granted.ticket, remote(member=2))
    rig.handle(TransferReceived(sender=ORIGIN, message=late))
    rig.handle(AttemptStarted(attempt=remote(member=2)))
    assert named(rig.wait(6 * SECOND)) == [1]
    assert code(rig.hear(CHILD, wanting())) == DenyCode.NO_TASK


def test_neighbors_hear_that_what_runs_may_go_unless_nothing_is_revealed_to_them(module: ModuleFactory) -> None:
    compiled = parse_policy(SHORT, file="rules.policy")
    rig = module(policy=ScriptedPolicy(transfer=compiled.transfer, silent_to=(SIBLING,)))
    rig.greet(CHILD, SIBLING, PARENT)
    rig.measure()
    assert set(offers_shown(rig.wait(3 * SECOND)).values()) == {False}
    run(rig, 1)
    assert offers_shown(rig.wait(3 * SECOND)) == {CHILD: True, SIBLING: False, PARENT: True}
    rig.end(AttemptEnded(attempt=remote(member=1), exit_code=0))
    assert set(offers_shown(rig.wait(3 * SECOND)).values()) == {False}


def test_what_may_go_behind_a_child_is_told_to_parents_and_asked_for_after_what_waits(module: ModuleFactory) -> None:
    rig = machine(module, "migrate { ask every 10s when 1 = 1 wanting { }; }")
    for system, kind, more in (
        (CHILD, VectorKind.FOR_PARENTS, {"lets_go": True}),
        (SIBLING, VectorKind.FOR_SIBLINGS, {"waiting": 1}),
    ):
        message = StatusVector(kind=kind, vector=EMPTY, period_ns=60 * SECOND, age_ns=0, **more)
        rig.handle(VectorReceived(sender=system, message=message))
    assert offers_shown(rig.wait(3 * SECOND)) == {CHILD: False, SIBLING: True, PARENT: True}
    ((to, ask),) = sent(rig.wait(8 * SECOND), TaskRequest)
    assert to == SIBLING
    denied = rig.hear(SIBLING, TaskDeny(request=ask.id, reasons=(), asks_left=9))
    assert [to for to, _ in sent(denied, TaskRequest)] == [CHILD]


def test_after_a_restart_there_is_no_offer_and_the_origin_is_informed(module: ModuleFactory) -> None:
    rig = machine(module, SHORT)
    granted = run(rig, 1)
    rig.hear(CHILD, wanting())
    executor = rig.state.executor
    rows: tuple[GrantedClaimRow | AttemptRow, ...] = (
        executor.claims[granted.claim].row,
        executor.attempts[remote(member=1)],
    )
    compiled = parse_policy(SHORT, file="rules.policy")
    again = module(policy=ScriptedPolicy(transfer=compiled.transfer))
    running = RunningAttempt(attempt=remote(member=1), is_running=True, ran_ns=SECOND)
    again.resume(Remains(rows=rows, running=(running,)))
    again.greet(PARENT)
    believed = TaskStatusAck(claim=granted.claim, renewal=1, moving=(remote(member=1),))
    assert message_in(again.hear(PARENT, believed), TaskRevoke) == TaskRevoke(claim=granted.claim, attempts=())
    kill = TaskKill(claim=granted.claim, attempts=(remote(member=1),), is_move=True)
    assert only(again.hear(PARENT, kill), EndAttempt) == ()


def test_a_claim_that_ends_takes_its_offer_along(module: ModuleFactory) -> None:
    rig = machine(module, SHORT)
    granted = run(rig, 1)
    rig.hear(CHILD, wanting())
    rig.hear(PARENT, ClaimEnd(claim=granted.claim))
    assert sent(rig.wait(_AT_MOST_NS), TaskRevoke) == ()


def test_a_task_of_an_own_user_moves_from_the_own_machine_to_the_requester(module: ModuleFactory) -> None:
    rig = machine(module, SHORT)
    assert only(rig.submit(), StartAttempt)
    rig.handle(AttemptStarted(attempt=attempt()))
    to, search = sent(rig.hear(CHILD, wanting(count=1)), SchedRequest)[0]
    assert (to, search.count, search.answers) == (CHILD, 1, wanting().search)
    (end,) = only(rig.hear(CHILD, accept(search.id)), EndAttempt)
    assert end.cause == "moved"
    moved = rig.end(AttemptEnded(attempt=attempt(), signal=15, cause=Cause.MOVED))
    assert [task.attempt for task in message_in(moved, TaskTransfer).tasks] == [attempt(2)]


def test_a_task_of_an_own_user_stays_if_the_requester_has_no_place(module: ModuleFactory) -> None:
    rig = machine(module, SHORT)
    rig.submit()
    rig.handle(AttemptStarted(attempt=attempt()))
    asked = sent(rig.hear(CHILD, wanting(count=1)), SchedRequest)
    while asked:
        ((to, search),) = asked
        asked = sent(rig.hear(to, SchedDeny(request=search.id, reasons=(), asks_left=60)), SchedRequest)
    assert sent(rig.wait(60 * SECOND), SchedRequest) == ()
    assert rig.state.origin.tasks[attempt().task].attempt == 1
