"""Jobs that a module repeats outlive their failures."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import pytest

from messiahs.channel.periodic_jobs import repeat
from messiahs.errors import StoreError


def repeated(results: Iterator[Exception | None]) -> None:
    async def job() -> None:
        result = next(results, asyncio.CancelledError())
        if result is not None:
            raise result

    async def main() -> None:
        with suppress(asyncio.CancelledError):
            await repeat(job, period_seconds=0, failure="nothing was done")

    asyncio.run(main())


def test_retries_come_sooner_than_the_period_and_their_waits_double_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    results = iter([None, *[OSError("no")] * 4, None, OSError("no"), None])
    pauses: list[float] = []

    async def job() -> None:
        result = next(results, asyncio.CancelledError())
        if result is not None:
            raise result

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async def main() -> None:
        monkeypatch.setattr(asyncio, "sleep", pause)
        with suppress(asyncio.CancelledError):
            await repeat(job, period_seconds=60, failure="nothing was done", retries_seconds=(20, 100))

    asyncio.run(main())
    assert pauses == [60, 20, 40, 80, 100, 60, 20, 60]


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), StoreError("no room"), ValueError("a bug")])
def test_a_job_continues_and_its_failures_are_logged_once(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    results = iter([error, error, None, error, error, None])
    repeated(results)
    assert next(results, "all were used") == "all were used"
    assert [record.getMessage() for record in caplog.records] == [
        f"nothing was done: {error}; the next attempt follows"
    ] * 2
    assert [bool(record.exc_info) for record in caplog.records] == [isinstance(error, ValueError)] * 2
