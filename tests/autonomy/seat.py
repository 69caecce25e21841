"""The seat: the suite as a neighbor of the module under test, which asks it for machines and brings tasks."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from secrets import randbits, token_bytes, token_hex
from typing import Final

from messiahs.channel.contract import OutgoingStream
from messiahs.core.interface.messages import (
    AttemptStatus,
    BoundTask,
    Command,
    ControlMessage,
    DenyCode,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    SystemStatusQuery,
    TaskState,
    TaskStatus,
    TaskStatusAck,
    TaskTransfer,
)
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import AttemptId, MessageId, SearchId, TaskId
from messiahs.core.model.instants import MINUTE
from messiahs.wire.codec import transfer_to_bytes
from tests.autonomy.scene import Scene
from tests.autonomy.users import SEAT_ARCH
from tests.live.hostile_module import EPOCH, MACHINE, HostileModule, linked
from tests.waiting import PATIENCE_SECONDS, until

MACHINE_OF_THE_SEAT: Final[Mapping[str, int | str]] = {**MACHINE, "arch": SEAT_ARCH, "site": SEAT_ARCH}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """The seat while it has a link."""

    module: HostileModule
    numbers: "count[int]"
    user: str
    """The user of its tasks: after one was revoked, those of the same user get no place for a while."""

    def request(self, places: int = 1, *, requirement: str = "") -> SchedRequest:
        """Return a request that was never sent before, for machines of the module under test alone."""
        return SchedRequest(
            id=MessageId(next(self.numbers)),
            search=SearchId(token_bytes(16)),
            origin=self.module.name,
            tdv=TDV((("cpus", 1), ("origin", self.module.name), ("user", self.user))),
            requirement=requirement,
            count=places,
            hops_left=1,
            asks_left=1,
            remaining_ns=MINUTE,
        )

    async def asked(self, request: SchedRequest) -> SchedAccept | SchedDeny:
        """Send a request, and return the first answer to it; what came before is skipped."""
        *_, answer = await self.heard_until_answered(request)
        assert isinstance(answer, SchedAccept | SchedDeny)
        return answer

    async def heard_until_answered(self, request: SchedRequest) -> list[ControlMessage]:
        """Send a request, and return what has come and comes until it is answered; the answer is the last one."""
        await self.module.send(request)
        heard: list[ControlMessage] = []
        while True:
            heard.append(await self.module.next_of(object))
            match heard[-1]:
                case SchedAccept(request=answered) | SchedDeny(request=answered) if answered == request.id:
                    return heard
                case _:
                    pass

    async def granted(self, places: int = 1) -> SchedAccept:
        """Return a claim at the module under test, once it has room."""
        assert self.module.vectors is not None
        while isinstance(answer := await self.asked(self.request(places)), SchedDeny):
            assert {each.code for each in answer.reasons} == {DenyCode.NO_CAPACITY}, answer
            # Places of earlier tasks are free a little later, and then it sends a vector.
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self.module.vectors.get()
        return answer

    def task(self, *argv: str) -> BoundTask:
        """Return a task that was never brought before."""
        task = TaskId(self.module.name, EPOCH, next(self.numbers), 0)
        return BoundTask(attempt=AttemptId(task, 1), command=Command(argv=argv))

    def stream(self, accept: SchedAccept) -> OutgoingStream:
        """Open a stream on which tasks of a claim are brought."""
        return self.module.transport.open_transfers(self.module.neighbor.neighbor.system, accept.address)

    async def bring(self, stream: OutgoingStream, accept: SchedAccept, *tasks: BoundTask) -> None:
        """Bring tasks in a claim."""
        await stream.write(transfer_to_bytes(TaskTransfer(claim=accept.claim, ticket=accept.ticket, tasks=tasks)))

    async def vector(self) -> bytes:
        """Ask for a vector, and return the bytes of the next one."""
        assert self.module.vectors is not None
        await self.module.send(SystemStatusQuery())
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.module.vectors.get()

    async def reported(self, attempt: AttemptId, *states: TaskState) -> AttemptStatus:
        """Wait until the module under test reports one of some states of an attempt."""
        while True:
            message = await self.module.next_of(TaskStatus)
            assert isinstance(message, TaskStatus)
            for each in message.attempts:
                if each.attempt == attempt and each.state in states:
                    return each

    async def finished(self, accept: SchedAccept, task: BoundTask) -> AttemptStatus:
        """Wait for the end of an attempt, and acknowledge it."""
        ended = await self.reported(task.attempt, *(set(TaskState) - {TaskState.EXECUTING}))
        await self.module.send(TaskStatusAck(claim=accept.claim, taken=(task.attempt,)))
        return ended


@asynccontextmanager
async def seated(
    scene: Scene,
    machine: Mapping[str, int | str] = MACHINE_OF_THE_SEAT,
    *,
    release: str = "autonomy",
    hello: bytes = b"",
) -> AsyncIterator[Seat]:
    """Link the seat with the module under test, and show a machine there; `hello` opens the link if it is given."""
    module = HostileModule(settings=scene.settings, machine=machine, release=release, vectors=asyncio.Queue())
    async with linked(module, hello=hello):
        await until(lambda: scene.neighbor()["state"] == "linked", "the seat is linked")
        # Numbers are those of no earlier link of the seat.
        yield Seat(module=module, numbers=count(1 + randbits(40)), user=f"suite-{token_hex(4)}")
