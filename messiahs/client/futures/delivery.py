"""Takes the results of tasks that have ended, and gives each call its own."""

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime
from queue import SimpleQueue
from typing import Final, cast

from messiahs.client.completion import EndingsFeed
from messiahs.client.futures.batches import Call
from messiahs.client.futures.calls import Batch, Calls
from messiahs.client.futures.results import DamagedResultsError, RemoteTraceback, Results, Returned
from messiahs.client.futures.runner import RESULTS
from messiahs.client.module import ModuleClient
from messiahs.client.status import TaskStatus, is_final
from messiahs.client.tasks import Client
from messiahs.client.words import ending_text, refusals_in
from messiahs.core.interface.causes import Cause
from messiahs.core.model.instants import SECOND
from messiahs.core.model.texts import printable
from messiahs.errors import MessiahsError, PythonMismatchError, TaskFailedError

_COLLECTORS: Final = 4
_PAUSE_SECONDS: Final = 1.0
_ENDED_BY_CALLS: Final = frozenset({"finished", "aborted"})
"""States in which a call may have ended its task."""


class Delivery:
    """Follows the endings at a module, and collects results in a few threads."""

    def __init__(self, calls: Calls, client: Client) -> None:
        self._calls, self._client = calls, client
        self._ended: SimpleQueue[Batch | None] = SimpleQueue()
        self.collectors = [
            threading.Thread(target=self._collect_all, daemon=True, name="messiahs-results") for _ in range(_COLLECTORS)
        ]

    def run(self) -> None:
        """Deliver results, while `collectors` run, until all calls are over.

        An error that lasts is that of every call under way.
        """
        while not self._is_over():
            try:
                with self._client.at() as module, closing(EndingsFeed(module)) as feed:
                    while not self._is_over():
                        ids, has_gap = feed.next()
                        self.check(self._calls.ended_among(ids, has_gap=has_gap))
            except Exception as error:  # noqa: BLE001 - whoever asks for the results gets it
                with self._calls.changed:
                    batches = list(self._calls.under_way.values())
                for batch in batches:
                    self._calls.abandon(batch, error)
                time.sleep(_PAUSE_SECONDS)
        for _ in self.collectors:
            self._ended.put(None)
        for thread in self.collectors:
            thread.join()
        self._client.close()

    def check(self, batches: Sequence[Batch]) -> None:
        """Collect the results of tasks, as far as these have ended."""
        for batch in batches:
            self._ended.put(batch)

    def _is_over(self) -> bool:
        with self._calls.changed:
            return self._calls.are_over

    def _collect_all(self) -> None:
        while (batch := self._ended.get()) is not None:
            self._collect(batch)
            # No reference to results is left while nothing happens.
            del batch

    def _collect(self, batch: Batch) -> None:
        """Deliver the results of a task if it has ended."""
        is_ours = False
        try:
            with self._client.at(batch.task) as module:
                (document,) = module.tasks(batch.task)["tasks"] or ({},)
                if document and not is_final(document):
                    return
                is_ours = self._calls.remove(batch)
                if not is_ours:
                    return
                self._deliver(batch, module, cast("TaskStatus", document))
        except Exception as error:  # noqa: BLE001 - whoever asks for the results gets it
            if not is_ours:
                self._calls.abandon(batch, error)
                return
            for call in batch.calls:
                self._calls.fail(call, error)
        finally:
            if is_ours:
                self._calls.settle(batch)

    def _deliver(self, batch: Batch, module: ModuleClient, document: TaskStatus) -> None:
        """Give each call its result; those without one run again, except the one at which the task ended.

        Where the results are damaged it is not known by which call, as where there are none: the calls that are left
        run again alone.
        """
        count, skipped = len(batch.calls), deque[Call]()
        damage: DamagedResultsError | None = None
        try:
            with _results(module, batch.task, calls=count) as results:
                while batch.calls and self._deliver_next(batch, results, skipped, document):
                    pass
        except DamagedResultsError as found:
            # A task that was ended may have been about to write.
            damage = found if document.get("state") == "finished" else None
        finally:
            position = len(skipped)
            batch.calls.extendleft(reversed(skipped))
        if batch.is_unneeded:
            return
        error = _failure(document) if damage is None else _damage(document, damage)
        is_known = count == 1 or (len(batch.calls) < count and damage is None)
        failed, again = list(batch.calls), list[Call]()
        if document.get("state") in _ENDED_BY_CALLS and not isinstance(error, PythonMismatchError):
            failed, again = [], failed
            if is_known:
                failed = again[position : position + 1]
                del again[position : position + 1]
        self._run_again(batch, again, are_alone=not is_known)
        for call in failed:
            self._calls.fail(call, error)

    def _run_again(self, batch: Batch, calls: Sequence[Call], *, are_alone: bool) -> None:
        again = [replace(call, is_alone=are_alone) for call in calls if not call.future.cancelled()]
        with self._calls.changed:
            waiting = self._calls.groups.setdefault(batch.group.key, batch.group).waiting
            waiting.chunks.extendleft((call,) for call in reversed(again))
            self._calls.changed.notify_all()

    def _deliver_next(
        self, batch: Batch, results: Iterator[Returned | None], skipped: deque[Call], document: TaskStatus
    ) -> bool:
        """Give the first call of a batch its result, and keep no reference to either; False if there is no more.

        A call whose result was lost is added to `skipped`.
        """
        try:
            result = next(results)
        except StopIteration:
            return False
        call = batch.calls.popleft()
        if result is None:
            skipped.append(call)
            return True
        batch.returned_ns += result.took_ns
        ran_ns = _ran_ns(document)
        with self._calls.changed:
            batch.group.waiting.note_result(result.took_ns)
            if ran_ns is not None:
                # Without results that are still to be read it is too long: those correct it.
                batch.group.waiting.note_start(ran_ns - batch.returned_ns)
        if result.error is not None:
            _note_missing(result.error, document)
            self._calls.fail(call, result.error)
        else:
            self._calls.give(call, result.value)
        return True


def _failure(document: TaskStatus) -> MessiahsError:
    if not document:
        return TaskFailedError("the module does not know the task any more")
    text = printable(ending_text(document))
    if document.get("cause") == Cause.NOT_FOUND:
        return PythonMismatchError(
            f"{text}: this Python is not at {printable(document['executed_on'])}; choose one with `python`"
        )
    if document["state"] == "finished":
        text = f"{document['id']} exited with {document['exit_code']} before the call returned"
    elif document.get("signal"):
        text = f"{text}: ended by signal {document['signal']}"
    return TaskFailedError(printable("; ".join((text, *refusals_in(document.get("reasons") or [])))))


def _ran_ns(document: TaskStatus) -> int | None:
    """Return how long the last attempt of a task ran; None if its module does not say that."""
    started_at, ended_at = document.get("started_at"), document.get("ended_at")
    if started_at is None or ended_at is None:
        return None
    ran = datetime.fromisoformat(ended_at) - datetime.fromisoformat(started_at)
    return round((ran.total_seconds() - document.get("suspended_s", 0)) * SECOND)


def _damage(document: TaskStatus, damage: DamagedResultsError) -> TaskFailedError:
    return TaskFailedError(
        f"{document['id']}: the call, or its machine {printable(document['executed_on'])}, has damaged the file "
        f"`{RESULTS}`: {damage}"
    )


def _note_missing(error: BaseException, document: TaskStatus) -> None:
    """Add to the error of an import at a machine how it gets what it lacks."""
    if isinstance(error, ModuleNotFoundError) and isinstance(error.__cause__, RemoteTraceback):
        error.add_note(
            f"The Python at {printable(document['executed_on'])} does not have it: bring it with `inputs`, or name the "
            'folder where it is installed there with env={"PYTHONPATH": …}.'
        )


@contextmanager
def _results(module: ModuleClient, task: str, *, calls: int) -> Iterator[Iterator[Returned | None]]:
    """Open the results that a task left behind, which may be none; they are read from the module as they are taken."""
    listed = next((one for one in module.outputs(task) if one["name"] == RESULTS), {"folder": True})
    if listed.get("folder") or listed.get("link"):
        yield iter(())
        return
    size_bytes = int(listed["size"])
    with closing(module.read_output(task, RESULTS, size_bytes=size_bytes)) as pieces:
        yield Results(pieces, size_bytes=size_bytes, calls=calls)
