"""An executor of another site reports results with hostile outputs: its origin keeps its disk, and serves others."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace

import pytest

from messiahs.channel.contract import Peer
from messiahs.core.interface.messages import AttemptStatus, TaskState
from messiahs.core.model.ids import SystemId
from messiahs.core.model.task_files import Output
from messiahs.wire.codec import ReadChunk, ReadRequest, chunk_to_bytes
from tests.live.conftest import Federation
from tests.live.hostile_module import hostile, played_lab
from tests.waiting import until

EVIL = SystemId("evil")
_TOPOLOGY = """
version: 1
federation: lab
systems:
  home: {machine: {isolation: process, slots: 2, attributes: {site: home}}}
  evil: {parent: home}
"""
_THERE = ("--require", '$site eq "evil"', "--output", "kept")
_NAMES = ("../x", "/etc/x", "work/a\0b", "work/a\nb", "x" * 4096, ".", "work/../../x")
_SENT = b"sixteen bytes is"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Start an origin whose only neighbor is played by the tests."""
    with played_lab(tmp_path_factory.mktemp("results"), _TOPOLOGY) as made:
        yield made


async def _sixteen(_: Peer, request: ReadRequest) -> AsyncGenerator[bytes, None]:
    """Answer each read with the same bytes, whatever size was reported."""
    yield chunk_to_bytes(ReadChunk(content=_SENT[request.offset_bytes :]))


@pytest.mark.parametrize("name", _NAMES)
def test_a_report_of_an_output_with_such_a_name_is_dropped_and_the_next_one_counts(home: Federation, name: str) -> None:
    async def scene() -> None:
        async with hostile(home, EVIL) as evil:
            task = await asyncio.to_thread(home.submit, *_THERE, "--", "true")
            attempt = await evil.run_next()
            ended = AttemptStatus(attempt=attempt, state=TaskState.FINISHED, exit_code=0)
            await evil.report(replace(ended, outputs=(Output(name=name, size_bytes=len(_SENT)),)))
            await evil.report(ended)
            await until(lambda: home.status(task)["state"] != "executing", "the end")
            found = home.status(task)
            assert (found["state"], found["cause"]) == ("aborted", "output_missing")

    asyncio.run(scene())


@pytest.mark.parametrize("size_bytes", [len(_SENT) + 1, 1 << 50, len(_SENT) - 1])
def test_an_output_of_another_size_than_reported_is_not_taken_and_others_are_served(
    home: Federation, size_bytes: int
) -> None:
    async def scene() -> None:
        async with hostile(home, EVIL) as evil:
            evil.reads = _sixteen
            task = await asyncio.to_thread(home.submit, *_THERE, "--", "true")
            attempt = await evil.run_next()
            output = Output(name="work/kept", size_bytes=size_bytes)
            await evil.report(AttemptStatus(attempt=attempt, state=TaskState.FINISHED, exit_code=0, outputs=(output,)))
            served = await asyncio.to_thread(home.run, "run", "--", "echo", "served")
            assert served.stdout == "served\n", served.stderr
            assert home.status(task)["state"] != "finished"
            await asyncio.to_thread(home.run, "cancel", task)

    asyncio.run(scene())
