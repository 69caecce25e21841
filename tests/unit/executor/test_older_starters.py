"""A starter of an earlier release, which still runs tasks: what it does not know is not asked of it."""

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace as replaced

from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import Cause
from messiahs.core.model.counted import Counted
from messiahs.executor.attempt_values import Known, Start
from messiahs.executor.contract import ExecutorEvent
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.os_process.older_starters import why_not_started
from messiahs.executor.protocol.frames import PROTOCOL, Ask, FrameReader, Hello, ToDaemon, ToStarter, encode_frames
from messiahs.executor.protocol.identity import SOCKET
from tests.contract.executor_rig import OFFSET_NS, attempt_id, start_of
from tests.waiting import until


class OlderStarter:
    """Says what a starter of release 0.1.0 says, and notes what it is to start (mutable)."""

    def __init__(self) -> None:
        self.started: list[Start] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Greet, and answer until the daemon is gone."""
        encoder, decoder, frames = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(list[ToStarter]), FrameReader()

        def say(message: ToDaemon) -> None:
            writer.write(encode_frames(encoder, [message]))

        say(Hello(protocol=PROTOCOL, pid=1, attempts_root="/", degraded="", has_rebooted=False, uid=1))
        while data := await reader.read(1 << 16):
            for body in frames.feed(data):
                for message in decoder.decode(body):
                    if isinstance(message, Start):
                        self.started.append(message)
                    elif isinstance(message, Ask):
                        say(Known(number=message.number, queued=(), running=(), ended=()))
        writer.close()


def test_a_task_with_devices_waits_for_a_starter_that_shows_them() -> None:
    devices = {"gpus": {0: ("/dev/nvidia0",)}}
    hello = Hello(protocol=PROTOCOL, pid=1, attempts_root="/", degraded="", has_rebooted=False, isolation="sandbox")
    start = replace(start_of(1), assigned=(Counted(name="gpus", numbers=(0,)),))
    assert why_not_started(start, hello, devices=devices).endswith("get other devices")
    assert why_not_started(start, hello, devices={}) == ""
    assert why_not_started(start_of(1), hello, devices=devices) == ""
    for greeting in (replaced(hello, isolation="process"), replaced(hello, shows_devices=True)):
        assert why_not_started(start, greeting, devices=devices) == ""


@pytest.mark.parametrize(
    ("account", "network", "what"), [("physics", "", "get other accounts"), ("", "none", "get other networks")]
)
def test_a_task_ends_before_an_older_starter_could_run_it_otherwise_than_the_policy_says(
    tmp_path: Path, account: str, network: str, what: str
) -> None:
    async def scene() -> None:
        starter, events = OlderStarter(), list[ExecutorEvent]()
        server = await asyncio.start_unix_server(starter.serve, tmp_path / SOCKET)
        executor = OsProcessExecutor(StarterSettings(directory=tmp_path), boottime_offset_ns=OFFSET_NS)
        await executor.start(events.append, lambda _: None)
        await executor.running()
        executor.perform(replace(start_of(1), account=account, network=network))
        executor.perform(start_of(2))
        await until(lambda: events and starter.started)
        (ended,) = events
        assert isinstance(ended, AttemptEnded)
        assert (ended.attempt, ended.cause) == (attempt_id(1), Cause.SPAWN_FAILED)
        assert "the starter of an earlier release still runs tasks here" in ended.text
        assert ended.text.endswith(what)
        assert [start.attempt for start in starter.started] == [attempt_id(2)]
        await executor.stop(end_tasks=False)
        server.close()

    asyncio.run(scene())
