"""Guarantees of all implementations of the task channel about files (MESSIAHS 5.3.3)."""

import asyncio
import hashlib
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.channel.contract import OpenFile
from messiahs.core.interface.events import TransferFailed, TransferReceived
from messiahs.core.interface.messages import TaskTransfer
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.core.model.ids import SystemId, Ticket
from messiahs.core.model.task_files import InputFile
from messiahs.errors import ChannelError
from messiahs.wire.codec import PutFile, PutRequest
from tests.contract.byte_sources import ContentSource
from tests.contract.channel_modules import (
    CLAIM,
    CS,
    IMPLEMENTATIONS,
    NYNEVE,
    TICKET,
    XINU,
    MakeChannels,
    Recorded,
    World,
    make_implementation,
    play,
    transfer,
)
from tests.waiting import until

MEGABYTE = 1 << 20


@pytest.fixture(params=IMPLEMENTATIONS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> MakeChannels:
    return make_implementation(request.param, tmp_path)


def content_of(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


def hash_of(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def with_inputs(message: TaskTransfer, *contents: bytes) -> TaskTransfer:
    inputs = tuple(
        InputFile(name=f"in{number}", sha256=hash_of(content), size_bytes=len(content))
        for number, content in enumerate(contents)
    )
    tasks = tuple(replace(task, command=replace(task.command, inputs=inputs)) for task in message.tasks)
    return replace(message, tasks=tasks)


def put_of(*contents: bytes, ticket: Ticket = TICKET) -> PutRequest:
    files = tuple(PutFile(hash_of(content), len(content)) for content in contents)
    return PutRequest(claim=CLAIM, ticket=ticket, files=files)


def reader(*contents: bytes, asked: list[int] | None = None, stop_at: int | None = None) -> OpenFile:
    """Read files from memory, and note the offsets; `stop_at` blocks once so much of a file was returned."""
    by_hash = {hash_of(content): content for content in contents}

    def opened(sha256: bytes, offset: int) -> ContentSource:
        if asked is not None:
            asked.append(offset)
        return ContentSource(by_hash[sha256], offset=offset, stop_at=stop_at)

    return opened


def falsely(content: bytes) -> OpenFile:
    """Return this, whatever is requested."""
    return lambda _sha256, _offset: ContentSource(content)


async def pair(world: World) -> tuple[Recorded, Recorded, str]:
    cs, nyneve = await world.start(CS), await world.start(NYNEVE)
    return cs, nyneve, cs.channels.address


def test_small_files_arrive_before_the_tasks_that_carry_them(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, nyneve, address = await pair(world)
        contents = [content_of(seed, 60_000) for seed in range(20)]
        message = with_inputs(transfer(1, 2, 3, 4, 5), *contents)
        here: list[int] = []
        cs.on_event = lambda _: here.append(len(cs.files.missing(map(hash_of, contents))))
        nyneve.channels.send_tasks(CS, address, message, files={hash_of(content): content for content in contents})
        await until(lambda: sum(len(one.message.tasks) for one in cs.of_kind(TransferReceived)) == 5, "the tasks")
        assert [task for one in cs.of_kind(TransferReceived) for task in one.message.tasks] == list(message.tasks)
        assert set(here) == {0}
        assert cs.files.path(hash_of(contents[7])).read_bytes() == contents[7]
        assert nyneve.events == []

    play(make, scene)


def test_a_transfer_with_missing_files_is_dropped_and_its_claim_fails(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, nyneve, address = await pair(world)
        nyneve.channels.send_tasks(CS, address, with_inputs(transfer(1), b"never brought"))
        await until(lambda: nyneve.events, "the failure")
        assert [(one.claim, one.kind) for one in nyneve.of_kind(TransferFailed)] == [(CLAIM, TransferFailure.REFUSED)]
        assert cs.of_kind(TransferReceived) == []
        assert len(cs.dropped) == 1

    play(make, scene)


def test_a_small_file_is_sent_once_on_a_stream_and_again_after_a_failure(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, nyneve, address = await pair(world)
        content = b"for many tasks"
        path = cs.files.path(hash_of(content))

        def send(number: int) -> None:
            message = with_inputs(transfer(number), content)
            nyneve.channels.send_tasks(CS, address, message, files={hash_of(content): content})

        send(1)
        await until(lambda: len(cs.of_kind(TransferReceived)) == 1, "the first")
        path.unlink()
        send(2)
        await until(lambda: nyneve.of_kind(TransferFailed), "the failure of what came without its file")
        send(2)
        await until(lambda: len(cs.of_kind(TransferReceived)) == 2, "the second, with its file")
        assert path.exists()

    play(make, scene)


@pytest.mark.parametrize(("sender", "ticket"), [(XINU, TICKET), (NYNEVE, Ticket(b"?" * 16))])
def test_files_without_a_right_are_not_stored(make: MakeChannels, sender: SystemId, ticket: Ticket) -> None:
    async def scene(world: World) -> None:
        cs, other = await world.start(CS), await world.start(sender)
        content = content_of(1, 1_000)
        message = replace(with_inputs(transfer(1), content), ticket=ticket)
        other.channels.send_tasks(CS, cs.channels.address, message, files={hash_of(content): content})
        # The core decides whether the task is accepted.
        await until(lambda: cs.of_kind(TransferReceived), "the transfer")
        with pytest.raises(ChannelError, match="no ticket"):
            await other.channels.put(CS, cs.channels.address, put_of(content, ticket=ticket), reader(content))
        assert cs.files.missing([hash_of(content)]) == (hash_of(content),)

    play(make, scene)


def test_large_files_are_sent_once(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, nyneve, address = await pair(world)
        contents = [content_of(seed, size) for seed, size in enumerate((3 * MEGABYTE, 0, 1, 2 * MEGABYTE))]
        asked: list[int] = []
        for _ in range(2):
            await nyneve.channels.put(CS, address, put_of(*contents), reader(*contents, asked=asked))
        assert [cs.files.path(hash_of(content)).read_bytes() for content in contents] == contents
        assert asked == [0, 0, 0]
        assert cs.files.path(hash_of(contents[0])).stat().st_mode & 0o777 == 0o444

    play(make, scene)


def test_an_interrupted_file_resumes_at_its_offset(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, nyneve, address = await pair(world)
        first, second = content_of(1, MEGABYTE), content_of(2, 4 * MEGABYTE)
        stopping = reader(first, second, stop_at=2 * MEGABYTE)
        cut = asyncio.create_task(nyneve.channels.put(CS, address, put_of(first, second), stopping))
        await until(lambda: cs.files.offset(hash_of(second), of=NYNEVE) >= 2 * MEGABYTE, "half of the file")
        cut.cancel()
        with suppress(asyncio.CancelledError):
            await cut
        asked: list[int] = []
        await nyneve.channels.put(CS, address, put_of(first, second), reader(first, second, asked=asked))
        assert len(asked) == 1
        assert asked[0] >= 2 * MEGABYTE
        assert cs.files.path(hash_of(second)).read_bytes() == second

    play(make, scene)


def test_a_partial_file_of_another_peer_is_not_trusted(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, nyneve, address = await pair(world)
        content = content_of(1, MEGABYTE)
        poison = cs.files.draft(hash_of(content), size_bytes=MEGABYTE, of=XINU)
        poison.add(b"x" * 1_000)
        poison.close()
        asked: list[int] = []
        await nyneve.channels.put(CS, address, put_of(content), reader(content, asked=asked))
        assert asked == [0]

    play(make, scene)


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda content: content[:-1] + b"?", "another file"),
        (lambda content: content + b"more", "larger"),
        (lambda content: content[:-1], "ended"),
    ],
)
def test_a_file_that_differs_from_its_announcement_is_refused(
    make: MakeChannels, spoil: Callable[[bytes], bytes], text: str
) -> None:
    async def scene(world: World) -> None:
        cs, nyneve, address = await pair(world)
        content = content_of(1, 1_000_000)
        with pytest.raises(ChannelError, match=text):
            await nyneve.channels.put(CS, address, put_of(content), falsely(spoil(content)))
        assert cs.files.missing([hash_of(content)]) == (hash_of(content),)
        await nyneve.channels.put(CS, address, put_of(content), reader(content))
        assert cs.files.path(hash_of(content)).read_bytes() == content

    play(make, scene)


def test_more_than_a_claim_may_send_is_refused_before_the_first_byte(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, nyneve, address = await pair(world)
        huge = PutRequest(claim=CLAIM, ticket=TICKET, files=(PutFile(bytes(32), 1 << 40),))
        with pytest.raises(ChannelError, match="may bring"):
            await nyneve.channels.put(CS, address, huge, falsely(b""))
        assert list((cs.folder / "drafts").iterdir()) == []

    play(make, scene)


def test_tasks_overtake_a_stalled_file(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, nyneve, address = await pair(world)
        content = content_of(1, 4 * MEGABYTE)
        stuck = asyncio.create_task(
            nyneve.channels.put(CS, address, put_of(content), reader(content, stop_at=MEGABYTE))
        )
        await until(lambda: cs.files.offset(hash_of(content), of=NYNEVE) >= MEGABYTE, "a part of the file")
        nyneve.channels.send_tasks(CS, address, transfer(1))
        await until(lambda: cs.of_kind(TransferReceived), "the task")
        stuck.cancel()
        with suppress(asyncio.CancelledError):
            await stuck

    play(make, scene)


def test_files_for_an_address_without_a_listener_are_a_channel_error(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, nyneve, address = await pair(world)
        await world.stop(cs)
        with pytest.raises(ChannelError):
            await nyneve.channels.put(CS, address, put_of(b"x"), reader(b"x"))

    play(make, scene)


def test_a_file_that_its_origin_cannot_read_is_the_origin_s_own_error(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, nyneve, address = await pair(world)
        with pytest.raises(FileNotFoundError):
            await nyneve.channels.put(CS, address, put_of(b"gone"), nyneve.files.open)
        assert cs.files.missing([hash_of(b"gone")])

    play(make, scene)
