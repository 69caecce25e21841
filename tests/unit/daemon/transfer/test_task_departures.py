"""Sending tasks with inputs: files that are sent with them, files that are sent before, and failures."""

import asyncio
import hashlib
from dataclasses import replace

from messiahs.channel.memory import MemoryNetwork
from messiahs.core.interface.actions import SendTasks
from messiahs.core.interface.events import Event, TransferFailed, TransferReceived
from messiahs.core.interface.messages import (
    BoundTask,
    Command,
)
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.core.model.ids import AttemptId
from messiahs.core.model.task_files import InputFile
from messiahs.daemon.storage.unsynced import SMALL_BYTES
from messiahs.daemon.transfer.task_departures import Sending, divided
from tests.contract.channel_modules import (
    CLAIM,
    CS,
    NYNEVE,
    TICKET,
    Recorded,
    World,
    make_memory,
    play,
    transfer,
)
from tests.waiting import until


def input_of(content: bytes) -> InputFile:
    return InputFile(name="in", sha256=hashlib.sha256(content).digest(), size_bytes=len(content))


def sends(cs: Recorded, *contents: bytes, count: int = 1) -> SendTasks:
    inputs = tuple(replace(input_of(content), name=f"in{number}") for number, content in enumerate(contents))
    message = transfer(*range(count))
    tasks = tuple(replace(task, command=replace(task.command, inputs=inputs)) for task in message.tasks)
    return SendTasks(to=CS, address=cs.channels.address, message=replace(message, tasks=tasks))


def task_with(*sizes: int) -> BoundTask:
    inputs = tuple(InputFile(name=str(at), sha256=bytes([at]) * 32, size_bytes=size) for at, size in enumerate(sizes))
    return replace(transfer(1).tasks[0], command=Command(argv=("true",), inputs=inputs))


def test_small_files_ride_up_to_their_sum_and_the_others_go_before() -> None:
    small, large = divided([task_with(SMALL_BYTES, SMALL_BYTES + 1, 0)])
    assert (len(small), len(large)) == (2, 1)
    small, large = divided([task_with(*[SMALL_BYTES] * 10)] * 3)
    assert (len(small), len(large)) == (8, 2)


def test_files_come_before_their_tasks_and_a_large_one_travels_once_for_all_who_need_it() -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await world.start(CS), await world.start(NYNEVE)
        small, large = b"small", b"large" * SMALL_BYTES
        for content in (small, large):
            nyneve.files.keep(content)
        events: list[Event] = []
        sending = Sending(nyneve.files, nyneve.channels, on_event=events.append)
        before = counted(cs)
        jobs = [asyncio.create_task(sending.send(sends(cs, small, large, count=10))) for _ in range(10)]
        # In every iteration of the loop, because it is short-lived.
        while sending.bringing != {CLAIM} and not all(job.done() for job in jobs):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
        assert sending.bringing == {CLAIM}
        await asyncio.gather(*jobs)
        await until(lambda: sum(len(one.message.tasks) for one in cs.of_kind(TransferReceived)) == 100, "the tasks")
        assert cs.files.path(input_of(large).sha256).read_bytes() == large
        assert counted(cs) - before == 2
        assert events == []
        assert sending.bringing == frozenset()

    play(make_memory(MemoryNetwork()), scene)


def test_a_task_that_was_cancelled_while_its_files_were_on_their_way_is_not_sent() -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await world.start(CS), await world.start(NYNEVE)
        nyneve.files.keep(b"small")
        action = sends(cs, b"small", count=3)
        first, cancelled, last = (task.attempt for task in action.message.tasks)
        sending = Sending(
            nyneve.files, nyneve.channels, on_event=lambda _: None, is_wanted=lambda attempt: attempt != cancelled
        )
        await sending.send(action)

        def arrived() -> list[AttemptId]:
            return [task.attempt for one in cs.of_kind(TransferReceived) for task in one.message.tasks]

        await until(lambda: last in arrived(), "the others")
        assert arrived() == [first, last]

    play(make_memory(MemoryNetwork()), scene)


def counted(module: Recorded) -> int:
    """Count the files of a module."""
    return len([path for path in module.folder.iterdir() if path.is_file()])


def test_a_file_that_cannot_be_brought_fails_the_transfer_and_sends_no_task() -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await world.start(CS), await world.start(NYNEVE)
        events: list[Event] = []
        sending = Sending(nyneve.files, nyneve.channels, on_event=events.append)
        large = b"large" * SMALL_BYTES
        await sending.send(sends(cs, large))
        await sending.send(sends(cs, b"small"))
        assert [type(event) for event in events] == [TransferFailed] * 2
        nyneve.files.keep(large)
        wrong = replace(sends(cs, large).message, ticket=type(TICKET)(b"?" * 16))
        await sending.send(replace(sends(cs, large), message=wrong))
        assert isinstance(events[2], TransferFailed)
        assert (events[2].claim, events[2].kind, "no ticket" in events[2].text) == (
            CLAIM,
            TransferFailure.DENIED,
            True,
        )
        await sending.send(sends(cs, large))
        await until(lambda: cs.of_kind(TransferReceived), "the task at last")
        assert len(events) == 3

    play(make_memory(MemoryNetwork()), scene)
