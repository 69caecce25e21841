"""A hostile executor answers without end on streams that its victim has opened: it is throttled and named."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator

import pytest

from messiahs.channel.contract import Peer, Stream
from messiahs.core.model.ids import SystemId
from messiahs.wire.codec import (
    FeedAnswer,
    ReadChunk,
    ReadRequest,
    chunk_to_bytes,
    feed_answer_to_bytes,
)
from tests.commands import Command
from tests.live.conftest import Federation
from tests.live.hostile_module import HostileModule, hostile, played_lab
from tests.live.test_floods import active_users
from tests.waiting import until

EVIL = SystemId("evil")
_TOPOLOGY = """
version: 1
federation: lab
systems:
  home: {machine: {isolation: process, slots: 2, attributes: {site: home}}}
  evil: {parent: home}
"""
_THERE = ("--require", '$site eq "evil"')
_NAMED = "evil: it sends more than its share and is throttled"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Start an origin whose only neighbor is played by the tests."""
    with played_lab(tmp_path_factory.mktemp("answers"), _TOPOLOGY) as made:
        yield made


def _endless(content: bytes) -> Callable[[HostileModule], None]:
    """Answer each read with one piece again and again."""
    answer = chunk_to_bytes(ReadChunk(content=content))

    async def pieces(_: Peer, __: ReadRequest) -> AsyncGenerator[bytes, None]:
        while True:
            yield answer

    def prepare(evil: HostileModule) -> None:
        evil.reads = pieces

    return prepare


def _endless_answers(evil: HostileModule) -> None:
    """Answer standard input again and again that nothing was taken."""
    answer = feed_answer_to_bytes(FeedAnswer())

    async def answers(_: Peer, stream: Stream) -> None:
        while True:
            await stream.write(answer)

    evil.feeds = answers


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        pytest.param(_endless(b""), (), id="empty pieces of an output"),
        pytest.param(_endless(b"x"), (), id="pieces of one byte"),
        pytest.param(_endless_answers, ("--interactive",), id="answers to standard input"),
    ],
)
def test_its_answers_are_read_in_its_turn_and_users_are_served(
    home: Federation, prepare: Callable[[HostileModule], None], words: tuple[str, ...]
) -> None:
    def times_named() -> int:
        return (home.folder("home") / "module.log").read_text().count(_NAMED)

    def throttled() -> bool:
        with home.client("home") as client:
            return any(each["throttled"] for each in client.neighbors())

    async def scene() -> None:
        async with hostile(home, EVIL) as evil:
            prepare(evil)
            named = times_named()
            pipe = subprocess.PIPE
            command = [sys.executable, "-m", "messiahs.cli.main", "run", *words, *_THERE, "--", "cat"]
            running = Command[bytes](command, stdin=pipe, stdout=pipe, stderr=pipe, env=home.environment)
            try:
                await evil.run_next()
                await until(lambda: times_named() > named, "its name in the log")
                served = await asyncio.to_thread(home.run, "run", "--", "echo", "served")
                assert served.stdout == "served\n", served.stderr
            finally:
                running.kill()
                running.communicate()
        await until(lambda: not throttled(), "the end of the flood")

    with active_users(home):
        asyncio.run(scene())
