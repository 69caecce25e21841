"""Receiver-initiated load sharing: task_request, task_accept and task_deny at each kind of module."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Action, Decision, Store
from messiahs.core.interface.events import LinkDown, VectorReceived
from messiahs.core.interface.messages import (
    DenyCode,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    StatusVector,
    TaskAccept,
    TaskDeny,
    TaskRequest,
    TaskTransfer,
    VectorKind,
)
from messiahs.core.interface.policies import Refused
from messiahs.core.interface.rows import Row, RowKey, key_of
from messiahs.core.model.ids import ClientKey, MessageId, SearchId, SystemId
from messiahs.core.model.instants import MILLISECOND, SECOND
from messiahs.core.recovery import Remains
from messiahs.core.vectors.vectors import EMPTY, Vector
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    GIB,
    ME,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    Rig,
    accept,
    deny,
    make_module,
    message_in,
    only,
    reported,
    request,
    sent,
    status,
    statuses,
    tdv,
    view,
)
from tests.unit.core.scripted_policy import ScriptedPolicy

SEARCH = SearchId(b"w" * 16)
KINDS = {CHILD: VectorKind.FOR_PARENTS, OTHER_CHILD: VectorKind.FOR_PARENTS, PARENT: VectorKind.FOR_CHILDREN}
NEIGHBORS = (CHILD, OTHER_CHILD, SIBLING, PARENT)
OPEN = "migrate { }"
ASKING = "migrate { ask every 10s when $here.load < 50% wanting { $mem <= 1GiB }; }"


def ruled(module: ModuleFactory, rules: str, **more: object) -> Rig:
    """Make a module by a policy's `migrate` and `rank tasks`, linked with all; their machines are not known."""
    compiled = parse_policy(rules, file="rules.policy")
    policy = ScriptedPolicy(transfer=compiled.transfer, selection=compiled.selection, **more)  # type: ignore[arg-type]
    rig = module(policy=policy)
    rig.greet(*NEIGHBORS)
    return rig


def see_waiting(rig: Rig, *, vector: Vector = EMPTY, **waiting: int) -> None:
    """Let neighbors say how many tasks wait behind them."""
    for name, count in waiting.items():
        system = SystemId(name.replace("_", "-"))
        kind = KINDS.get(system, VectorKind.FOR_SIBLINGS)
        message = StatusVector(kind=kind, vector=vector, period_ns=60 * SECOND, age_ns=0, waiting=count)
        rig.handle(VectorReceived(sender=system, message=message))


def wanting(number: int = 1, /, **said: object) -> TaskRequest:
    given = {
        "search": SEARCH, "requester": "far", "wanting": "", "count": 4,
        "hops_left": 32, "asks_left": 64, "remaining_ns": 10 * SECOND, **said,
    }  # fmt: skip
    return TaskRequest(id=MessageId(number), **given)  # type: ignore[arg-type]


def asked(actions: tuple[Action, ...]) -> tuple[SystemId, TaskRequest]:
    ((to, message),) = sent(actions, TaskRequest)
    return to, message


def code(actions: tuple[Action, ...]) -> DenyCode:
    (reason,) = message_in(actions, TaskDeny).reasons
    return reason.code


def test_a_module_with_room_asks_where_most_tasks_wait(module: ModuleFactory) -> None:
    rig = ruled(module, ASKING)
    rig.measure(slots=3, load=100)
    see_waiting(rig, child=2, sibling=5, parent=5)
    to, ask = asked(rig.wait(10 * SECOND))
    assert to == PARENT
    assert (ask.wanting, ask.count, ask.requester, ask.asks_left) == ("$mem <= 1073741824", 3, ME, 63)
    assert asked(rig.hear(PARENT, TaskDeny(request=ask.id, reasons=(), asks_left=60)))[0] == SIBLING


@pytest.mark.parametrize(("slots", "load", "waiting"), [(0, 100, 1), (1, 9000, 1), (1, 100, 0)])
def test_nobody_is_asked_without_room_against_the_policy_or_if_nothing_waits(
    module: ModuleFactory, slots: int, load: int, waiting: int
) -> None:
    rig = ruled(module, ASKING)
    rig.measure(slots=slots, load=load)
    see_waiting(rig, child=waiting)
    assert sent(rig.wait(25 * SECOND), TaskRequest) == ()


def test_it_asks_again_every_time_but_not_while_it_is_still_asking(module: ModuleFactory) -> None:
    rig = ruled(module, "migrate { ask every 3s when 1 = 1 wanting { }; }")
    rig.measure()
    see_waiting(rig, child=1)
    _, ask = asked(rig.wait(3 * SECOND))
    assert sent(rig.wait(3 * SECOND), TaskRequest) == ()
    rig.hear(CHILD, TaskDeny(request=ask.id, reasons=(), asks_left=60))
    assert asked(rig.wait(3 * SECOND))[1].search != ask.search


def test_a_system_without_a_machine_asks_for_its_subtree(module: ModuleFactory) -> None:
    rig = ruled(module, "migrate { ask every 10s when $here.load < 50% wanting { }; }")
    see_waiting(rig, vector=view(free_slots=4, load=100), child=0)
    see_waiting(rig, sibling=9)
    rig.wait(SECOND)
    to, ask = asked(rig.wait(10 * SECOND))
    assert (to, ask.count) == (SIBLING, 4)


def test_waiting_tasks_that_match_are_promised_and_looked_for_places_at_once(module: ModuleFactory) -> None:
    rig = ruled(module, OPEN)
    rig.submit(members=3)
    actions = rig.hear(CHILD, wanting(count=8, wanting="$cpus = 1"))
    assert sent(actions, TaskAccept) == ((CHILD, TaskAccept(request=MessageId(1), count=3, asks_left=64)),)
    # Nothing is known of the child's machines, and it is asked all the same, for it asked itself.
    to, search = sent(actions, SchedRequest)[0]
    assert (to, search.count, search.answers) == (CHILD, 3, SEARCH)
    assert code(actions) == DenyCode.NO_TASK


def test_the_requester_is_asked_before_likelier_ones(module: ModuleFactory) -> None:
    rig = ruled(module, OPEN)
    see_waiting(rig, vector=view(), parent=0)
    rig.hear(PARENT, deny(message_in(rig.submit(), SchedRequest).id))
    actions = rig.hear(SIBLING, wanting(count=1))
    (first,) = sent(actions, SchedRequest)
    assert first[0] == SIBLING
    assert sent(rig.hear(SIBLING, deny(first[1].id)), SchedRequest)[0][0] == PARENT


def test_only_so_many_are_looked_for_as_were_promised_and_then_the_others_as_ever(module: ModuleFactory) -> None:
    rig = ruled(module, "migrate { keep at least 2 tasks; }")
    rig.submit(members=5)
    actions = rig.hear(CHILD, wanting(count=8))
    assert message_in(actions, TaskAccept).count == 3
    ask = message_in(actions, SchedRequest)
    assert ask.count == 3
    given = rig.hear(CHILD, accept(ask.id, places=3, window=8))
    # The claim could hold more, but two are kept.
    assert len(message_in(given, TaskTransfer).tasks) == 3
    members = [task.attempt for task in message_in(given, TaskTransfer).tasks]
    more = rig.hear(CHILD, statuses(*(status(each) for each in members), window=8))
    assert sent(more, TaskTransfer) == ()
    assert rig.state.origin.waiting == 2


def test_what_is_kept_is_kept_also_over_a_restart_of_the_origin(module: ModuleFactory) -> None:
    rig = ruled(module, "migrate { keep at least 2 tasks; }")
    stored: dict[RowKey, Row] = {}

    def perform(actions: tuple[Action, ...]) -> tuple[Action, ...]:
        stored.update((key_of(action.row), action.row) for action in actions if isinstance(action, Store))
        return actions

    perform(rig.submit(members=5))
    ask = message_in(perform(rig.hear(CHILD, wanting(count=8))), SchedRequest)
    perform(rig.hear(CHILD, accept(ask.id, places=3, window=8)))
    again = Rig(module=make_module(policy=rig.state.policy))
    bound = message_in(again.resume(Remains(rows=tuple(stored.values()))), TaskTransfer)
    assert len(bound.tasks) == 3
    again.greet(CHILD)
    said = again.hear(CHILD, statuses(*(status(task.attempt) for task in bound.tasks), window=8, renewal=1))
    assert sent(said, TaskTransfer) == ()
    assert again.state.origin.waiting == 2


def test_a_search_in_flight_is_ended_before_the_promised_tasks_are_looked_for(module: ModuleFactory) -> None:
    rig = ruled(module, OPEN)
    see_waiting(rig, vector=view(), parent=0)
    ordinary = message_in(rig.submit(), SchedRequest)
    actions = rig.hear(CHILD, wanting(count=1))
    assert (message_in(actions, TaskAccept).count, sent(actions, SchedRequest)) == (1, ())
    rig.hear(PARENT, deny(ordinary.id))
    to, search = sent(rig.wait(0), SchedRequest)[0]
    assert (to, search.answers) == (CHILD, SEARCH)


def test_a_promise_for_which_nothing_is_left_is_forgotten(module: ModuleFactory) -> None:
    rig = ruled(module, OPEN)
    see_waiting(rig, vector=view(), parent=0)
    ordinary = message_in(rig.submit(members=4), SchedRequest)
    rig.hear(CHILD, wanting(count=1))
    rig.hear(PARENT, accept(ordinary.id, places=4, window=4))
    rig.wait(SECOND)
    # All have their places, and what comes later is looked for as ever.
    later = message_in(rig.submit(key="later", members=50), SchedRequest)
    assert (later.count, later.answers) == (50, None)


def test_what_was_promised_is_not_promised_again(module: ModuleFactory) -> None:
    rig = ruled(module, OPEN)
    rig.submit()
    rig.hear(CHILD, wanting(count=1))
    assert code(rig.hear(SIBLING, wanting(search=SearchId(b"o" * 16)))) == DenyCode.NO_TASK


def test_whoever_asks_again_and_again_cannot_make_a_module_search_without_end(module: ModuleFactory) -> None:
    rig = ruled(module, OPEN)
    rig.submit()
    search = message_in(rig.hear(CHILD, wanting(1, count=1)), SchedRequest)
    rig.hear(CHILD, deny(search.id))
    assert code(rig.hear(CHILD, wanting(2, count=1, search=SearchId(b"2" * 16)))) == DenyCode.NO_TASK
    rig.wait(SECOND)
    assert message_in(rig.hear(CHILD, wanting(3, count=1, search=SearchId(b"3" * 16))), TaskAccept).count == 1


@pytest.mark.parametrize(
    ("rules", "predicate", "expected"),
    [
        ("", "", DenyCode.REFUSED_BY_POLICY),
        ("migrate { offer when $task.waited > 1h; }", "", DenyCode.REFUSED_BY_POLICY),
        ("migrate { keep at least 1 tasks; }", "", DenyCode.REFUSED_BY_POLICY),
        (OPEN, "$cpus = 2", DenyCode.NO_TASK),
        (OPEN, "$mem <= 5", DenyCode.NO_TASK),
        (OPEN, "$cpus = ", DenyCode.BAD_PREDICATE),
    ],
)
def test_why_a_module_lets_no_task_go(module: ModuleFactory, rules: str, predicate: str, expected: DenyCode) -> None:
    rig = ruled(module, rules)
    rig.submit()
    assert code(rig.hear(CHILD, wanting(wanting=predicate))) == expected


def test_a_request_is_passed_on_to_where_tasks_wait_and_its_answers_back(module: ModuleFactory) -> None:
    rig = ruled(module, OPEN)
    see_waiting(rig, sibling=3, parent=9)
    to, ask = asked(rig.hear(CHILD, wanting(count=4, hops_left=5, asks_left=7)))
    assert (to, ask.count, ask.hops_left, ask.asks_left, ask.requester) == (PARENT, 4, 4, 6, "far")
    assert ask.remaining_ns == (10 * SECOND - 20 * MILLISECOND) * 3 // 4
    actions = rig.hear(PARENT, TaskAccept(request=ask.id, count=3, asks_left=5))
    assert sent(actions, TaskAccept) == ((CHILD, TaskAccept(request=MessageId(1), count=3, asks_left=5)),)
    to, rest = asked(rig.hear(PARENT, TaskDeny(request=ask.id, reasons=(), asks_left=5)))
    assert (to, rest.count) == (SIBLING, 1)
    assert message_in(rig.hear(SIBLING, TaskDeny(request=rest.id, reasons=(), asks_left=3)), TaskDeny).asks_left == 3


def test_a_request_from_above_or_beside_only_descends(module: ModuleFactory) -> None:
    rig = ruled(module, OPEN)
    see_waiting(rig, child=1, sibling=8, parent=9)
    to, ask = asked(rig.hear(SIBLING, wanting()))
    assert to == CHILD
    assert sent(rig.hear(CHILD, TaskDeny(request=ask.id, reasons=(), asks_left=5)), TaskRequest) == ()


def test_a_module_that_is_asked_twice_says_so(module: ModuleFactory) -> None:
    rig = ruled(module, OPEN)
    rig.hear(SIBLING, wanting(1))
    assert code(rig.hear(PARENT, wanting(2))) == DenyCode.ALREADY_ASKED


def test_a_neighbor_that_is_lost_or_silent_counts_as_having_denied(module: ModuleFactory) -> None:
    rig = ruled(module, OPEN)
    see_waiting(rig, sibling=1, parent=2)
    asked(rig.hear(CHILD, wanting()))
    assert asked(rig.handle(LinkDown(neighbor=PARENT)))[0] == SIBLING
    (reason,) = message_in(rig.wait(10 * SECOND), TaskDeny).reasons
    assert [hop.code for hop in reason.hops] == [DenyCode.LOST, DenyCode.TIMED_OUT]


def test_the_answering_search_goes_back_the_way_that_the_request_came(module: ModuleFactory) -> None:
    rig = ruled(module, OPEN)
    see_waiting(rig, parent=9)
    see_waiting(rig, vector=view(), other_child=0)
    asked(rig.hear(CHILD, wanting()))
    back = sent(rig.hear(PARENT, request(search=SearchId(b"b" * 16), answers=SEARCH)), SchedRequest)
    assert [(to, ask.answers) for to, ask in back] == [(CHILD, SEARCH)]
    ordinary = sent(rig.hear(PARENT, request(2, search=SearchId(b"c" * 16))), SchedRequest)
    assert [(to, ask.answers) for to, ask in ordinary] == [(OTHER_CHILD, None)]


def test_what_answers_a_request_passes_every_gate(module: ModuleFactory) -> None:
    verdict = Refused(code=DenyCode.REFUSED_BY_POLICY, text="not here")
    rig = ruled(module, OPEN, verdict=verdict)
    rig.hear(CHILD, wanting())
    assert message_in(rig.hear(PARENT, request(answers=SEARCH)), SchedDeny).reasons[0].text == "not here"


def test_the_requester_takes_what_comes_as_it_takes_anything(module: ModuleFactory) -> None:
    rig = ruled(module, ASKING)
    rig.measure(load=0)
    see_waiting(rig, parent=2)
    _, ask = asked(rig.wait(10 * SECOND))
    (decision,) = only(rig.hear(PARENT, TaskAccept(request=ask.id, count=2, asks_left=9)), Decision)
    assert (decision.what, decision.text) == ("task_accept", "2 tasks")
    granted = message_in(rig.hear(PARENT, request(count=2, answers=ask.search)), SchedAccept)
    assert granted.places == 2


def test_a_promise_that_comes_too_late_or_to_nobody_changes_nothing(module: ModuleFactory) -> None:
    rig = ruled(module, OPEN)
    assert rig.hear(CHILD, TaskAccept(request=MessageId(9), count=1, asks_left=9)) == ()
    see_waiting(rig, parent=2)
    _, ask = asked(rig.hear(CHILD, wanting()))
    assert rig.hear(SIBLING, TaskAccept(request=ask.id, count=1, asks_left=9)) == ()
    assert rig.hear(PARENT, SchedDeny(request=ask.id, reasons=(), asks_left=9)) == ()


def test_a_promise_of_more_than_was_asked_for_is_reported(module: ModuleFactory) -> None:
    rig = ruled(module, OPEN)
    see_waiting(rig, parent=2)
    _, ask = asked(rig.hear(CHILD, wanting(count=2)))
    assert reported(rig.hear(PARENT, TaskAccept(request=ask.id, count=3, asks_left=9))) == "out_of_range"


def test_a_request_that_is_made_twice_is_reported(module: ModuleFactory) -> None:
    rig = ruled(module, OPEN)
    see_waiting(rig, parent=2)
    rig.hear(CHILD, wanting())
    assert reported(rig.hear(CHILD, replace(wanting(), search=SearchId(b"x" * 16)))) == "out_of_range"


def test_the_tasks_whose_turn_it_is_first_go_first(module: ModuleFactory) -> None:
    rig = ruled(module, "migrate { } rank tasks by most $task.mem;")
    for number in (1, 3, 2):
        rig.submit(key=ClientKey(str(number)), tdv=tdv(mem=number * GIB))
    actions = rig.hear(CHILD, wanting(count=2))
    assert [ask.tdv.description()["mem"] for _, ask in sent(actions, SchedRequest)] == [3 * GIB, 2 * GIB]
