"""The results of a task that has ended, as its calls get them."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from messiahs.client.futures.batches import Call
from messiahs.client.futures.calls import Batch, Calls
from messiahs.client.futures.delivery import Delivery
from messiahs.client.futures.executor import Executor
from messiahs.client.futures.packing import PYTHON
from messiahs.client.futures.runner import RESULTS
from messiahs.client.tasks import Client
from messiahs.core.model.instants import SECOND
from messiahs.errors import PythonMismatchError, TaskFailedError
from tests.unit.client.futures.results_files import numbered_results, raising, results_file, returning
from tests.unit.client.local_api_peer import Peer, StartPeer
from tests.waiting import eventually


@pytest.mark.parametrize(
    ("error", "notes"),
    [(ModuleNotFoundError("No module named 'joblib'"), ["The Python at east", "PYTHONPATH"]), (KeyError("x"), [])],
)
def test_a_call_that_lacks_a_module_says_at_which_machine(
    start_peer: StartPeer, tmp_path: Path, error: BaseException, notes: list[str]
) -> None:
    peer = start_peer((200, {"id": "left.1"}), state=tmp_path)
    ended = {"id": "left.1.1", "state": "finished", "exit_code": 0, "executed_on": "east"}
    peer.by_path = {
        "/v1/endings": {"ids": [], "gap": True, "after": "1"},
        "/v1/tasks?": {"tasks": [ended], "unknown": []},
    }
    peer.outputs = {"left.1.1": {RESULTS: results_file(raising(error))}}
    with Executor(module="left", state=tmp_path) as executor:
        raised = executor.submit(int).exception()
    assert type(raised) is type(error)
    written = " ".join(getattr(raised, "__notes__", []))
    assert [note for note in notes if note in written] == notes
    assert bool(written) == bool(notes)


TASK = "left.1.1"


def returned(*values: object, python: tuple[int, int] = PYTHON) -> bytes:
    """Return the results of a task whose first calls returned values."""
    return results_file(*map(returning, values), python=python)


class Task:
    """A task with some calls that is under way at a module, and what delivers its results."""

    def __init__(self, peer: Peer, state: Path, *, calls: int = 3) -> None:
        self.peer, self.calls = peer, Calls()
        self.made = [Call(b"", Future()) for _ in range(calls)]
        self.calls.add(self.made, {}, function=int)
        group = self.calls.group_of({}, function=int)
        with self.calls.changed:
            self.calls.sending = group.waiting.next_batches(0, 1)
        self.batch = Batch(task=TASK, array="left.1", group=group, calls=deque(self.made))
        self.calls.register([self.batch], gaps=0)
        self.delivery = Delivery(self.calls, Client("left", state, patience=0.0))
        for thread in self.delivery.collectors:
            thread.start()

    def end(self, results: bytes, **document: object) -> None:
        """Let the task end, and deliver what it left behind."""
        ended = {"id": TASK, "state": "finished", "exit_code": 7, "executed_on": "east", **document}
        self.peer.by_path = {"/v1/tasks?": {"tasks": [ended], "unknown": []}}
        self.peer.outputs = {TASK: {RESULTS: results}}
        self.deliver()

    def deliver(self) -> None:
        """Deliver what there is; each call then is done, or waits again."""
        self.delivery.check([self.batch])
        eventually(lambda: all(call.future.done() or call.future in self.again() for call in self.made))

    def again(self) -> list[Future[object]]:
        """Return the futures of the calls that are to run again."""
        return [call.future for call in self.calls.unsent()]

    def outcomes(self) -> list[object]:
        """Return the value of each call, or what became of it."""
        return [self._outcome(call.future) for call in self.made]

    def _outcome(self, future: Future[object]) -> object:
        if future in self.again():
            return "again"
        return (
            "cancelled" if future.cancelled() else type(future.exception()) if future.exception() else future.result()
        )

    def close(self) -> None:
        """End all threads."""
        self.calls.is_closed = True
        for call in self.calls.waiting_and_sent():
            call.future.cancel()
        self.delivery.run()


@pytest.fixture
def task(start_peer: StartPeer, tmp_path: Path) -> Iterator[Task]:
    made = Task(start_peer((200, {"id": "left.1"}), state=tmp_path), tmp_path)
    yield made
    made.close()


def test_the_call_that_ended_its_task_fails_and_those_after_it_run_again(task: Task) -> None:
    task.end(returned(1))
    assert task.outcomes() == [1, TaskFailedError, "again"]
    assert not any(call.is_alone for call in task.calls.unsent())


def test_no_other_call_fails_for_one_that_was_cancelled_and_ended_its_task(task: Task) -> None:
    task.made[1].future.cancel()
    task.end(returned(1))
    assert task.outcomes() == [1, "cancelled", "again"]


def test_calls_of_a_task_without_any_result_run_again_alone(task: Task) -> None:
    task.end(returned())
    assert task.outcomes() == ["again"] * 3
    assert all(call.is_alone for call in task.calls.unsent())


def test_a_task_that_somebody_else_ended_does_not_run_again(task: Task) -> None:
    task.made[2].future.cancel()
    task.end(returned(1), state="killed", cause="cancelled")
    assert task.outcomes() == [1, TaskFailedError, "cancelled"]


def test_another_python_is_the_error_of_all_calls(task: Task) -> None:
    task.end(returned(python=(2, 7)))
    assert task.outcomes() == [PythonMismatchError] * 3


def test_results_of_calls_that_were_cancelled_meanwhile_are_dropped(task: Task) -> None:
    task.made[1].future.cancel()
    task.end(returned(1, 2, 3), exit_code=0)
    assert task.outcomes() == [1, "cancelled", 3]


def test_a_task_that_the_module_does_not_tell_of_is_cancelled(task: Task) -> None:
    task.peer.answers[:] = [(500, {"error": "broken"})]
    task.deliver()
    assert [str(call.future.exception()) for call in task.made] == ["broken"] * 3
    assert task.calls.next_unneeded() == TASK


def test_a_task_that_runs_is_left_alone(task: Task) -> None:
    task.peer.by_path = {"/v1/tasks?": {"tasks": [{"id": TASK, "state": "executing"}], "unknown": []}}
    task.delivery.check([task.batch])
    eventually(lambda: task.peer.asked)
    task.end(returned(1, 2, 3), exit_code=0)
    assert task.outcomes() == [1, 2, 3]


def test_calls_run_again_alone_where_it_is_not_known_which_of_them_has_damaged_the_results(task: Task) -> None:
    task.end(returned(1, 2)[:-1], exit_code=0)
    assert task.outcomes() == [1, "again", "again"]
    assert all(call.is_alone for call in task.calls.unsent())


def test_the_only_call_of_a_task_with_damaged_results_fails(start_peer: StartPeer, tmp_path: Path) -> None:
    task = Task(start_peer((200, {"id": "left.1"}), state=tmp_path), tmp_path, calls=1)
    task.end(b"\x1b[2J" + returned(1), exit_code=0, executed_on="ea\x1bst")
    (error,) = (call.future.exception() for call in task.made)
    assert isinstance(error, TaskFailedError)
    assert str(error) == (
        r"left.1.1: the call, or its machine ea\x1bst, has damaged the file `results`: its first line is damaged"
    )
    task.close()


def test_calls_whose_results_were_lost_run_again_together(task: Task) -> None:
    task.end(numbered_results((1, raising(RuntimeError("it has changed the file")))), exit_code=1)
    assert task.outcomes() == ["again", RuntimeError, TaskFailedError]
    assert not any(call.is_alone for call in task.calls.unsent())


def test_results_that_were_cut_off_when_their_task_was_ended_are_those_before(task: Task) -> None:
    task.end(returned(1, 2)[:-1], state="aborted", cause="memory_limit")
    assert task.outcomes() == [1, TaskFailedError, "again"]
    assert "memory" in str(task.made[1].future.exception())


@pytest.mark.parametrize("kind", [{"folder": True}, {"link": "/dev/zero"}])
def test_results_that_are_no_file_are_none(task: Task, kind: dict[str, object]) -> None:
    task.peer.kinds = {RESULTS: kind}
    task.end(returned(1, 2, 3))
    assert task.outcomes() == ["again"] * 3


def test_what_a_machine_says_of_the_end_of_a_task_steers_no_terminal(task: Task) -> None:
    task.end(returned(), state="killed", text="\x1b[2J")
    assert r"\x1b[2J" in str(task.made[0].future.exception())


def test_a_task_that_took_longer_than_its_calls_says_how_long_a_start_takes(task: Task) -> None:
    span = {"started_at": "2026-11-29T08:00:00.000Z", "ended_at": "2026-11-29T08:00:05.500Z", "suspended_s": 1.5}
    task.end(returned(1, 2, 3), **span)
    assert task.batch.returned_ns > 0
    assert task.batch.group.waiting.start_ns == 4 * SECOND - task.batch.returned_ns


def test_a_task_of_which_no_span_is_known_says_nothing_about_its_start(task: Task) -> None:
    task.end(returned(1, 2, 3))
    assert task.batch.group.waiting.start_ns is None
