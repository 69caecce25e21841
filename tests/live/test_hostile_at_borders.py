"""A hostile executor before or behind a border names tasks that were not brought in its claim, and gets nothing."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from messiahs.config.settings import load_settings
from messiahs.core.interface.messages import AttemptStatus, SchedAccept, TaskState, TaskStatus
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SystemId, TaskId
from messiahs.wire.codec import ReadRequest, read_request_to_bytes, transfer_and_files_from_bytes
from tests.live.conftest import Federation
from tests.live.hostile_module import TICKET, HostileModule, hostile, played_lab
from tests.waiting import PATIENCE_SECONDS, eventually

EVIL, GATE = SystemId("evil"), SystemId("gate")
_HEAD = "version: 1\nfederation: lab\ndefaults: {update_period: 300ms}\nsystems:\n"
PLACES = {
    "before": "  top: {}\n  gate: {parent: top, reach: proxy}\n  home: {parent: gate}\n  evil: {parent: top}\n",
    "behind": "  home: {}\n  gate: {parent: home, reach: proxy}\n  evil: {parent: gate}\n",
}
_THERE = ("--require", '$site eq "evil"')


@pytest.fixture(params=PLACES)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Federation]:
    """Start an origin on the other side of a border than an executor that the tests play."""
    with played_lab(tmp_path, _HEAD + PLACES[request.param]) as made:
        yield made


async def taken(evil: HostileModule, home: Federation, memory: str, /) -> tuple[str, SchedAccept, AttemptId]:
    """Submit a task of a shape of its own, grant a claim for it, and return its id, the accept, and what arrived."""
    task = await asyncio.to_thread(home.submit, *_THERE, "--mem", memory, "--", "true")
    accept = await evil.grant()
    async with asyncio.timeout(PATIENCE_SECONDS):
        transfer, _ = transfer_and_files_from_bytes(await evil.transfers.get())
    assert transfer.claim == accept.claim
    return task, accept, transfer.tasks[0].attempt


def finished(claim: ClaimId, *attempts: AttemptId) -> TaskStatus:
    """Return a status according to which attempts have ended with exit code 0."""
    ended = tuple(AttemptStatus(attempt=each, state=TaskState.FINISHED, exit_code=0) for each in attempts)
    return TaskStatus(claim=claim, attempts=ended, window=1)


def test_a_task_ends_only_by_what_is_said_in_the_claim_that_brought_it(home: Federation) -> None:
    async def scene() -> None:
        async with hostile(home, EVIL) as evil:
            first, one, brought = await taken(evil, home, "1MiB")
            second, other, also = await taken(evil, home, "2MiB")
            guessed = AttemptId(TaskId(SystemId("home"), Epoch(1), brought.task.number), 1)
            next_one = brought._replace(task=brought.task._replace(number=brought.task.number + 1))
            await evil.send(finished(other.claim, brought, guessed, next_one))
            await evil.send(finished(other.claim, brought, also))
            assert (await asyncio.to_thread(home.run, "wait", second)).returncode == 0
            status = await asyncio.to_thread(home.status, first)
            assert status["state"] not in ("finished", "aborted", "denied"), status
            await evil.send(finished(one.claim, brought))
            assert (await asyncio.to_thread(home.run, "wait", first)).returncode == 0

    asyncio.run(scene())
    log = home.folder("gate") / "module.log"
    if "top" in home.topology.read_text():
        eventually(lambda: "was not brought in its claim" in log.read_text())


def test_a_task_that_is_reported_as_finished_without_an_end_of_its_process_goes_on(home: Federation) -> None:
    neighbor = "top" if "top" in home.topology.read_text() else "gate"
    log = home.folder(neighbor) / "module.log"

    async def scene() -> None:
        async with hostile(home, EVIL) as evil:
            task, accept, brought = await taken(evil, home, "1MiB")
            endless = AttemptStatus(attempt=brought, state=TaskState.FINISHED)
            await evil.send(TaskStatus(claim=accept.claim, attempts=(endless,), window=1))
            text = "neither an exit code nor a signal"
            await asyncio.to_thread(eventually, lambda: text in log.read_text())
            assert (await asyncio.to_thread(home.status, task))["state"] == "executing"
            await evil.send(finished(accept.claim, brought))
            assert (await asyncio.to_thread(home.run, "wait", task)).returncode == 0

    asyncio.run(scene())


def test_a_stranger_with_a_valid_certificate_reads_nothing_through_a_border(home: Federation) -> None:
    async def scene() -> None:
        async with hostile(home, EVIL) as evil:
            first, one, brought = await taken(evil, home, "1MiB")
            _, other, _ = await taken(evil, home, "2MiB")
            gate = load_settings(home.folder("gate") / "settings.json").listen
            for claim in (one.claim, other.claim, one.claim._replace(executor=GATE)):
                request = ReadRequest(claim=claim, ticket=TICKET, attempt=brought, name="stdout")
                with pytest.raises((PermissionError, FileNotFoundError)):
                    await anext(evil.transport.read(GATE, gate, read_request_to_bytes(request)))
            with suppress(Exception):
                await asyncio.to_thread(home.run, "cancel", first)

    asyncio.run(scene())
