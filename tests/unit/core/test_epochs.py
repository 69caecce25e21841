"""Epochs: an older copy of the state is noticed, and no id or visible number is given out a second time."""

from collections.abc import Iterable

from messiahs.core.epochs import epoch_of, lost_with
from messiahs.core.interface.actions import Action, Answer, Decision, Report, ReportCode, Store
from messiahs.core.interface.events import LinkUp
from messiahs.core.interface.hello import Hello
from messiahs.core.interface.rows import CountersRow, RememberedRow
from messiahs.core.model.ids import ClientKey, EndedEpoch, Epoch, IdsGiven, LostNumbers, TaskId
from messiahs.core.model.instants import SECOND
from messiahs.core.recovery import Remains
from tests.unit.core.rig import CHILD, EPOCH, ME, PARENT, STRANGER, Rig, make_module, only, sent

COPY = CountersRow(submissions=17, claims=5)
LATER = IdsGiven(submissions=133, claims=5)
OTHER_EPOCH = Epoch(99)
NOTHING = IdsGiven()


def started(*rows: CountersRow | RememberedRow, forgotten: IdsGiven | None = None) -> Rig:
    rig = Rig(module=make_module())
    rig.resume(Remains(rows=rows, forgotten=forgotten))
    return rig


def said(epoch: Epoch | None, heard: IdsGiven, *, given: IdsGiven = NOTHING, own: Epoch = OTHER_EPOCH) -> Hello:
    return Hello(system=CHILD, epoch=own, wire_versions=(1,), release="1", given=given, heard_epoch=epoch, heard=heard)


def hear(rig: Rig, hello: Hello) -> tuple[Action, ...]:
    rig.handle(LinkUp(neighbor=CHILD))
    return rig.hear(CHILD, hello)


def next_task(rig: Rig) -> TaskId:
    (answer,) = only(rig.submit(key=ClientKey(f"k{rig.state.counters.submissions}")), Answer)
    assert answer.task is not None
    return answer.task


def hellos(actions: Iterable[Action]) -> list[Hello]:
    return [message for _, message in sent(actions, Hello)]


def test_a_copy_detected_by_its_mark_continues_in_a_new_epoch_above_all_numbers() -> None:
    rig = started(COPY, forgotten=IdsGiven(submissions=1_024, claims=2_048))
    task = next_task(rig)
    assert (task.number, rig.state.counters.claims) == (1_025, 2_048)
    assert task.epoch == rig.state.epoch > EPOCH
    assert rig.state.counters.earlier == (EndedEpoch(epoch=EPOCH, submissions=17),)
    assert rig.state.counters.renewed_at == rig.now


def test_an_original_state_continues_unchanged() -> None:
    rig = started(COPY)
    hear(rig, said(EPOCH, COPY.given))
    assert next_task(rig) == TaskId(ME, EPOCH, 18)


def test_a_copy_detected_by_a_neighbor_continues_in_a_new_epoch_above_the_remembered_numbers() -> None:
    rig = started(COPY)
    actions = hear(rig, said(EPOCH, LATER))
    assert [each.what for each in only(actions, Decision)] == ["link_up", "older_copy", "numbers_skipped"]
    assert Store(row=rig.state.counters) in actions
    task = next_task(rig)
    assert task.number > LATER.submissions + 1_000
    assert task.epoch == rig.state.epoch > EPOCH


def test_neighbors_learn_of_the_new_epoch_at_once_also_the_one_that_gave_it_away() -> None:
    rig = started(COPY)
    rig.greet(PARENT)
    actions = hear(rig, said(EPOCH, LATER))
    sent_hellos = sent(actions, Hello)
    assert [(to, message.epoch, message.given) for to, message in sent_hellos] == [
        (system, rig.state.epoch, rig.state.counters.given) for system in (PARENT, CHILD)
    ]


def test_a_state_that_was_lost_has_an_epoch_of_its_own_already_and_skips_the_numbers() -> None:
    rig = started()
    hear(rig, said(OTHER_EPOCH, LATER))
    task = next_task(rig)
    assert (task.epoch, task.number > LATER.submissions) == (EPOCH, True)


def test_of_several_neighbors_the_one_that_remembers_most_counts_and_the_epoch_changes_once() -> None:
    rig = started(COPY)
    hear(rig, said(EPOCH, LATER))
    epoch = rig.state.epoch
    rig.handle(LinkUp(neighbor=PARENT))
    more = Hello(
        system=PARENT, epoch=Epoch(4), wire_versions=(1,), release="1",
        heard_epoch=EPOCH, heard=IdsGiven(submissions=70_000),
    )  # fmt: skip
    rig.hear(PARENT, more)
    assert rig.state.epoch == epoch
    assert next_task(rig).number > 70_000


def test_only_the_first_word_of_a_neighbor_about_this_module_counts_and_only_if_it_can_be_true() -> None:
    rig = started(COPY)
    (report,) = only(hear(rig, said(EPOCH, IdsGiven(submissions=1 << 60))), Report)
    assert report.code is ReportCode.OUT_OF_RANGE
    assert hellos(hear(rig, said(EPOCH, LATER))) == []
    assert next_task(rig) == TaskId(ME, EPOCH, 18)


def test_a_neighbor_of_another_site_is_believed_in_a_smaller_number_of_forgotten_ids() -> None:
    for more, is_believed in ((1 << 20, True), ((1 << 20) + 1, False)):
        rig = Rig(module=make_module(apart=(CHILD,)))
        rig.resume(Remains(rows=(COPY,)))
        actions = hear(rig, said(EPOCH, IdsGiven(submissions=17 + more, claims=5)))
        assert (rig.state.epoch != EPOCH) is is_believed
        assert bool(only(actions, Report)) is not is_believed


def test_what_a_neighbor_says_of_its_ids_is_stored_and_said_back_also_after_a_restart() -> None:
    rig = started()
    row = RememberedRow(system=CHILD, epoch=OTHER_EPOCH, given=LATER)
    assert Store(row=row) in hear(rig, said(None, NOTHING, given=LATER))
    again = started(row)
    (hello,) = hellos(again.handle(LinkUp(neighbor=CHILD)))
    assert (hello.heard_epoch, hello.heard) == (OTHER_EPOCH, LATER)


def test_a_neighbor_that_lost_its_state_is_sent_its_highest_number_until_it_acknowledges() -> None:
    row = RememberedRow(system=CHILD, epoch=OTHER_EPOCH, given=LATER)
    rig = started(row)
    (hello,) = hellos(rig.handle(LinkUp(neighbor=CHILD)))
    assert (hello.heard_epoch, hello.heard) == (OTHER_EPOCH, LATER)
    rig.hear(CHILD, said(None, NOTHING, given=NOTHING, own=Epoch(100)))
    (hello,) = hellos(rig.handle(LinkUp(neighbor=CHILD)))
    assert (hello.heard_epoch, hello.heard) == (Epoch(100), LATER)


def test_what_a_stranger_said_once_is_not_kept_for_ever() -> None:
    rig = started(RememberedRow(system=STRANGER, epoch=OTHER_EPOCH, given=LATER))
    assert rig.state.remembered == {}


def test_more_ids_are_sent_again_after_a_while_and_nothing_if_there_are_none() -> None:
    rig = started()
    rig.greet(CHILD)
    next_task(rig)
    sent_hellos = hellos(rig.wait(30 * SECOND))
    assert [hello.given.submissions for hello in sent_hellos] == [1]
    assert hellos(rig.wait(60 * SECOND)) == []


def test_a_visible_number_names_one_task_whatever_its_epoch() -> None:
    rig = started(COPY, forgotten=IdsGiven(submissions=1_024))
    new = rig.state.epoch
    assert [epoch_of(rig.state, number) for number in (1, 17, 18, 1_024, 1_025)] == [EPOCH, EPOCH, new, new, new]


def test_one_copy_after_the_other_keeps_every_epoch_with_ids_and_finds_its_tasks() -> None:
    counters = COPY
    tasks: list[TaskId] = []
    for _ in range(100):
        rig = started(counters, forgotten=counters.given)
        tasks.append(next_task(rig))
        counters = rig.state.counters
    assert [epoch_of(rig.state, task.number) for task in tasks] == [task.epoch for task in tasks]
    assert epoch_of(rig.state, COPY.submissions) == EPOCH
    empty = started(counters, forgotten=counters.given)
    twice = started(empty.state.counters, forgotten=counters.given)
    assert twice.state.counters.earlier == empty.state.counters.earlier


def test_numbers_that_were_skipped_are_noted_and_no_others() -> None:
    rig = started(COPY, forgotten=IdsGiven(submissions=1_024))
    copied_at = rig.now
    first = next_task(rig)
    rig.wait(SECOND)
    hear(rig, said(EPOCH, IdsGiven(submissions=70_000)))
    later = next_task(rig)
    mark, neighbor = rig.state.counters.lost
    assert mark == LostNumbers(first=18, last=1_024, at=copied_at, is_copy=True)
    assert neighbor == LostNumbers(first=1_026, last=later.number - 1, at=copied_at, is_copy=True)
    numbers = (17, 18, 1_024, first.number, 1_026, later.number - 1, later.number)
    assert [lost_with(rig.state, number) for number in numbers] == [None, mark, mark, None, neighbor, neighbor, None]
    assert started(rig.state.counters).state.counters.lost == (mark, neighbor)


def test_numbers_of_a_state_that_was_lost_are_noted_as_such_and_none_where_none_was_skipped() -> None:
    rig = started()
    hear(rig, said(OTHER_EPOCH, LATER))
    (lost,) = rig.state.counters.lost
    assert lost == LostNumbers(first=1, last=next_task(rig).number - 1, at=rig.now, is_copy=False)
    assert started(COPY, forgotten=COPY.given).state.counters.lost == ()
