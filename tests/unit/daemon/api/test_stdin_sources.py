"""Standard input at its origin: what is kept, what is sent again, and which answers of an executor are believed."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from messiahs.core.model.ids import Epoch, SystemId, TaskId
from messiahs.daemon.api import stdin_sources
from messiahs.daemon.api.stdin_sources import WINDOW_BYTES, InputState, Source
from messiahs.errors import ChannelError, ProtocolError, RefusedError
from messiahs.wire.codec import FEED_PIECE_BYTES, FeedAnswer, FeedPiece
from tests.waiting import until

TASK = TaskId(SystemId("left"), Epoch(1), 1)


class Executor:
    """A feed to an attempt, whose answers the test gives (mutable)."""

    def __init__(self, begin: int) -> None:
        self.pieces: list[FeedPiece] = []
        self.answers: asyncio.Queue[FeedAnswer | ChannelError | None] = asyncio.Queue()
        self.answers.put_nowait(FeedAnswer(offset_bytes=begin))
        self.is_closed = False

    async def send(self, piece: FeedPiece) -> None:
        """Note a piece."""
        self.pieces.append(piece)

    async def answer(self) -> FeedAnswer | None:
        """Return the next answer, or raise it."""
        answer = await self.answers.get()
        if isinstance(answer, ChannelError):
            raise answer
        return answer

    def close(self) -> None:
        """Note the end."""
        self.is_closed = True

    async def open(self) -> "Executor":
        """Return itself."""
        return self


def play(scene: Callable[[Source], Awaitable[None]]) -> None:
    """Play a scene with the source of an attempt that has begun."""

    async def run() -> None:
        source = Source(TASK)
        source.begin(1)
        await scene(source)

    asyncio.run(run())


async def brought(
    source: Source, content: bytes, *, at: int, is_end: bool = False, attempt: int = 1, seconds: float = 60
) -> InputState:
    return await source.accept(content, attempt=attempt, offset_bytes=at, is_end=is_end, seconds=seconds)


def test_what_an_attempt_has_not_taken_is_sent_again_on_the_next_way() -> None:
    async def scene(source: Source) -> None:
        first = Executor(0)
        feeding = asyncio.ensure_future(source.feed(first.open))
        assert await brought(source, b"one two ", at=0) == InputState(1, 0, 8)
        await until(lambda: first.pieces)
        first.answers.put_nowait(ChannelError("cut"))
        await feeding
        assert first.is_closed
        assert await brought(source, b"three", at=8) == InputState(1, 0, 13)
        second = Executor(4)
        feeding = asyncio.ensure_future(source.feed(second.open))
        await until(lambda: second.pieces)
        assert second.pieces == [FeedPiece(content=b"two three")]
        assert source.state == InputState(1, 4, 13)
        second.answers.put_nowait(FeedAnswer(offset_bytes=13, is_closed=True))
        await feeding
        assert source.state == InputState(1, 13, 13, is_closed=True)

    play(scene)


def test_a_piece_for_another_offset_or_attempt_is_not_taken() -> None:
    async def scene(source: Source) -> None:
        executor = Executor(5)
        feeding = asyncio.ensure_future(source.feed(executor.open))
        assert await brought(source, b"", at=0, attempt=0) == InputState(1, 5, 5)
        for at, attempt in ((0, 1), (6, 1), (5, 2), (5, 0)):
            assert await brought(source, b"wrong", at=at, attempt=attempt) == InputState(1, 5, 5)
        assert await brought(source, b"right", at=5) == InputState(1, 5, 10)
        await until(lambda: executor.pieces)
        assert executor.pieces == [FeedPiece(content=b"right")]
        feeding.cancel()

    play(scene)


def test_at_most_a_window_waits() -> None:
    async def scene(source: Source) -> None:
        executor = Executor(0)
        feeding = asyncio.ensure_future(source.feed(executor.open))
        full = InputState(1, 0, WINDOW_BYTES)
        assert await brought(source, bytes(WINDOW_BYTES), at=0) == full
        assert await brought(source, b"more", at=WINDOW_BYTES, seconds=0.1) == full
        executor.answers.put_nowait(FeedAnswer(offset_bytes=4))
        assert await brought(source, b"more", at=WINDOW_BYTES) == InputState(1, 4, WINDOW_BYTES + 4)
        feeding.cancel()

    play(scene)


def test_the_end_is_sent_once_and_waited_for() -> None:
    async def scene(source: Source) -> None:
        executor = Executor(0)
        feeding = asyncio.ensure_future(source.feed(executor.open))
        ending = asyncio.ensure_future(source.accept(b"all", attempt=1, offset_bytes=0, is_end=True, seconds=60))
        await until(lambda: executor.pieces)
        executor.answers.put_nowait(FeedAnswer(offset_bytes=3, is_closed=True))
        assert await ending == InputState(1, 3, 3, is_closed=True)
        await feeding
        assert executor.pieces == [FeedPiece(content=b"all", is_end=True)]

    play(scene)


def test_another_attempt_begins_with_the_first_byte() -> None:
    async def scene(source: Source) -> None:
        executor = Executor(0)
        feeding = asyncio.ensure_future(source.feed(executor.open))
        assert await brought(source, b"all", at=0) == InputState(1, 0, 3)
        feeding.cancel()
        source.begin(2)
        assert source.state == InputState(2, None, None)
        assert await brought(source, b"all", at=3, seconds=0.1) == InputState(2, None, None)

    play(scene)


def test_an_executor_that_took_what_waits_here_to_be_sent_is_not_believed() -> None:
    class Slow(Executor):
        """One that lets the second piece wait."""

        async def send(self, piece: FeedPiece) -> None:
            """Note a piece, and let the next one wait."""
            await super().send(piece)
            await asyncio.Event().wait()

    async def scene(source: Source) -> None:
        executor = Slow(0)
        feeding = asyncio.ensure_future(source.feed(executor.open))
        received = 2 * FEED_PIECE_BYTES
        assert await brought(source, bytes(received), at=0) == InputState(1, 0, received)
        await until(lambda: executor.pieces)
        executor.answers.put_nowait(FeedAnswer(offset_bytes=received))
        await feeding
        text = f"its executor says that it took {received} bytes, after 0 of {FEED_PIECE_BYTES} that were sent"
        assert source.state == InputState(1, 0, received, problem=text)

    play(scene)


def test_what_an_earlier_way_sent_may_be_taken_late() -> None:
    async def scene(source: Source) -> None:
        first, second = Executor(0), Executor(4)
        feeding = asyncio.ensure_future(source.feed(first.open))
        assert await brought(source, b"late", at=0) == InputState(1, 0, 4)
        await until(lambda: first.pieces)
        first.answers.put_nowait(ChannelError("cut"))
        await feeding
        feeding = asyncio.ensure_future(source.feed(second.open))
        await until(lambda: source.state.taken_bytes == len(b"late"))
        assert source.state == InputState(1, 4, 4)
        feeding.cancel()

    play(scene)


@pytest.mark.parametrize("said", [3, 9])
def test_an_executor_that_took_what_was_not_sent_or_takes_it_back_is_not_believed(said: int) -> None:
    async def scene(source: Source) -> None:
        executor = Executor(4)
        feeding = asyncio.ensure_future(source.feed(executor.open))
        assert await brought(source, b"four", at=0, attempt=0) == InputState(1, 4, 4)
        assert await brought(source, b"four", at=4) == InputState(1, 4, 8)
        executor.answers.put_nowait(FeedAnswer(offset_bytes=said))
        await feeding
        assert f"its executor says that it took {said} bytes, after 4 of 8" in source.state.problem

    play(scene)


def test_an_executor_of_an_older_release_is_a_problem_that_the_user_sees() -> None:
    async def scene(source: Source) -> None:
        executor = Executor(0)
        executor.answers.get_nowait()
        executor.answers.put_nowait(ProtocolError("its release is too old for this"))
        await source.feed(executor.open)
        assert (await brought(source, b"", at=0, attempt=0)).problem == "its release is too old for this"

    play(scene)


def test_a_task_whose_run_is_silent_for_ten_minutes_is_abandoned_unless_it_has_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene(source: Source) -> None:
        assert not source.is_abandoned()
        monkeypatch.setattr(stdin_sources, "_ABANDONED_SECONDS", 0.0)
        assert source.is_abandoned()
        executor = Executor(0)
        feeding = asyncio.ensure_future(source.feed(executor.open))
        await brought(source, b"", at=0, attempt=0)
        await brought(source, b"all", at=0, is_end=True, seconds=0.1)
        assert not source.is_abandoned()
        feeding.cancel()

    play(scene)


def test_a_task_with_a_terminal_is_hung_up_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        monkeypatch.setattr(stdin_sources, "_HUNG_UP_SECONDS", 0.0)
        assert not Source(TASK).is_abandoned()
        assert Source(TASK, has_terminal=True).is_abandoned()

    asyncio.run(scene())


def test_nothing_is_typed_for_an_attempt_that_knows_no_terminal() -> None:
    async def scene() -> None:
        source = Source(TASK, has_terminal=True)
        source.begin(1)
        executor = Executor(0)
        feeding = asyncio.ensure_future(source.feed(executor.open))
        state = await brought(source, b"", at=0, attempt=0)
        await feeding
        assert "of an earlier release, which has no terminals for tasks" in state.problem
        assert executor.pieces == []
        other = Source(TASK, has_terminal=True)
        other.begin(1)
        executor = Executor(0)
        executor.answers = asyncio.Queue()
        executor.answers.put_nowait(FeedAnswer(has_terminal=True))
        feeding = asyncio.ensure_future(other.feed(executor.open))
        assert await brought(other, b"keys", at=0) == InputState(1, 0, 4)
        await until(lambda: executor.pieces)
        feeding.cancel()

    asyncio.run(scene())


def test_a_refusal_on_the_way_is_shown_until_bytes_are_taken_again() -> None:
    async def scene(source: Source) -> None:
        refused = Executor(0)
        refused.answers.put_nowait(RefusedError("uni: phys may move 5 bytes in a day"))
        await source.feed(refused.open)
        assert (await brought(source, b"all", at=0, seconds=0.1)).refusal == "uni: phys may move 5 bytes in a day"
        executor = Executor(0)
        feeding = asyncio.ensure_future(source.feed(executor.open))
        executor.answers.put_nowait(FeedAnswer(offset_bytes=3))
        await until(lambda: source.state == InputState(1, 3, 3))
        feeding.cancel()

    play(scene)


def test_a_caller_that_waits_learns_soon_that_a_module_on_the_way_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdin_sources, "_REFUSED_SECONDS", 0.01)

    async def scene(source: Source) -> None:
        begun = Executor(0)
        feeding = asyncio.ensure_future(source.feed(begun.open))
        waiting = asyncio.ensure_future(brought(source, b"all", at=0, is_end=True, seconds=1e9))
        await until(lambda: bool(begun.pieces))
        begun.answers.put_nowait(RefusedError("uni: phys may move 5 bytes in a day"))
        await feeding
        assert (await waiting).refusal == "uni: phys may move 5 bytes in a day"
        # The next call waits a moment, too, and not as long as it may.
        again = await brought(source, b"", at=3, is_end=True, seconds=1e9)
        assert again.refusal == "uni: phys may move 5 bytes in a day"

    play(scene)
