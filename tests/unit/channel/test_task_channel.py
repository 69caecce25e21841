"""The streams on which others bring tasks: which of them answers, and what is remembered of them."""

import asyncio
from dataclasses import dataclass
from typing import cast

import pytest

from messiahs.channel import task_channel
from messiahs.channel.contract import (
    NO_FILES,
    ChannelSettings,
    Peer,
)
from messiahs.channel.task_channel import BringingStreams, Transfers
from messiahs.channel.transport import Transport
from messiahs.core.interface.events import TransferFailed
from messiahs.core.interface.transfer_answers import TransferAnswer
from messiahs.core.model.ids import ClaimId, SystemId
from messiahs.wire.codec import answer_from_bytes, transfer_to_bytes
from tests.contract.channel_modules import CLAIM, CS, NYNEVE, Recorded, transfer
from tests.waiting import PATIENCE_SECONDS, until


class _Stream:
    """A stream of a peer that sends what the test queues (mutable)."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.answers: list[bytes] = []

    async def read(self) -> bytes | None:
        return await self.sent.get()

    async def write(self, content: bytes) -> None:
        self.answers.append(content)

    def bring(self, *numbers: int) -> None:
        for number in numbers:
            self.sent.put_nowait(transfer_to_bytes(transfer(1, claim=numbered(number))))

    @property
    def answered(self) -> list[int]:
        return [answer.claim.number for answer in map(answer_from_bytes, self.answers) if answer.claim is not None]


def numbered(number: int) -> ClaimId:
    return CLAIM._replace(number=number)


def test_a_system_is_answered_on_the_latest_stream_and_for_its_latest_claims_over_all_streams(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene() -> None:
        module, old, new = Recorded(name=NYNEVE), _Stream(), _Stream()
        bringing = BringingStreams(module.callbacks(), {})
        peer, other_key = Peer(system=NYNEVE, key=bytes(16)), Peer(system=NYNEVE, key=bytes([1]) * 16)
        serving = [asyncio.create_task(bringing.receive(*each)) for each in ((peer, old), (other_key, new))]
        old.bring(1, 2, 3)
        await until(lambda: len(module.events) == 3, "the first tasks")
        new.bring(3, 4)
        await until(lambda: len(module.events) == 5, "the others")
        refuse_all(bringing, peer, other_key)
        await until(lambda: (old.answered, new.answered) == ([2, 3], [3, 4]), "the latest four")
        old.sent.put_nowait(None)
        await serving[0]
        new.bring(5)
        await until(lambda: len(module.events) == 6, "the last one")
        refuse_all(bringing, peer, other_key)
        await until(lambda: new.answered == [3, 4, 3, 4, 5], "those of the other stream")
        new.sent.put_nowait(None)
        await serving[1]
        refuse_all(bringing, peer, other_key)

    monkeypatch.setattr(task_channel, "CLAIM_LIMIT", 4)
    asyncio.run(scene())


def refuse_all(bringing: BringingStreams, *peers: Peer) -> None:
    for peer in peers:
        for number in range(1, 6):
            bringing.refuse(peer, TransferAnswer(claim=numbered(number), problem="no"))


class _Unread:
    """A stream to an executor that takes nothing (mutable)."""

    def __init__(self) -> None:
        self.is_closed = self.is_written = False

    async def read(self) -> bytes | None:
        await asyncio.Event().wait()
        return None

    async def write(self, _: bytes) -> None:
        self.is_written = True
        await asyncio.Event().wait()

    async def finish(self) -> None:
        raise AssertionError("nothing was taken")

    def close(self) -> None:
        self.is_closed = True


@dataclass
class _Opening:
    """The part of a transport that opens streams for tasks."""

    stream: _Unread

    def open_transfers(self, _: SystemId, __: str) -> _Unread:
        return self.stream


def test_an_executor_that_takes_no_tasks_loses_the_stream_when_too_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        module, unread = Recorded(name=NYNEVE), _Unread()
        settings = ChannelSettings(federation="lab", name=NYNEVE, listen="")
        transfers = Transfers(settings, cast("Transport", _Opening(unread)), module.callbacks(), {})
        for number in range(1, 7):
            transfers.send(CS, "", transfer=transfer(1, claim=numbered(number)), files=NO_FILES)
            await until(lambda: unread.is_written, "a write that is not taken")
        await until(lambda: unread.is_closed, "the end of the stream")
        failures = module.of_kind(TransferFailed)
        assert [failed.claim.number for failed in failures] == [1, 2, 3, 4, 5, 6]
        assert {failed.text for failed in failures} == {"the executor does not read its tasks"}
        await transfers.stop()

    monkeypatch.setattr(task_channel, "QUEUE_LIMIT_TASKS", 4)
    asyncio.run(scene())


def test_a_stream_that_is_given_tasks_in_the_instant_of_its_end_ends_at_once() -> None:
    """As it would otherwise wait until it is idle for long, and with it the end of the module."""

    async def scene() -> None:
        module, opened = Recorded(name=NYNEVE), _Opened()
        settings = ChannelSettings(federation="campus", name=NYNEVE, listen="", idle_seconds=600)
        transfers = Transfers(settings, cast("Transport", opened), module.callbacks(), {})
        transfers.send(CS, "cs:1", transfer=transfer(1), files=NO_FILES)
        await until(lambda: len(opened.answers) == 1, "the first tasks")
        # The writer waits for more, and its cancellation follows in the same turn of the loop.
        transfers.send(CS, "cs:1", transfer=transfer(2), files=NO_FILES)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await transfers.stop()
        assert opened.is_closed

    asyncio.run(scene())


class _Opened(_Stream):
    """A stream that this side opened, and that is never answered (mutable)."""

    is_closed = False

    def open_transfers(self, *_: object) -> "_Opened":
        return self

    def close(self) -> None:
        self.is_closed = True
