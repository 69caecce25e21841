"""Which notification is given when: some at once, those of each user one after the other, none twice in a process."""

import asyncio
import os
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from messiahs.channel.jobs import Jobs
from messiahs.core.interface.notifications import Notification, NotificationRow, Notified
from messiahs.core.model.ids import TaskId
from messiahs.core.model.instants import DAY, SECOND, Instant, after
from messiahs.core.model.webhooks import is_webhook
from messiahs.daemon.audit.entries import Entry, Kind, of_user
from messiahs.daemon.audit.noting import Noted
from messiahs.daemon.notifications.commands import Outcome, run_command
from messiahs.daemon.notifications.webhooks import Webhooks
from messiahs.daemon.storage.documents import Document, time_document

AT_ONCE: Final = 16
"""Notifications of all users that are given at once."""
OF_ONE_USER: Final = 4
TRIES: Final = 10
_FIRST_PAUSE_SECONDS: Final = 10.0
"""The pause after the first try of a webhook; each further one is twice as long."""
_GIVEN_UP_NS: Final = DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTry:
    """The last try of a webhook, which is tried again at `next_at`, or (None) as soon as it is its turn."""

    number: int
    problem: str
    next_at: Instant | None


def failed_try_document(failed: FailedTry) -> Document:
    """Describe why a user is not notified yet, and when the next try is (null: as soon as it is its turn)."""
    return {"problem": failed.problem, "retry": {"tries": failed.number, "next_at": time_document(failed.next_at)}}


class Notifications:
    """The notifications of a module that are due (mutable); each is a stored row, so their number has no other limit.

    Belongs to the event loop.
    """

    def __init__(
        self,
        hosts: tuple[str, ...],
        *,
        now: Callable[[], Instant],
        on_event: Callable[[Notified], None],
        on_noted: Callable[[Noted], None],
    ) -> None:
        self._webhooks, self._now = Webhooks(hosts), now
        self._on_event, self._on_noted = on_event, on_noted
        self._waiting: dict[int, deque[tuple[NotificationRow, int]]] = {}
        self._running: Counter[int] = Counter()
        self._failed: dict[tuple[TaskId, Instant], FailedTry] = {}
        self._jobs = Jobs()

    def why_not(self, notification: Notification) -> str:
        """Return why a user cannot be notified so; empty if that is possible."""
        if is_webhook(notification.text):
            return self._webhooks.why_not(notification.text)
        own = os.geteuid()
        if own not in (0, notification.uid):
            return (
                "--notify: this module does not run as root, so it can run no command as another account than its own; "
                "a webhook (https://…) needs no account"
            )
        return ""

    def give(self, notice: NotificationRow) -> None:
        """Notify a user, after those of the same user that are due already."""
        self._line_up(notice, 1)

    def failed_try(self, notice: NotificationRow) -> FailedTry | None:
        """Return how the last try of a notification failed that is still due; None before the first one has."""
        return self._failed.get(_key_of(notice))

    async def stop(self) -> None:
        """End what runs; it begins again with the next daemon."""
        self._waiting.clear()
        await self._jobs.stop()
        await self._webhooks.close()

    def _line_up(self, notice: NotificationRow, attempt: int) -> None:
        if failed := self.failed_try(notice):
            self._failed[_key_of(notice)] = replace(failed, next_at=None)
        self._waiting.setdefault(notice.notification.uid, deque()).append((notice, attempt))
        self._begin()

    def _begin(self) -> None:
        while self._running.total() < AT_ONCE:
            uid = next((uid for uid in self._waiting if self._running[uid] < OF_ONE_USER), None)
            if uid is None:
                return
            # The next turn is another user's.
            waiting = self._waiting.pop(uid)
            notice, attempt = waiting.popleft()
            if waiting:
                self._waiting[uid] = waiting
            self._running[uid] += 1
            self._jobs.begin(self._give(notice, attempt))

    async def _give(self, notice: NotificationRow, attempt: int) -> None:
        try:
            outcome = await self._tried(notice)
        finally:
            self._running[notice.notification.uid] -= 1
        if outcome.may_help_again and attempt < TRIES:
            pause = _FIRST_PAUSE_SECONDS * 2 ** (attempt - 1)
            next_at = after(self._now(), int(pause * SECOND))
            self._failed[_key_of(notice)] = FailedTry(number=attempt, problem=outcome.problem, next_at=next_at)
            asyncio.get_running_loop().call_later(pause, self._line_up, notice, attempt + 1)
        else:
            self._end(notice, outcome)
        self._begin()

    async def _tried(self, notice: NotificationRow) -> Outcome:
        if after(notice.ended_at, _GIVEN_UP_NS) < self._now():
            return Outcome(problem="it was given up a day after the end")
        if problem := self.why_not(notice.notification):
            return Outcome(problem=problem)
        if is_webhook(notice.notification.text):
            return await self._webhooks.post(notice)
        return await run_command(notice)

    def _end(self, notice: NotificationRow, outcome: Outcome) -> None:
        self._failed.pop(_key_of(notice), None)
        self._on_event(Notified(id=notice.id, ended_at=notice.ended_at, problem=outcome.problem, output=outcome.output))
        entry = Entry(Kind.TASK, "notified", of_user(notice.user), None, "", notice.id.system, notice.user)
        self._on_noted(Noted(entry._replace(why=outcome.problem), str(notice.id)))


def _key_of(notice: NotificationRow) -> tuple[TaskId, Instant]:
    """Return the end of which a user is notified: a submission that is retried ends again."""
    return notice.id, notice.ended_at
