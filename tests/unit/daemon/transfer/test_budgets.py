"""What other systems may move through a module: streams, bytes in a second, bytes in a day."""

import asyncio
import threading
from pathlib import Path

import pytest

from messiahs.config.settings import ByteSettings
from messiahs.core.model.ids import SystemId
from messiahs.daemon.transfer.budgets import STALLED_SECONDS, BudgetError, Budgets, Moved
from messiahs.daemon.transfer.stream_shares import Kind, Share
from tests.waiting import PATIENCE_SECONDS

GATE, CHEM, PHYS = SystemId("gate"), SystemId("chem"), SystemId("phys")
ANNS = Share(origin=CHEM, user="ann", kind=Kind.FOLLOWER)
EVES = Share(origin=CHEM, user="eve", kind=Kind.FOLLOWER)


class Wall:
    """A wall clock that a test sets (mutable)."""

    seconds = 1_000_000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.seconds


class SettableLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock a test sets ahead (mutable)."""

    ahead_seconds = 0.0

    def time(self) -> float:
        """Return the time."""
        return super().time() + self.ahead_seconds


def budgets(tmp_path: Path, wall: Wall | None = None, **limits: int) -> Budgets:
    settings = ByteSettings(**limits)
    return Budgets(settings, own=GATE, file=tmp_path / "moved.json", wall_clock=wall or Wall())


def test_more_streams_than_allowed_are_refused_until_one_ends(tmp_path: Path) -> None:
    made = budgets(tmp_path, streams=2)
    first, _ = made.open(CHEM, Moved.SENT), made.open(CHEM, Moved.SENT)
    with pytest.raises(BudgetError, match="gate: chem has 2 streams of files open, as many as it may") as error:
        made.open(CHEM, Moved.SENT)
    assert error.value.is_brief
    made.open(PHYS, Moved.SENT)
    first.close()
    first.close()
    made.open(CHEM, Moved.SENT)
    with pytest.raises(BudgetError):
        made.open(CHEM, Moved.SENT)


def test_streams_of_running_tasks_keep_no_files_from_moving(tmp_path: Path) -> None:
    async def scene() -> None:
        made = budgets(tmp_path, streams=1)
        followed = made.open_running(CHEM, ANNS)
        made.open(CHEM, Moved.SENT)
        with pytest.raises(BudgetError, match="gate: chem has 1 streams of running tasks open, as many as it may"):
            made.open_running(CHEM, ANNS)
        followed.close()
        made.open_running(CHEM, ANNS)

    asyncio.run(scene())


def test_a_stream_that_gives_way_ends_what_waits_in_it_and_counts_no_more(tmp_path: Path) -> None:
    async def scene() -> None:
        made = budgets(tmp_path, streams=2)
        idle, waiting = made.open_running(CHEM, ANNS), made.open_running(CHEM, ANNS)

        async def wait() -> None:
            async with waiting.unless_it_gives_way():
                await asyncio.Event().wait()

        waits = asyncio.create_task(wait())
        await asyncio.sleep(0)
        first = made.open_running(CHEM, EVES)
        with pytest.raises(BudgetError, match="gate: a stream of chem ended, because") as error:
            async with idle.unless_it_gives_way():
                pytest.fail("it gave way before")
        assert error.value.is_brief
        idle.close()
        with pytest.raises(BudgetError):
            made.open_running(CHEM, ANNS)
        first.close()
        made.open_running(CHEM, ANNS)
        made.open_running(CHEM, EVES)
        with pytest.raises(BudgetError):
            await waits
        made.open_running(PHYS, ANNS)

    asyncio.run(scene())


def test_a_timeout_in_a_stream_is_not_taken_for_its_end(tmp_path: Path) -> None:
    async def scene() -> None:
        stream = budgets(tmp_path).open_running(CHEM, ANNS)
        with pytest.raises(TimeoutError, match="of something else"):
            async with stream.unless_it_gives_way():
                raise TimeoutError("of something else")

    asyncio.run(scene())


def test_who_does_not_close_a_stream_that_gave_way_is_cancelled(tmp_path: Path) -> None:
    async def scene() -> None:
        made, has_opened = budgets(tmp_path, streams=2), asyncio.Event()

        async def serve() -> None:
            streams = [made.open_running(CHEM, ANNS) for _ in range(2)]
            has_opened.set()
            try:
                # As a peer that takes nothing.
                await asyncio.Event().wait()
            finally:
                for stream in streams:
                    stream.close()

        serving = asyncio.create_task(serve())
        await has_opened.wait()
        made.open_running(CHEM, EVES)
        loop.ahead_seconds = STALLED_SECONDS
        with pytest.raises(asyncio.CancelledError):
            await serving
        made.open_running(CHEM, ANNS)

    loop = SettableLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(scene())


def test_bytes_of_a_day_are_refused_beyond_the_bound_and_allowed_on_the_next(tmp_path: Path) -> None:
    wall = Wall()
    made = budgets(tmp_path, wall, daily_bytes=1_000)
    stream = made.open(CHEM, Moved.SENT)
    stream.announce(1_000)
    stream.count(600)
    with pytest.raises(BudgetError, match=r"gate: chem may move 1kB in a day, and has moved 0\.6kB") as error:
        made.open(CHEM, Moved.SENT).announce(500)
    assert not error.value.is_brief
    with pytest.raises(BudgetError):
        stream.count(401)
    made.open(PHYS, Moved.SENT).announce(1_000)
    wall.seconds += 86_400
    stream.count(1_000)


def test_bytes_of_a_day_are_known_after_a_restart(tmp_path: Path) -> None:
    stream = budgets(tmp_path, daily_bytes=1_000).open(CHEM, Moved.SENT)
    stream.count(900)
    stream.close()
    with pytest.raises(BudgetError, match=r"has moved 0\.9kB"):
        budgets(tmp_path, daily_bytes=1_000).open(CHEM, Moved.SENT).announce(101)


@pytest.mark.parametrize("content", ["", "[]", '{"chem": 5}', '{"chem": ["x", 1]}', "\0"])
def test_a_damaged_file_of_the_day_begins_a_new_day(tmp_path: Path, content: str) -> None:
    (tmp_path / "moved.json").write_text(content)
    assert budgets(tmp_path, daily_bytes=1_000).open(CHEM, Moved.SENT).count(1_000) == 0


def test_a_rate_is_shared_by_the_streams_of_a_system(tmp_path: Path) -> None:
    made = budgets(tmp_path, rate_bytes=1 << 20)
    one, other = made.open(CHEM, Moved.SENT), made.open(CHEM, Moved.SENT)
    assert 9.9 < one.count(10 << 20) <= 10
    assert 19.8 < other.count(10 << 20) <= 20
    assert made.open(PHYS, Moved.SENT).count(1 << 20) <= 1
    assert (one.piece_bytes, budgets(tmp_path).open(CHEM, Moved.SENT).piece_bytes) == (64 << 10, None)


def test_a_stream_that_is_closed_waits_no_longer(tmp_path: Path) -> None:
    stream = budgets(tmp_path, rate_bytes=1 << 20).open(CHEM, Moved.SENT)
    waiting = threading.Thread(target=stream.wait_for, args=(1 << 50,), daemon=True)
    waiting.start()
    stream.close()
    waiting.join(PATIENCE_SECONDS)
    assert not waiting.is_alive()
