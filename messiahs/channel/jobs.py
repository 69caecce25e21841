"""Jobs that run beside those who have begun them."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

Result = TypeVar("Result")


class Jobs:
    """Jobs that run until they end or are stopped (mutable). Belongs to the event loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    def begin(self, job: Coroutine[None, None, Result]) -> asyncio.Task[Result]:
        """Begin a job; the loop alone would not keep it alive."""
        task = asyncio.get_running_loop().create_task(job)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def stop(self) -> None:
        """Cancel all jobs, and wait until they have ended; their failures are dropped."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
