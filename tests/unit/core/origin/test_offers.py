"""Running tasks that somebody else would take, at their origin: looked a place for once, and never two at once."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import Action
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.history import HistoryEntry
from messiahs.core.interface.messages import (
    ClaimEnd,
    SchedDeny,
    SchedRequest,
    Substate,
    TaskKill,
    TaskRequest,
    TaskRevoke,
    TaskState,
    TaskStatusAck,
    TaskTransfer,
)
from messiahs.core.interface.policies import Limits
from messiahs.core.model.ids import ClaimId, Epoch, MessageId, SearchId, SystemId
from messiahs.core.model.instants import MILLISECOND, MINUTE, SECOND
from messiahs.core.origin.relocation import room_in
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    FAR,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    TASK,
    Rig,
    accept,
    attempt,
    have_results,
    message_in,
    request,
    sent,
    status,
    statuses,
    tdv,
)
from tests.unit.core.scripted_policy import ScriptedPolicy

OTHER = ClaimId(SystemId("other"), Epoch(4), 1)
ASKED = SearchId(b"w" * 16)
REVOKE = TaskRevoke(claim=CLAIM, attempts=(attempt(),), text="the day begins")
OFFER = TaskRevoke(claim=CLAIM, attempts=(attempt(),), text="idle asked for tasks", answers=ASKED)


@pytest.fixture
def origin(rig: Rig) -> Rig:
    """Bind a task to a claim that the child brought, and let it run."""
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    rig.hear(CHILD, statuses(status(attempt(), TaskState.EXECUTING, substate=Substate.RUNNING)))
    return rig


def offered_to_sibling(rig: Rig) -> tuple[Action, ...]:
    """Let the origin hear that its task is offered, and find a place for it at the sibling."""
    asked = sent(rig.hear(CHILD, OFFER), SchedRequest)
    while asked[0][0] != SIBLING:
        ((system, ask),) = asked
        asked = sent(rig.hear(system, SchedDeny(request=ask.id, reasons=(), asks_left=60)), SchedRequest)
    return rig.hear(SIBLING, accept(asked[0][1].id, claim=OTHER))


def deny_all(rig: Rig, actions: tuple[Action, ...]) -> None:
    """Let everybody who is asked for a place deny."""
    asked = sent(actions, SchedRequest)
    while asked:
        ((system, ask),) = asked
        asked = sent(rig.hear(system, SchedDeny(request=ask.id, reasons=(), asks_left=60)), SchedRequest)


def test_an_offered_task_is_looked_a_place_for_by_the_name_of_the_request(origin: Rig) -> None:
    actions = origin.hear(CHILD, OFFER)
    ((_, search),) = sent(actions, SchedRequest)
    assert (search.count, search.answers) == (1, ASKED)
    assert sent(actions, TaskKill) == ()
    entry = origin.state.origin.tasks[TASK].history[-1]
    assert (entry.event, entry.text) == ("moving", "idle asked for tasks")


def test_the_neighbor_that_delivered_an_offer_is_asked_first_since_the_requester_is_behind_it(origin: Rig) -> None:
    for system in (SIBLING, PARENT):
        origin.see(system)
    assert [to for to, _ in sent(origin.hear(CHILD, OFFER), SchedRequest)] == [CHILD]


def test_an_offer_may_name_a_neighbor_in_the_direction_of_the_requester(origin: Rig) -> None:
    asked = sent(origin.hear(CHILD, replace(OFFER, toward=SIBLING)), SchedRequest)
    assert [to for to, _ in asked] == [SIBLING]


def test_a_hop_that_passes_an_offer_on_says_where_its_search_shall_go(module: ModuleFactory) -> None:
    for toward, passed_on, way in ((SIBLING, SIBLING, SIBLING), (FAR, None, CHILD), (None, None, CHILD)):
        rig = module()
        rig.greet(CHILD, OTHER_CHILD, SIBLING, PARENT)
        rig.see(CHILD)
        search = message_in(rig.hear(OTHER_CHILD, request()), SchedRequest)
        rig.hear(CHILD, accept(search.id))
        revoke = message_in(rig.hear(CHILD, replace(OFFER, toward=toward)), TaskRevoke)
        assert revoke == replace(OFFER, toward=passed_on)
        answering = rig.hear(OTHER_CHILD, request(2, search=b"n" * 16, answers=ASKED))
        assert [to for to, _ in sent(answering, SchedRequest)] == [way]


def test_a_border_that_stands_for_those_behind_it_says_neither_who_asked_nor_where_they_are(
    module: ModuleFactory,
) -> None:
    rig = module(policy=ScriptedPolicy(names={OTHER_CHILD: "site-7"}))
    rig.greet(CHILD, OTHER_CHILD, SIBLING, PARENT)
    rig.see(CHILD)
    search = message_in(rig.hear(OTHER_CHILD, request()), SchedRequest)
    rig.hear(CHILD, accept(search.id))
    revoke = message_in(rig.hear(CHILD, replace(OFFER, toward=SIBLING)), TaskRevoke)
    assert (revoke.text, revoke.toward, revoke.attempts) == ("", None, OFFER.attempts)
    assert message_in(rig.hear(CHILD, REVOKE), TaskRevoke) == REVOKE


def test_a_request_that_came_by_is_where_the_search_goes_whatever_an_offer_says(module: ModuleFactory) -> None:
    rig = module()
    rig.greet(CHILD, OTHER_CHILD, SIBLING, PARENT)
    rig.see(CHILD)
    search = message_in(rig.hear(OTHER_CHILD, request()), SchedRequest)
    rig.hear(CHILD, accept(search.id))
    rig.hear(
        PARENT,
        TaskRequest(
            id=MessageId(5),
            search=ASKED,
            requester=FAR,
            wanting="",
            count=1,
            hops_left=9,
            asks_left=9,
            remaining_ns=SECOND,
        ),
    )
    assert message_in(rig.hear(CHILD, replace(OFFER, toward=SIBLING)), TaskRevoke).toward == PARENT


def test_an_offered_task_ends_when_there_is_a_place_and_only_then_begins_there(origin: Rig) -> None:
    actions = offered_to_sibling(origin)
    assert sent(actions, TaskKill) == ((CHILD, TaskKill(claim=CLAIM, attempts=(attempt(),), is_move=True)),)
    assert (sent(actions, TaskTransfer), sent(actions, ClaimEnd)) == ((), ())
    ended = origin.hear(CHILD, statuses(status(attempt(), TaskState.REVOKED, cause=Cause.MOVED)))
    moved = message_in(ended, TaskTransfer)
    assert (moved.claim, [task.attempt for task in moved.tasks]) == (OTHER, [attempt(2)])


def test_without_a_place_an_offered_task_continues_and_its_search_ends(origin: Rig) -> None:
    deny_all(origin, origin.hear(CHILD, OFFER))
    assert origin.state.origin.shapes[tdv(), ""].moving == {}
    assert sent(origin.wait(10 * MINUTE), SchedRequest) == ()
    assert sent(origin.hear(CHILD, OFFER), SchedRequest) == ()
    running = status(attempt(), TaskState.EXECUTING)
    assert message_in(origin.hear(CHILD, statuses(running, renewal=1)), TaskStatusAck).moving == ()
    assert origin.state.origin.tasks[TASK].claim == CLAIM


def test_a_place_that_was_not_looked_for_to_answer_is_none_for_an_offered_task(origin: Rig) -> None:
    origin.hear(CHILD, statuses(window=0))
    ((asked, ordinary),) = sent(origin.submit(key="another"), SchedRequest)
    origin.hear(CHILD, OFFER)
    # The search in flight was for the one that waits, and it has room for more.
    given = origin.hear(asked, accept(ordinary.id, claim=OTHER))
    assert len(message_in(given, TaskTransfer).tasks) == 1
    have_results(origin, OTHER)
    roomy = origin.hear(asked, statuses(claim=OTHER, window=8))
    assert room_in(origin.state, origin.state.origin.claims[OTHER]) == 7
    assert sent((*given, *roomy), TaskKill) == ()


def test_tasks_that_wait_get_the_place_of_an_offered_one(origin: Rig) -> None:
    origin.hear(CHILD, statuses(window=0))
    deny_all(origin, origin.submit(key="another"))
    actions = offered_to_sibling(origin)
    assert sent(actions, TaskKill) == ()
    assert [task.attempt.task.number for task in message_in(actions, TaskTransfer).tasks] == [2]
    assert origin.state.origin.shapes[tdv(), ""].moving == {}


def test_an_offer_keeps_no_task_from_the_places_beside_it(origin: Rig) -> None:
    have_results(origin, CLAIM)
    origin.hear(CHILD, statuses(window=4))
    origin.hear(CHILD, OFFER)
    assert message_in(origin.submit(key="another"), TaskTransfer).claim == CLAIM


def test_an_offered_task_does_not_move_to_another_claim_of_the_same_executor(origin: Rig) -> None:
    ((to, ask),) = sent(origin.hear(CHILD, OFFER), SchedRequest)
    actions = origin.hear(to, accept(ask.id, claim=CLAIM._replace(number=2)))
    assert sent(actions, TaskKill) == ()
    assert (to, ClaimEnd(claim=CLAIM._replace(number=2))) in sent(actions, ClaimEnd)


def test_a_task_that_has_moved_comes_not_back_by_an_older_claim_of_that_executor(origin: Rig) -> None:
    second = CLAIM._replace(number=2)
    origin.hear(CHILD, statuses(window=1))
    ((to, ask),) = sent(origin.submit(key="another"), SchedRequest)
    origin.hear(to, accept(ask.id, claim=second, window=1))
    offered_to_sibling(origin)
    have_results(origin, second)
    origin.hear(CHILD, statuses(claim=second, window=4))
    ended = origin.hear(CHILD, statuses(status(attempt(), TaskState.REVOKED, cause=Cause.MOVED), window=1))
    assert [(moved.claim, moved.tasks[0].attempt) for _, moved in sent(ended, TaskTransfer)] == [(OTHER, attempt(2))]


def test_an_offer_that_is_called_off_after_the_kill_gives_the_other_place_back(origin: Rig) -> None:
    offered_to_sibling(origin)
    actions = origin.hear(CHILD, TaskRevoke(claim=CLAIM, attempts=()))
    assert sent(actions, ClaimEnd) == ((SIBLING, ClaimEnd(claim=OTHER)),)
    assert origin.state.origin.tasks[TASK].claim == CLAIM


def test_what_is_wanted_away_after_it_was_offered_is_looked_for_until_there_is_a_place(origin: Rig) -> None:
    deny_all(origin, origin.hear(CHILD, OFFER))
    deny_all(origin, origin.hear(CHILD, REVOKE))
    assert sent(origin.wait(2 * SECOND), SchedRequest) != ()
    origin.hear(CHILD, OFFER)
    assert origin.state.origin.shapes[tdv(), ""].moving == {}


def test_an_executor_that_offers_again_and_again_makes_an_origin_search_once_a_second_at_most(origin: Rig) -> None:
    searches = 0
    for number in range(50):
        actions = origin.hear(CHILD, replace(OFFER, answers=SearchId(number.to_bytes(16))))
        searches += len(sent(actions, SchedRequest))
        deny_all(origin, actions)
        origin.wait(100 * MILLISECOND)
    assert searches <= 6


def test_a_task_that_has_moved_three_times_is_left_in_peace_by_those_that_ask(origin: Rig) -> None:
    row = origin.state.origin.tasks[TASK]
    moved = HistoryEntry(at=origin.now, event="moved", attempt=1, module=FAR)
    origin.state.origin.tasks[TASK] = replace(row, history=(*row.history, moved, moved, moved))
    assert sent(origin.hear(CHILD, OFFER), SchedRequest) == ()
    assert sent(origin.hear(CHILD, REVOKE), SchedRequest) != ()


def test_the_policy_says_how_often_a_task_moves_to_those_that_ask(origin: Rig, policy: ScriptedPolicy) -> None:
    policy.limits = Limits(moves=0)
    assert sent(origin.hear(CHILD, OFFER), SchedRequest) == ()
    policy.limits = Limits(moves=1)
    other = replace(OFFER, answers=SearchId(b"o" * 16))
    assert sent(origin.hear(CHILD, other), SchedRequest) != ()
