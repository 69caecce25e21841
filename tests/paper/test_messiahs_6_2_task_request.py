"""MESSIAHS 5.3.2, 5.4 and 6.2: a test per statement about task_request, task_accept and task_deny."""

from messiahs.core.interface.actions import Action, EndAttempt, SendControl
from messiahs.core.interface.attempts import AttemptStarted
from messiahs.core.interface.events import TransferReceived, VectorReceived
from messiahs.core.interface.messages import (
    SchedAccept,
    SchedRequest,
    StatusVector,
    TaskAccept,
    TaskDeny,
    TaskRequest,
    TaskRevoke,
    TaskTransfer,
    VectorKind,
)
from messiahs.core.model.ids import ClientKey, MessageId, SearchId, SystemId
from messiahs.core.model.instants import SECOND
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.rig import (
    CHILD,
    NEIGHBORS,
    ORIGIN,
    PARENT,
    SIBLING,
    Rig,
    accept,
    make_module,
    message_in,
    remote,
    request,
    sent,
    tdv,
    transfer,
)
from tests.unit.core.scripted_policy import ScriptedPolicy

SEARCH = SearchId(b"w" * 16)
KINDS = {CHILD: VectorKind.FOR_PARENTS, PARENT: VectorKind.FOR_CHILDREN, SIBLING: VectorKind.FOR_SIBLINGS}


def module(rules: str = "migrate { }", **waiting: int) -> Rig:
    """Make a module with a child, a sibling and a parent, behind which so many tasks wait."""
    migrating = parse_policy(rules, file="rules.policy").transfer
    rig = Rig(module=make_module(neighbors=NEIGHBORS, policy=ScriptedPolicy(transfer=migrating)))
    rig.resume()
    rig.greet(CHILD, SIBLING, PARENT)
    for name, count in waiting.items():
        system = SystemId(name)
        message = StatusVector(
            kind=KINDS[system], vector=rig.state.updates.up, period_ns=60 * SECOND, age_ns=0, waiting=count
        )
        rig.handle(VectorReceived(sender=system, message=message))
    return rig


def wanting(predicate: str = "", *, count: int = 1) -> TaskRequest:
    return TaskRequest(
        id=MessageId(1),
        search=SEARCH,
        requester=ORIGIN,
        wanting=predicate,
        count=count,
        hops_left=32,
        asks_left=64,
        remaining_ns=10 * SECOND,
    )


def asked(actions: tuple[Action, ...]) -> list[SystemId]:
    return [to for to, _ in sent(actions, TaskRequest)]


# 5.3.2 The control channel


def test_a_system_may_request_a_task_from_another_and_says_which_it_would_accept() -> None:
    rig = module("migrate { ask every 1s when 1 = 1 wanting { $mem <= 1000 }; }", sibling=2)
    rig.measure()
    ((to, ask),) = sent(rig.wait(SECOND), TaskRequest)
    # The paper includes the description of such a task; here it is a predicate over descriptions (5.4).
    assert (to, ask.wanting) == (SIBLING, "$mem <= 1000")


def test_an_accept_names_the_request() -> None:
    rig = module()
    rig.submit()
    assert message_in(rig.hear(CHILD, wanting()), TaskAccept).request == wanting().id


def test_the_task_is_moved_through_the_task_channel() -> None:
    rig = module()
    rig.submit()
    search = message_in(rig.hear(CHILD, wanting()), SchedRequest)
    # It is not bound to whoever asked before every module on the way has agreed, as for any other task.
    assert search.answers == SEARCH
    assert sent(rig.hear(CHILD, accept(search.id)), TaskTransfer) != ()


def test_a_system_that_is_unwilling_or_has_no_matching_task_denies_and_names_the_request() -> None:
    for rules, predicate, code in (("", "", "refused_by_policy"), ("migrate { }", "$cpus > 1", "no_task")):
        rig = module(rules)
        rig.submit()
        deny = message_in(rig.hear(CHILD, wanting(predicate)), TaskDeny)
        assert (deny.request, deny.reasons[0].code) == (wanting().id, code)


# 5.4 The extension mechanism


def test_the_received_predicate_is_judged_with_values_of_the_descriptions_of_available_tasks() -> None:
    for predicate, promised in (('$licence eq "full"', 1), ('$licence ne "full"', 0), ("$licence = 1", 0)):
        rig = module()
        rig.submit(tdv=tdv(licence="full"))
        assert sum(each.count for _, each in sent(rig.hear(CHILD, wanting(predicate)), TaskAccept)) == promised


def test_the_filter_is_true_if_one_migratable_task_matches() -> None:
    rig = module()
    for number, mem in enumerate((5, 50, 500)):
        rig.submit(key=ClientKey(str(number)), tdv=tdv(mem=mem))
    accepted = rig.hear(CHILD, wanting("$mem > 10 and $mem < 100", count=9))
    assert message_in(accepted, TaskAccept).count == 1
    assert message_in(accepted, SchedRequest).tdv == tdv(mem=50)


# 6.2 Message events: task_request


def test_task_request_the_wish_is_compared_with_local_tasks_according_to_local_policy() -> None:
    rig = module("migrate { offer when $priority < 0; }")
    rig.submit(key=ClientKey("1"), tdv=tdv(priority=5))
    rig.submit(key=ClientKey("2"), tdv=tdv(priority=-5))
    accepted = rig.hear(CHILD, wanting(count=9))
    assert [ask.tdv for _, ask in sent(accepted, SchedRequest)] == [tdv(priority=-5)]


def test_task_request_a_module_with_an_eligible_task_replies_and_asks_nobody_else() -> None:
    rig = module(sibling=9)
    rig.submit()
    actions = rig.hear(CHILD, wanting())
    assert (len(sent(actions, TaskAccept)), asked(actions)) == (1, [])


def test_task_request_a_task_that_runs_is_local_too_and_goes_on_until_there_is_a_place_for_it() -> None:
    rig = module("migrate { offer when $task.ran < 10min; }", sibling=9)
    rig.measure()
    granted = message_in(rig.hear(PARENT, request()), SchedAccept)
    rig.handle(TransferReceived(sender=ORIGIN, message=transfer(granted.claim, granted.ticket, remote())))
    rig.handle(AttemptStarted(attempt=remote()))
    actions = rig.hear(CHILD, wanting())
    assert (message_in(actions, TaskAccept).count, asked(actions)) == (1, [])
    # The paper lets the executor place it anew; here its origin does, which alone binds attempts.
    ((to, revoke),) = sent(actions, TaskRevoke)
    assert (to, revoke.attempts, revoke.answers) == (PARENT, (remote(),), SEARCH)
    assert not any(isinstance(action, EndAttempt) for action in actions)


def test_task_request_otherwise_it_is_passed_to_the_most_likely_neighbor() -> None:
    assert asked(module(sibling=2, parent=3).hear(CHILD, wanting())) == [PARENT]


# 6.2 Message events: task_accept


def test_task_accept_is_forwarded_if_the_request_came_from_another() -> None:
    rig = module(parent=3)
    ask = message_in(rig.hear(CHILD, wanting()), TaskRequest)
    ((to, passed),) = sent(rig.hear(PARENT, TaskAccept(request=ask.id, count=1, asks_left=9)), TaskAccept)
    assert (to, passed.request) == (CHILD, wanting().id)


def test_task_accept_the_original_requester_receives_the_task() -> None:
    rig = module("migrate { ask every 1s when 1 = 1 wanting { }; }", parent=3)
    rig.measure()
    ask = message_in(rig.wait(SECOND), TaskRequest)
    rig.hear(PARENT, TaskAccept(request=ask.id, count=1, asks_left=9))
    granted = rig.hear(PARENT, request(answers=ask.search))
    assert message_in(granted, SchedAccept).claim.executor == rig.state.system


# 6.2 Message events: task_deny


def test_task_deny_the_next_eligible_system_is_asked_and_if_none_remains_the_denial_is_forwarded() -> None:
    rig = module(sibling=2, parent=3)
    ask = message_in(rig.hear(CHILD, wanting()), TaskRequest)
    actions = rig.hear(PARENT, TaskDeny(request=ask.id, reasons=(), asks_left=9))
    assert asked(actions) == [SIBLING]
    ask = message_in(actions, TaskRequest)
    (last,) = [
        action
        for action in rig.hear(SIBLING, TaskDeny(request=ask.id, reasons=(), asks_left=8))
        if isinstance(action, SendControl)
    ]
    assert last.to == CHILD
    assert isinstance(last.message, TaskDeny)
