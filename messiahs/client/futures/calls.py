"""Calls on their way: which wait, which are in tasks, and which of these nobody wants any more."""

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from messiahs.client.futures.batches import Call, Waiting
from messiahs.client.submission import Submission
from messiahs.client.task_options import CheckedOptions

_IDLE_GROUPS: Final = 64
_EARLY: Final = 65_536
"""Endings that are remembered because their tasks may not be registered yet."""


@dataclass(slots=True, eq=False)
class Uploaded:
    """What all tasks with the same options have in common, once its files were uploaded (mutable)."""

    submission: Submission | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Group:
    """The calls of one function with one set of options (mutable): they take about as long as each other."""

    key: tuple[str, Hashable]
    """The options, and the function."""
    options: CheckedOptions
    uploaded: Uploaded
    waiting: Waiting = field(default_factory=Waiting)


@dataclass(slots=True, kw_only=True, eq=False)
class Batch:
    """The calls of a task that was submitted (mutable: those that have their results leave it)."""

    task: str
    array: str
    group: Group
    calls: deque[Call]
    returned_ns: int = 0
    """How long its calls took whose results were read."""

    @property
    def is_unneeded(self) -> bool:
        """Whether nobody wants any of its results."""
        return all(call.future.cancelled() for call in self.calls)


class Calls:
    """All calls of an executor (mutable, shared by its threads); hold `changed` while you read or change anything."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.groups: dict[tuple[str, Hashable], Group] = {}
        """In the order in which they are served next."""
        self.sending: list[list[Call]] = []
        """The calls of tasks that are being submitted."""
        self.under_way: dict[str, Batch] = {}
        self.unneeded: deque[str] = deque()
        """Tasks all of whose calls were cancelled, and whose modules do not know that yet."""
        self.is_closed = False
        self.has_to_drain = False
        """Whether the calls of tasks that have not begun are to be cancelled."""
        self.gaps = 0
        """How often endings may have been missed."""
        self._open = 0
        self._batch_of: dict[Future[Any], Batch] = {}
        self._early: dict[str, None] = {}

    @property
    def are_over(self) -> bool:
        """Whether no call is left, and none can follow."""
        return self.is_closed and not self._open

    def add(self, chunk: Sequence[Call], options: CheckedOptions, *, function: Hashable) -> None:
        """Let calls of a function wait for a task in which they are together; a `RuntimeError` once closed."""
        for call in chunk:
            call.future.add_done_callback(self._on_done)
        with self.changed:
            if self.is_closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._open += len(chunk)
            self.group_of(options, function=function).waiting.chunks.append(chunk)
            self.changed.notify_all()

    def group_of(self, options: CheckedOptions, *, function: Hashable) -> Group:
        """Return the group of calls; groups without calls are forgotten when there are many."""
        text = repr(sorted(options.items()))
        if (text, function) in self.groups:
            return self.groups[text, function]
        if len(self.groups) >= _IDLE_GROUPS:
            self.groups = {key: each for key, each in self.groups.items() if each.waiting.is_busy}
        uploaded = next((each.uploaded for each in self.groups.values() if each.key[0] == text), Uploaded())
        made = Group(key=(text, function), options=options, uploaded=uploaded)
        return self.groups.setdefault(made.key, made)

    def register(self, sent: Sequence[Batch], *, gaps: int) -> list[Batch]:
        """Note that tasks were submitted, which began when there had been `gaps`; return those that may have ended."""
        with self.changed:
            self.sending = []
            for batch in sent:
                self.under_way[batch.task] = batch
                self._batch_of |= {call.future: batch for call in batch.calls}
                if batch.is_unneeded:
                    self.unneeded.append(batch.task)
            return [batch for batch in sent if self.gaps != gaps or {batch.task, batch.array} & self._early.keys()]

    def ended_among(self, ids: Iterable[str], *, has_gap: bool) -> list[Batch]:
        """Return the tasks that have ended, or may have, after the endings of `ids`."""
        known = set(ids)
        with self.changed:
            self.gaps += has_gap
            self._early |= dict.fromkeys(known)
            for name in list(self._early)[: max(0, len(self._early) - _EARLY)]:
                del self._early[name]
            if has_gap:
                return list(self.under_way.values())
            return [each for each in self.under_way.values() if each.task in known or each.array in known]

    def give_back(self, group: Group) -> list[Call]:
        """Return the calls that are being submitted, and are no more since their tasks cannot be."""
        with self.changed:
            group.waiting.under_way -= len(self.sending)
            sending, self.sending = self.sending, []
            return [call for calls in sending for call in calls]

    def remove(self, batch: Batch) -> bool:
        """Take a task from those that are under way; False if another thread has done so.

        For its group it is under way until `settle`, since its results say how long calls take.
        """
        with self.changed:
            if self.under_way.pop(batch.task, None) is None:
                return False
            for call in batch.calls:
                self._batch_of.pop(call.future, None)
            self.changed.notify_all()
            return True

    def settle(self, batch: Batch) -> None:
        """Note that the results of a task that was removed have been taken."""
        with self.changed:
            batch.group.waiting.under_way -= 1
            self.changed.notify_all()

    def next_unneeded(self) -> str | None:
        """Take a task that nobody needs, or the whole array if nobody needs the rest of it; None if there is none."""
        with self.changed:
            if not self.unneeded:
                return None
            task = self.unneeded.popleft()
            batch = self.under_way.get(task)
            if batch is None:
                return task
            others = [each for each in self.under_way.values() if each.array == batch.array and each is not batch]
            if not others or not all(each.is_unneeded for each in others):
                return task
            taken = {each.task for each in others}
            self.unneeded = deque(each for each in self.unneeded if each not in taken)
            return batch.array

    def unsent(self) -> list[Call]:
        """Return the calls that are in no task yet, or in one that is being submitted."""
        with self.changed:
            waiting = [call for each in self.groups.values() for chunk in each.waiting.chunks for call in chunk]
            return [*(call for calls in self.sending for call in calls), *waiting]

    def waiting_and_sent(self) -> list[Call]:
        """Return all calls that are not done."""
        with self.changed:
            return [*self.unsent(), *(call for batch in self.under_way.values() for call in batch.calls)]

    def abandon(self, batch: Batch, error: BaseException) -> None:
        """Let the calls of a task that may run on fail, and cancel it, unless another thread has removed it."""
        if not self.remove(batch):
            return
        with self.changed:
            self.unneeded.append(batch.task)
            self.changed.notify_all()
        for call in batch.calls:
            self.fail(call, error)
        self.settle(batch)

    def give(self, call: Call, value: object) -> None:
        """Let a call return a value, unless it was cancelled; callbacks of its future have run when this returns."""
        self._end(partial(call.future.set_result, value))

    def fail(self, call: Call, error: BaseException) -> None:
        """Let a call end with an error, as `give` does with a value."""
        self._end(partial(call.future.set_exception, error))

    def _end(self, end: Callable[[], None]) -> None:
        try:
            end()
        except InvalidStateError:
            # It was cancelled, and counted then.
            return
        with self.changed:
            self._open -= 1
            self.changed.notify_all()

    def _on_done(self, future: Future[Any]) -> None:
        if not future.cancelled():
            return
        # Tells those who wait for several futures.
        future.set_running_or_notify_cancel()
        with self.changed:
            self._open -= 1
            batch = self._batch_of.pop(future, None)
            if batch is not None and batch.task in self.under_way and batch.is_unneeded:
                self.unneeded.append(batch.task)
            self.changed.notify_all()
