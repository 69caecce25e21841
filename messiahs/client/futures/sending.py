"""Sends the calls that wait: their files are uploaded, and many tasks are submitted as one array."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Final

from messiahs.client.futures.batches import Call
from messiahs.client.futures.call_options import RUNNER, check_inputs
from messiahs.client.futures.calls import Batch, Calls, Group
from messiahs.client.futures.packing import calls_file, runner_archive
from messiahs.client.futures.runner import CALLS, RESULTS
from messiahs.client.module import ModuleClient
from messiahs.client.preparing import prepared_submission
from messiahs.client.submission import InputFile, Submission, new_key
from messiahs.client.tasks import Client
from messiahs.client.uploading import put_contents
from messiahs.core.model.instants import SECOND
from messiahs.errors import ClientError, ModuleUnreachableError

_ARRAY: Final = 256
"""Maximum number of tasks in one submit."""
_BEFORE_ITS_BEGIN: Final = frozenset({"queued", "staging"})
"""What a task does that has not begun at any machine, or is to begin again."""


class Sender:
    """Submits calls as tasks, in one thread."""

    def __init__(
        self, calls: Calls, client: Client, *, max_tasks: int, python: str, on_ended: Callable[[Sequence[Batch]], None]
    ) -> None:
        """Keep at most `max_tasks` under way; report tasks that may have ended while they were submitted."""
        self._calls, self._client, self._on_ended = calls, client, on_ended
        self._max_tasks, self._command = max_tasks, (python, RUNNER)
        self._runner = runner_archive()

    def run(self) -> None:
        """Send what waits, until all calls are over and the tasks that nobody needs were cancelled."""
        while (work := self._next_work()) is not None:
            work()
            # No reference to calls, and thus to their results, is left while nothing happens.
            del work
        self._client.close()

    def _next_work(self) -> Callable[[], None] | None:
        calls = self._calls
        with calls.changed:
            while calls.unneeded or not calls.are_over:
                if calls.has_to_drain:
                    calls.has_to_drain = False
                    return partial(self._drain, list(calls.under_way.values()))
                if (unneeded := calls.next_unneeded()) is not None:
                    return partial(self._cancel, unneeded)
                now, room = time.monotonic_ns(), min(_ARRAY, self._max_tasks - len(calls.under_way))
                for group in list(calls.groups.values()):
                    if batches := group.waiting.next_batches(now, room):
                        # The others are served first next time.
                        calls.groups[group.key] = calls.groups.pop(group.key)
                        calls.sending = batches
                        return partial(self._send, group, batches, gaps=calls.gaps)
                groups = list(calls.groups.values()) if room > 0 else []
                looks = {group: group.waiting.look_in(now) for group in groups}
                if (due := next((group for group, due_in in looks.items() if due_in == 0), None)) is not None:
                    return partial(self._look, due)
                pauses = (*looks.values(), *(group.waiting.filled_in(now) for group in groups))
                calls.changed.wait(min((one / SECOND for one in pauses if one is not None), default=None))
        return None

    def _drain(self, batches: Sequence[Batch]) -> None:
        """Cancel the calls of tasks that have not begun; all run to their end if the module does not say which."""
        for batch in self._waiting_among(batches) or ():
            # The last first, as in `Dispatcher.cancel_all`.
            for call in reversed(list(batch.calls)):
                call.future.cancel()

    def _look(self, group: Group) -> None:
        """Note how many tasks of a group have begun; none more if the module does not say that."""
        with self._calls.changed:
            batches = [batch for batch in self._calls.under_way.values() if batch.group is group]
        waiting = self._waiting_among(batches)
        with self._calls.changed:
            begun = group.waiting.begun if waiting is None else len(batches) - len(waiting)
            group.waiting.note_begun(begun, time.monotonic_ns(), others_wait=bool(waiting))

    def _waiting_among(self, batches: Sequence[Batch]) -> list[Batch] | None:
        """Return the tasks that have not begun; None if the module does not say that."""
        try:
            with self._client.at() as module:
                documents = module.tasks(*(batch.task for batch in batches))["tasks"] if batches else []
        except ClientError:
            return None
        waiting = {each["id"] for each in documents if each.get("substate") in _BEFORE_ITS_BEGIN}
        return [batch for batch in batches if batch.task in waiting]

    def _cancel(self, task: str) -> None:
        try:
            self._client.cancel(task)
        except ClientError:
            # Nobody waits for the task; its module keeps what it knows of it.
            return

    def _send(self, group: Group, batches: Sequence[Sequence[Call]], *, gaps: int) -> None:
        try:
            with self._client.at() as module:
                array = self._submitted(module, group, batches)
        except Exception as error:  # noqa: BLE001 - whoever asks for the results gets it
            for call in self._calls.give_back(group):
                self._calls.fail(call, error)
            return
        sent = [
            Batch(task=f"{array}.{number}", array=array, group=group, calls=deque(calls))
            for number, calls in enumerate(batches, 1)
        ]
        self._on_ended(self._calls.register(sent, gaps=gaps))

    def _submitted(self, module: ModuleClient, group: Group, batches: Sequence[Sequence[Call]]) -> str:
        contents = [calls_file([call.packed for call in calls]) for calls in batches]
        put_contents(module, [self._runner, *contents])
        if group.uploaded.submission is None:
            return module.submit(self._completed(self._prepared(module, group), contents))
        try:
            return module.submit(self._completed(group.uploaded.submission, contents))
        except ModuleUnreachableError:
            # It may have stored the first submit, and another key would be another array.
            raise
        except ClientError:
            # The module may not have kept the files of the first submit.
            return module.submit(self._completed(self._prepared(module, group), contents))

    def _prepared(self, module: ModuleClient, group: Group) -> Submission:
        submission = prepared_submission(module, self._command, options=group.options)
        check_inputs(submission)
        group.uploaded.submission = submission
        return submission

    def _completed(self, common: Submission, contents: Sequence[bytes]) -> Submission:
        return replace(
            common,
            key=new_key(),
            members=len(contents),
            inputs=(*common.inputs, _input(RUNNER, self._runner)),
            member_inputs=tuple((_input(CALLS, content),) for content in contents),
            outputs=(*common.outputs, RESULTS),
        )


def _input(name: str, content: bytes) -> InputFile:
    return InputFile(name=name, sha256=sha256(content).hexdigest(), size_bytes=len(content))
