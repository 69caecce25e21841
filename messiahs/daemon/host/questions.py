"""Requests of local users to the core: each is answered when what it changed is stored."""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from messiahs.core.interface.actions import Answer
from messiahs.core.interface.events import (
    AnswerTo,
    CancelRequested,
    CleanRequested,
    DrainRequested,
    HandRequested,
    LeaveRequested,
    LendRequested,
    MemberAdded,
    MemberRemoved,
    PrimaryParentChanged,
    RetryRequested,
    RevokeRequested,
    SettingsApplied,
    ShutOffRequested,
    Submitted,
    WorkflowSubmitted,
)
from messiahs.core.origin.submission import FULL
from messiahs.daemon.audit.entries import Caller
from messiahs.daemon.host.driver import Driver

_Membership = MemberAdded | MemberRemoved | LeaveRequested | DrainRequested | SettingsApplied | PrimaryParentChanged
_OfTasks = (
    Submitted | WorkflowSubmitted | CancelRequested | CleanRequested | RetryRequested | HandRequested | RevokeRequested
)
Question = _OfTasks | ShutOffRequested | LendRequested | _Membership
_ALSO_WITHOUT_ROOM: Final = Submitted | WorkflowSubmitted | CancelRequested | ShutOffRequested | LendRequested

_ANSWER_SECONDS: Final = 20
_FULL: Final = "no_space: the disk of this module is full; nothing was changed: free space, and repeat it"
_UNSTORED: Final = (
    "no_space: it is not stored yet, and need not be repeated: it takes effect when there is space on the disk of this "
    "module, unless the module ends before: free space"
)
_NO_FILES: Final = (
    "no_files: this module has too many files open to store anything; nothing was changed: try again later"
)
_UNSTORED_NO_FILES: Final = (
    "no_files: it is not stored yet, and need not be repeated: it takes effect when this module, which has too many "
    "files open, can store again, unless it ends before"
)


class Questions:
    """Every request that waits has a future under its own number (not in the papers)."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._answers: dict[AnswerTo, asyncio.Future[Answer]] = {}
        self._numbers = itertools.count(1)

    async def ask(self, make: Callable[[AnswerTo], Question], by: Caller | None = None) -> Answer:
        """Send a request to the core and wait for the answer, which follows when everything is stored.

        While nothing can be stored, the problem of the answer begins with `no_space`, or with `no_files` if no more
        files can be opened. A request to end or to shut off something is passed on nevertheless; the core itself
        refuses tasks that are submitted then.
        """
        answer_to = AnswerTo(next(self._numbers))
        question = make(answer_to)
        if self._driver.has_failed and not isinstance(question, _ALSO_WITHOUT_ROOM):
            return Answer(answer_to=answer_to, problem=self._why(_FULL, _NO_FILES))
        answered = self._answers[answer_to] = asyncio.get_running_loop().create_future()
        self._driver.ask(question, by)
        try:
            answer = await self._awaited(answered)
            return answer or Answer(answer_to=answer_to, problem=self._why(_UNSTORED, _UNSTORED_NO_FILES))
        finally:
            del self._answers[answer_to]

    def settle(self, answer: Answer) -> None:
        """Pass on an answer of the core; one that is no longer awaited is dropped."""
        answered = self._answers.get(answer.answer_to)
        if answered is not None and not answered.done():
            # The core knows only that nothing can be stored.
            problem = self._why(FULL, _NO_FILES) if answer.problem == FULL else answer.problem
            answered.set_result(replace(answer, problem=problem))

    def _why(self, without_space: str, without_files: str) -> str:
        return without_files if self._driver.lacks_files else without_space

    async def _awaited(self, answered: asyncio.Future[Answer]) -> Answer | None:
        """Return the answer; None if it cannot be stored, which is looked at every second, or takes too long."""
        for _ in range(_ANSWER_SECONDS):
            await asyncio.wait([answered], timeout=1)
            if answered.done():
                return answered.result()
            if self._driver.has_failed:
                break
        return None
