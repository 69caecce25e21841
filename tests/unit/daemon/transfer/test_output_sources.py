"""Outputs and standard input of this machine's attempts, as peers name them."""

import asyncio
from dataclasses import replace

from messiahs.channel.contract import Channels
from messiahs.core.interface.actions import StartAttempt
from messiahs.core.interface.events import TransferReceived
from messiahs.core.interface.messages import SchedAccept
from messiahs.core.model.instants import Instant
from messiahs.daemon.transfer.output_sources import OwnOutputs
from messiahs.daemon.transfer.stdin_feeds import Feeds
from messiahs.executor.stub import StubExecutor
from messiahs.trace.record.recorder import RecordedModule
from messiahs.wire.codec import ReadRequest
from tests.unit.core.conftest import module, policy, rig
from tests.unit.core.rig import CHILD, ORIGIN, PARENT, Rig, message_in, only, remote, request, transfer
from tests.waiting import until

__all__ = ["module", "policy", "rig"]

WRITTEN = b"written in the second claim"


def test_the_claim_tells_apart_attempts_of_one_id(rig: Rig) -> None:
    rig.measure(slots=8)
    starts: list[StartAttempt] = []
    for number, via in enumerate((CHILD, PARENT), start=1):
        claim = message_in(rig.hear(via, request(number, search=bytes([number]) * 16)), SchedAccept)
        brought = TransferReceived(sender=ORIGIN, message=transfer(claim.claim, claim.ticket, remote()))
        starts.extend(only(rig.handle(brought), StartAttempt))
    command = replace(starts[1].command, takes_stdin=True)
    start = replace(starts[1], command=command, lease_until=Instant(1 << 62))
    asked = ReadRequest(claim=start.claim, ticket=claim.ticket, attempt=remote(), name="stdout")

    async def scene() -> None:
        executor, recorded = StubExecutor(delay_ns=1 << 60, stdout=WRITTEN), RecordedModule(rig.module)
        await executor.start(lambda _: None, lambda _: None)
        executor.perform(start)
        await until(lambda: executor.read_output(start.attempt, "stdout", offset=0, limit=1) == WRITTEN[:1])
        outputs = OwnOutputs(executor, recorded)
        assert [piece async for piece in outputs.read(asked)] == [WRITTEN]
        buffer = bytearray(len(WRITTEN))
        outputs.open(asked, is_hashed=True).read_into(memoryview(buffer))
        assert buffer == WRITTEN
        feed = await Feeds(recorded, _no_channels, executor, on_event=lambda _: None).open_on(
            None, asked.claim, remote()
        )
        answer = await feed.answer()
        assert answer is not None
        assert not answer.is_closed
        feed.close()
        await executor.stop(end_tasks=True)

    asyncio.run(scene())


def _no_channels() -> Channels:
    raise AssertionError("the attempt is here")
