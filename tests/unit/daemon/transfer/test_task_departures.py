"""Sending tasks with inputs: files that are sent with them, files that are sent before, and failures."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import cast

from messiahs.channel.contract import Channels, OpenFile
from messiahs.channel.memory import MemoryNetwork
from messiahs.core.interface.actions import SendTasks
from messiahs.core.interface.events import Event, TransferFailed, TransferReceived
from messiahs.core.interface.messages import TaskTransfer
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.core.model.ids import AttemptId, ClaimId, SystemId
from messiahs.core.model.task_files import InputFile
from messiahs.daemon.storage.files import FileStore
from messiahs.daemon.storage.unsynced import SMALL_BYTES
from messiahs.daemon.transfer.task_departures import PUTS, Sending, divided
from messiahs.wire.codec import PutRequest
from tests.contract.channel_modules import (
    CLAIM,
    CS,
    NYNEVE,
    TICKET,
    XINU,
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


def numbered(*sizes: int) -> dict[bytes, int]:
    return {number.to_bytes(32): size for number, size in enumerate(sizes)}


def test_small_files_ride_up_to_their_sum_and_the_others_go_before() -> None:
    small, large = divided(numbered(SMALL_BYTES, SMALL_BYTES + 1, 0))
    assert (len(small), len(large)) == (2, 1)
    small, large = divided(numbered(*[SMALL_BYTES] * 10))
    assert (len(small), len(large)) == (8, 2)
    assert divided({b"missing": None}) == ([], [b"missing"])
    small, large = divided(numbered(*[1] * 1_025))
    assert (len(small), len(large)) == (1_024, 1)


def test_a_large_file_whose_task_calls_it_small_does_not_ride() -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await world.start(CS), await world.start(NYNEVE)
        large = b"large" * SMALL_BYTES
        nyneve.files.keep(large, of="ada")
        action = sends(cs, large)
        (task,) = action.message.tasks
        lie = replace(task.command.inputs[0], size_bytes=10)
        lying = replace(action.message, tasks=(replace(task, command=replace(task.command, inputs=(lie,))),))
        before = counted(cs)
        # A hop sent it before, with a `put` of its own.
        passing = Sending(nyneve.files, nyneve.channels, on_event=lambda _: None, known=lambda _: "ada")
        await passing.send(replace(action, message=replace(lying, supplier=bytes(16))))
        await until(lambda: cs.dropped, "that its task is refused")
        assert (counted(cs) - before, cs.dropped) == (0, [(NYNEVE, "1 of its files are missing here")])
        origin = Sending(nyneve.files, nyneve.channels, on_event=lambda _: None)
        await origin.send(replace(action, message=lying))
        await until(lambda: cs.of_kind(TransferReceived), "the task")
        assert cs.files.path(input_of(large).sha256).read_bytes() == large

    play(make_memory(MemoryNetwork()), scene)


class _Stuck:
    """Channels to systems, some of which take no files (mutable)."""

    def __init__(self, *silent: SystemId) -> None:
        self.silent = silent
        self.putting: Counter[SystemId] = Counter()
        self.sent: list[SystemId] = []

    async def put(self, to: SystemId, _address: str, _request: PutRequest, _open_file: OpenFile, /) -> None:
        self.putting[to] += 1
        try:
            if to in self.silent:
                await asyncio.Event().wait()
        finally:
            self.putting[to] -= 1

    def send_tasks(
        self, to: SystemId, _address: str, _message: TaskTransfer, /, *, files: Mapping[bytes, bytes]
    ) -> None:
        assert not files
        self.sent.append(to)


def test_a_system_that_takes_no_files_delays_nobody_else_and_its_streams_end_with_their_claims(tmp_path: Path) -> None:
    async def scene() -> None:
        files, channels = FileStore(tmp_path), _Stuck(CS)
        held, events = {CLAIM}, list[Event]()
        sending = Sending(files, cast("Channels", channels), on_event=events.append, is_held=held.__contains__)
        stuck = [asyncio.create_task(sending.send(bringing(files, CS, number=number))) for number in range(40)]
        await until(lambda: channels.putting[CS] == PUTS, "as many as may go at once")
        await sending.send(bringing(files, XINU, number=0))
        assert channels.sent == [XINU]
        held.clear()
        sending.give_up_ended()
        await asyncio.gather(*stuck)
        assert (channels.putting[CS], len(events)) == (0, 40)
        assert sending.bringing == frozenset()

    asyncio.run(scene())


def test_a_file_that_went_for_a_claim_that_has_ended_goes_again_for_another_one(tmp_path: Path) -> None:
    async def scene() -> None:
        files, channels, other = FileStore(tmp_path), _Stuck(CS), CLAIM._replace(number=6)
        held = {CLAIM, other}
        # One thread: whoever comes later does not overtake, and what was given to it earlier is done.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        sending = Sending(files, cast("Channels", channels), on_event=lambda _: None, is_held=held.__contains__)
        first = asyncio.create_task(sending.send(bringing(files, CS, number=0)))
        second = asyncio.create_task(sending.send(bringing(files, CS, number=0, claim=other)))
        await until(lambda: sending.bringing == held, "that both look at their files")
        await asyncio.to_thread(bool)
        await until(lambda: channels.putting[CS] == 1, "one stream for both")
        channels.silent = ()
        held.discard(CLAIM)
        sending.give_up_ended()
        await asyncio.gather(first, second)
        assert channels.sent == [CS]

    asyncio.run(scene())


def bringing(files: FileStore, to: SystemId, *, number: int, claim: ClaimId = CLAIM) -> SendTasks:
    """Return tasks of a claim with a large file that was not sent yet."""
    content = number.to_bytes(4) * SMALL_BYTES
    files.keep(content)
    message = transfer(1, claim=claim)
    (task,) = message.tasks
    brought = replace(task, command=replace(task.command, inputs=(input_of(content),)))
    return SendTasks(to=to, address="", message=replace(message, tasks=(brought,)))


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
    return len([path for path in module.files.contents.iterdir() if path.is_file()])


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
