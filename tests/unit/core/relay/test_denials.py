"""Neighbors that show room and deny: they rank last for the tasks that they deny."""

from dataclasses import replace

import pytest

from messiahs.core.interface.events import AnswerTo, CancelRequested
from messiahs.core.interface.messages import SchedRequest
from messiahs.core.model.attributes import Value
from messiahs.core.model.ids import ClientKey, MessageId, SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Duration, after
from messiahs.core.relay.denials import DENIALS_LIMIT, IN_A_ROW
from messiahs.core.state.origin import Denials
from messiahs.core.state.ways import Avoided, Pause
from messiahs.core.vectors.vectors import Vector
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import CHILD, SIBLING, Rig, accept, deny, sent, tdv, view


@pytest.fixture
def liar(module: ModuleFactory) -> Rig:
    """Make an origin whose child shows free slots all the time, as its sibling does, which comes after children."""
    rig = module()
    rig.greet(CHILD, SIBLING)
    return rig


def submitted(rig: Rig, name: str, **said: Value) -> tuple[SystemId, MessageId]:
    """Submit a task while both neighbors show room; return who is asked first, and its request."""
    rig.see(CHILD)
    rig.see(SIBLING)
    ((to, ask),) = sent(rig.submit(key=ClientKey(name), tdv=tdv(**said)), SchedRequest)
    return to, ask.id


def denied(rig: Rig, name: str, *, free_slots: int = 4, **said: Value) -> None:
    """Submit a task, which the child denies, and then the sibling; the child shows `free_slots` just before it does."""
    to, ask = submitted(rig, name, **said)
    assert to == CHILD
    rig.see(CHILD, view(free_slots=free_slots))
    rig.see(SIBLING, view(free_slots=0))
    ((to, asked),) = sent(rig.hear(CHILD, deny(ask)), SchedRequest)
    assert to == SIBLING
    end(rig, asked.id)


def end(rig: Rig, ask: MessageId) -> None:
    """Let the sibling deny, which had no room any more when it was asked, and users cancel their tasks."""
    rig.hear(SIBLING, deny(ask))
    for submission in list(rig.state.origin.submissions):
        rig.handle(CancelRequested(answer_to=AnswerTo(2), task=submission))


def test_a_neighbor_that_denies_again_and_again_while_it_shows_room_is_asked_last(liar: Rig) -> None:
    for number in range(IN_A_ROW):
        denied(liar, f"k{number}")
    assert submitted(liar, "next")[0] == SIBLING


def test_tasks_of_other_kinds_are_not_concerned(liar: Rig) -> None:
    for number in range(IN_A_ROW):
        denied(liar, f"k{number}")
    assert submitted(liar, "next", user="another")[0] == CHILD


def test_a_neighbor_that_takes_back_what_it_showed_before_each_denial_is_asked_last(liar: Rig) -> None:
    for number in range(IN_A_ROW):
        denied(liar, f"k{number}", free_slots=0)
    assert submitted(liar, "next")[0] == SIBLING


def test_denials_of_a_neighbor_that_showed_no_room_when_it_was_asked_do_not_count(liar: Rig) -> None:
    liar.see(CHILD, view(free_slots=0))
    liar.see(SIBLING, view(free_slots=0))
    # Neighbors may reserve several slots, so they are asked nevertheless.
    ((to, ask),) = sent(liar.submit(tdv=tdv(cpus=2)), SchedRequest)
    liar.see(to)
    liar.hear(to, deny(ask.id))
    assert not liar.state.origin.denials


@pytest.mark.parametrize(("machines", "counted"), [(1, 0), (2, 1)])
def test_denials_count_if_more_machines_show_room_than_the_origin_leaves_out(
    liar: Rig, machines: int, counted: int
) -> None:
    pause = Pause(length_ns=Duration(MINUTE), until=after(liar.now, MINUTE))
    liar.state.origin.avoided[CHILD, b"left out"] = Avoided(pause=pause, is_final=True)
    (alike,) = view().classes
    liar.see(CHILD, Vector((replace(alike, count=machines),)))
    ((to, ask),) = sent(liar.submit(), SchedRequest)
    assert to == CHILD
    liar.hear(CHILD, deny(ask.id))
    assert len(liar.state.origin.denials) == counted


def test_one_grant_makes_up_for_all_denials(liar: Rig) -> None:
    for number in range(IN_A_ROW - 1):
        denied(liar, f"k{number}")
    _, ask = submitted(liar, "granted")
    liar.hear(CHILD, accept(ask))
    assert liar.state.origin.denials == {}


def test_it_is_asked_first_again_after_ten_seconds_and_after_all_others_for_twenty_after_its_next_denial(
    liar: Rig,
) -> None:
    for number in range(IN_A_ROW):
        denied(liar, f"k{number}")
    liar.wait(10 * SECOND)
    denied(liar, "again")
    liar.wait(19 * SECOND)
    to, ask = submitted(liar, "later")
    assert to == SIBLING
    assert [to for to, _ in sent(liar.hear(SIBLING, deny(ask)), SchedRequest)] == [CHILD]


def test_a_neighbor_that_shows_room_and_never_answers_is_asked_last(liar: Rig) -> None:
    for number in range(IN_A_ROW):
        to, _ = submitted(liar, f"k{number}")
        assert to == CHILD
        liar.see(SIBLING, view(free_slots=0))
        ((to, asked),) = sent(liar.wait(MINUTE), SchedRequest)[:1]
        assert to == SIBLING
        end(liar, asked.id)
    assert {each.count for each in liar.state.origin.denials.values()} >= {IN_A_ROW}


def test_so_many_shapes_are_remembered(liar: Rig) -> None:
    for number in range(DENIALS_LIMIT):
        liar.state.origin.denials[SIBLING, (tdv(user=f"u{number}"), "")] = Denials(latest_at=liar.now, count=1)
    denied(liar, "k")
    assert len(liar.state.origin.denials) == DENIALS_LIMIT
