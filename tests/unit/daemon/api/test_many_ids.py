"""Requests that name many tasks: each array is read and searched once, in slices that its reader pays for."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar, cast

from messiahs.core.interface.actions import Store
from messiahs.core.interface.rows import CountersRow, SubmissionRow
from messiahs.core.model.ids import ClientKey, IdsGiven, LostNumbers, TaskId
from messiahs.core.model.instants import SECOND, Instant, instant_text
from messiahs.core.recovery import Remains
from messiahs.daemon.api.paced_handlers import InThread, PacedHandler
from messiahs.daemon.api.requests import each_named
from messiahs.daemon.api.task_search import Found, Tasks
from messiahs.daemon.api.unknown_tasks import why_lost
from messiahs.daemon.host.host import Host
from messiahs.daemon.host.user_turns import UserTurns
from messiahs.daemon.storage.store import RowStore
from tests.unit.core.rig import COMMAND, Rig, make_module, tdv
from tests.unit.daemon.api.free_turns import free_turns
from tests.unit.daemon.api.sliced import Sliced

T = TypeVar("T")
ANN = 1_001
IDS = 200
MEMBERS = 20_000


async def awaited(sliced: Sliced[T]) -> T:
    return await sliced


def tasks_with(arrays: int, folder: Path) -> tuple[Tasks, RowStore]:
    """Return the tasks of a module with so many large arrays that have ended."""
    rig, store = Rig(module=make_module()), RowStore(folder / "module.db")
    rig.resume()
    for number in range(1, arrays + 1):
        row = SubmissionRow(
            id=TaskId(rig.state.system, rig.state.epoch, number),
            key=ClientKey(str(number)),
            tdv=tdv(),
            requirement="",
            command=COMMAND,
            members=MEMBERS,
            submitted_at=Instant(1),
            items=tuple(f"{MEMBERS + member}" for member in range(1, MEMBERS + 1)),
            ended_at=Instant(2),
        )
        store.commit([Store(row=row)], Instant(number))
    # What the search for tasks uses of a host.
    host = SimpleNamespace(module=rig.module, store=store, system=rig.state.system)
    return Tasks(cast("Host", host)), store


async def found_in(names: list[str], tasks: Tasks) -> list[Found | None]:
    return [found async for _, found in each_named(names, tasks)]


def test_of_many_members_of_one_array_its_row_is_read_once_and_others_have_turns_in_between(tmp_path: Path) -> None:
    tasks, store = tasks_with(1, tmp_path)
    looking = Sliced(found_in([f"me.1.{member}" for member in range(1, IDS + 1)], tasks))
    found = asyncio.run(awaited(looking))
    store.close()
    assert [one and one.id.member for one in found] == list(range(1, IDS + 1))
    assert looking.in_threads == 1
    assert len(looking.slices) >= IDS


def test_each_of_many_arrays_is_read_in_a_slice_of_its_own(tmp_path: Path) -> None:
    tasks, store = tasks_with(5, tmp_path)
    looking = Sliced(found_in([f"me.{number}" for number in range(1, 6)], tasks))
    found = asyncio.run(awaited(looking))
    store.close()
    assert [one and one.id.number for one in found] == [1, 2, 3, 4, 5]
    assert looking.in_threads == 5


def test_the_items_of_an_array_are_searched_once_for_all_ids_that_name_no_member(tmp_path: Path) -> None:
    tasks, store = tasks_with(1, tmp_path)
    names = [f"me.1.{MEMBERS + member}" for member in range(1, IDS + 1)]
    asking = Sliced(tasks.why_each_unknown(names))
    reasons = asyncio.run(awaited(asking))
    assert list(reasons) == names
    assert reasons[names[6]].endswith(f"; me.1.7 is that for {MEMBERS + 7}")
    assert reasons[names[6]] == asyncio.run(awaited(Sliced(tasks.why_unknown(names[6]))))
    store.close()
    # Its row, and its items.
    assert asking.in_threads == 2


def test_an_id_that_names_no_task_is_told_apart_by_whether_its_number_was_lost_forgotten_or_never_given(
    tmp_path: Path,
) -> None:
    rig, store = Rig(module=make_module()), RowStore(tmp_path / "module.db")
    copy = CountersRow(submissions=17)
    rig.resume(Remains(rows=(copy,), forgotten=IdsGiven(submissions=1_024)))
    since = rig.now
    rig.submit()
    host = SimpleNamespace(module=rig.module, store=store, system=rig.state.system)
    names = ["me.17", "me.18", "me.900.3", "me.1024", "me.1026"]
    reasons = asyncio.run(awaited(Sliced(Tasks(cast("Host", host)).why_each_unknown(names))))
    store.close()
    ended = "is known here any more: ended tasks are kept for 7 days, or until they are cleaned up"
    lost = (
        f"is known here: since {instant_text(since)} the module continues from an older copy of its state, and what "
        "was submitted after the copy was made is not known"
    )
    assert reasons == {
        "me.17": f"no task me.17 {ended}",
        "me.18": f"no task me.18 {lost}",
        "me.900.3": f"no task me.900.3 {lost}",
        "me.1024": f"no task me.1024 {lost}",
    }


def test_an_id_of_a_state_that_was_lost_is_said_to_be_one() -> None:
    lost = LostNumbers(first=1, last=500, at=Instant(SECOND), is_copy=False)
    assert why_lost("me.5", lost) == (
        "no task me.5 is known here: at 1970-01-01T00:00:01Z a neighbor remembered more numbers than this module had, "
        "whose state was lost or is an older copy, and what was submitted with them is not known"
    )


def test_all_that_reads_many_rows_does_so_in_turns(tmp_path: Path) -> None:
    tasks, store = tasks_with(2, tmp_path)
    array = tasks.find("me.1")
    assert array is not None

    async def count(listed: AsyncIterator[object]) -> int:
        return len([one async for one in listed])

    def turns_of(reading: Awaitable[object]) -> int:
        sliced = Sliced(reading)
        asyncio.run(awaited(sliced))
        return sliced.in_threads

    assert turns_of(count(tasks.find_all())) == 2
    assert turns_of(count(tasks.members_of(array))) == MEMBERS // 1_000
    assert turns_of(count(tasks.pages_of(array))) == 0
    assert turns_of(tasks.ends_of(array.id)) == 1
    assert turns_of(tasks.document(array)) == 1
    store.close()


def test_work_in_a_thread_is_paid_by_the_user_of_the_handler() -> None:
    spent: list[tuple[int, int]] = []

    class Counting(UserTurns):
        def charge_outside(self, uid: int, cost_ns: int) -> None:
            spent.append((uid, cost_ns))
            super().charge_outside(uid, cost_ns)

    async def main() -> int:
        return await PacedHandler(InThread(lambda: sum(range(1_000))), ANN, free_turns(Counting))

    assert asyncio.run(main()) == sum(range(1_000))
    ((uid, cost_ns),) = [each for each in spent if each[1]]
    assert uid == ANN
    assert cost_ns > 0
