"""Batches: rows are stored before anything else of their batch is performed, one batch after the other."""

from dataclasses import dataclass

from messiahs.core.interface.actions import Action, Decision, Forget, Store, TaskEnded
from messiahs.core.interface.batches import Batch, Batches
from messiahs.core.interface.events import StoreChanged
from messiahs.core.interface.rows import RowKind, TaskRow
from messiahs.core.model.ids import Epoch, SystemId, TaskId

TASK = TaskId(SystemId("blays"), Epoch(7), 1)
STORE = Store(row=TaskRow(id=TASK))
FORGET = Forget(key=(RowKind.TASK, TASK))
ENDED = TaskEnded(task=TASK)
DECISION = Decision(what="placed", task="blays.1")


@dataclass(frozen=True, slots=True)
class Kept:
    """What a host stores beside the rows of the core."""


def batches(*actions: Action) -> Batches[Kept]:
    made = Batches[Kept]()
    made.add(actions)
    return made


def test_writes_stand_apart_from_what_is_performed_after_them() -> None:
    assert batches(DECISION, STORE, ENDED, FORGET).begin() == Batch(writes=(STORE, FORGET), effects=(DECISION, ENDED))


def test_what_the_host_keeps_is_stored_in_the_order_in_which_it_came() -> None:
    made = batches(STORE)
    made.add_write(Kept())
    made.add([FORGET])
    assert made.waiting_writes == 3
    assert made.begin() == Batch(writes=(STORE, Kept(), FORGET), effects=())


def test_nothing_is_begun_when_nothing_waits() -> None:
    assert batches().begin() is None
    assert batches().is_idle


def test_what_comes_while_a_batch_is_stored_makes_up_the_next_one() -> None:
    made = batches(STORE)
    made.begin()
    made.add([ENDED])
    assert made.begin() is None
    assert made.on_stored() is None
    assert not made.is_idle
    assert made.begin() == Batch(writes=(), effects=(ENDED,))


def test_a_batch_that_is_being_stored_is_not_idle() -> None:
    made = batches(STORE)
    made.begin()
    assert not made.is_idle
    made.on_stored()
    assert made.is_idle


def test_a_batch_that_could_not_be_stored_stays_and_that_is_said_once() -> None:
    made = batches(STORE, ENDED)
    begun = made.begin()
    made.add([DECISION])
    assert made.on_failed() == StoreChanged(has_space=False)
    assert made.on_failed() is None
    assert (made.has_failed, made.storing, made.begin()) == (True, begun, None)


def test_the_first_batch_that_is_stored_after_a_failure_says_so() -> None:
    made = batches(STORE)
    made.begin()
    made.on_failed()
    assert made.on_stored() == StoreChanged(has_space=True)
    made.add([STORE])
    made.begin()
    assert (made.has_failed, made.on_stored()) == (False, None)
