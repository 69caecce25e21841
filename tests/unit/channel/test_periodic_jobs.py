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


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), StoreError("no room"), ValueError("a bug")])
def test_a_job_continues_and_its_failures_are_logged_once(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    results = iter([error, error, None, error, error, None])
    repeated(results)
    assert next(results, "all were used") == "all were used"
    assert [record.getMessage() for record in caplog.records] == [
        f"nothing was done: {error}; the next attempt follows"
    ] * 2
    assert [bool(record.exc_info) for record in caplog.records] == [isinstance(error, ValueError)] * 2
