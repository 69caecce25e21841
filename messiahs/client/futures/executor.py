"""`messiahs.Executor`: an executor of `concurrent.futures` whose calls run as tasks of a federation."""

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from itertools import islice
from os import PathLike
from time import monotonic
from typing import Any, Final, ParamSpec, TypeVar, Unpack, cast

from messiahs.client.futures.batches import Call
from messiahs.client.futures.call_options import checked_call_options
from messiahs.client.futures.dispatch import Dispatcher
from messiahs.client.futures.packing import function_key, packed_call
from messiahs.client.task_options import TaskOptions, checked_number
from messiahs.client.tasks import Client

P = ParamSpec("P")
T = TypeVar("T")


class Executor(futures.Executor):
    """Runs calls on machines of a federation, short ones hundreds in one task.

    Functions, arguments and results are pickled by cloudpickle, here and in the task. A function of `__main__` travels
    with its call; one of another module is imported there, unless `cloudpickle.register_pickle_by_value` names its
    module or `inputs` brings its file. What a call prints is in the logs of its task.

    The result of each call is taken once. A call may run more than once: its task starts again at another machine if
    its own is lost, and the calls of a task that ended early run again unless they had returned. Each result or
    exception is what one of the runs gave; exceptions have the traceback of the task as their cause. Raised beside
    them: `PythonMismatchError` before anything runs if the minor version of Python there is another one,
    `TaskFailedError` if the task of a call ended otherwise, and `ClientError` if a task cannot be submitted.

    Results are unpickled in this process: a machine that runs calls, or a module that passes them on, can run code as
    its user. Use it among systems that are trusted.

    `Future.cancel` succeeds until a result has been taken; a task ends when all of its calls are cancelled. The calls
    of an executor that is dropped without `shutdown` run to their end.
    """

    default_max_workers: Final = 256

    def __init__(
        self,
        max_workers: int | None = None,
        *,
        module: str | None = None,
        state: str | PathLike[str] | None = None,
        python: str = f"python{sys.version_info.major}.{sys.version_info.minor}",
        patience: float | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        """Submit to a module as `messiahs.connect` finds it, at most `max_workers` (256) tasks at a time.

        `python` is the interpreter at the machines, and `options` are those of every task, without `key` and `outputs`.
        A module that is away is waited for without end, or for `patience` seconds; then the calls under way fail with
        `ModuleUnreachableError`, and those that it was getting then may run for nobody.
        """
        max_workers = self.default_max_workers if max_workers is None else _checked_workers(max_workers)
        # dask asks for this.
        self._max_workers = max_workers
        self._options = checked_call_options(options)
        self._dispatcher = Dispatcher(Client(module, state, patience=patience), max_tasks=max_workers, python=python)
        self._last_use = _Use(self._dispatcher)

    def with_options(self, **options: Unpack[TaskOptions]) -> "Executor":
        """Return an executor that shares everything with this one, whose tasks also have some options.

        Either is shut down with the other: `executor.with_options(mem="8GiB", gpus=1).submit(train, data)`.
        """
        # None takes an option of this one back.
        checked = checked_call_options(cast("TaskOptions", {**self._options, **options}))
        other = object.__new__(type(self))
        other._max_workers, other._options = self._max_workers, checked
        other._dispatcher, other._last_use = self._dispatcher, self._last_use
        return other

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "futures.Future[T]":
        """Schedule a call and return its future; what pickling it raises is the future's exception."""
        (future,) = self._submit_chunk(fn, [(args, kwargs)])
        return future

    def map(
        self, fn: Callable[..., T], *iterables: Iterable[Any], timeout: float | None = None, chunksize: int = 1
    ) -> Iterator[T]:
        """Yield the results of `fn` for the items of the iterables, in their order; the calls are submitted at once.

        At least `chunksize` calls are in one task, and short ones without that. Raises `TimeoutError` if the next
        result is not there `timeout` seconds after the call of `map`.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        until = None if timeout is None else monotonic() + timeout
        calls: Iterator[tuple[tuple[Any, ...], dict[str, Any]]] = (
            (items, {}) for items in zip(*iterables, strict=False)
        )
        submitted: list[futures.Future[T]] = []
        try:
            while chunk := list(islice(calls, chunksize)):
                submitted += self._submit_chunk(fn, chunk)
        except BaseException:
            _cancel(submitted)
            raise
        return _results(submitted, until)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as the base class
        """Take no more calls; with `wait` return when all are done, and the tasks of those that were cancelled end.

        With `cancel_futures` those are cancelled that are in no task yet, and soon after those of tasks that have not
        begun at any machine; all calls of one that has begun run. A module that is away is waited for, unless
        all calls are done: then at most 10 s, and a warning says that the tasks of cancelled calls may run on. A
        KeyboardInterrupt while this waits cancels all calls. Raises `RuntimeError` in a callback of a call, for which
        it would wait.
        """
        self._dispatcher.close(cancels=cancel_futures)
        if wait:
            self._dispatcher.join()

    def cancel_all(self) -> None:
        """Cancel every call whose result was not taken; their tasks end."""
        self._dispatcher.cancel_all()

    def _submit_chunk(
        self, fn: Callable[..., T], calls: Iterable[tuple[tuple[Any, ...], dict[str, Any]]]
    ) -> list["futures.Future[T]"]:
        chunk, submitted = [], []
        for arguments, keywords in calls:
            future: futures.Future[T] = futures.Future()
            submitted.append(future)
            try:
                chunk.append(Call(packed_call(fn, *arguments, **keywords), future))
            except Exception as error:  # noqa: BLE001 - pickling runs code of the arguments
                future.set_exception(error)
        if chunk:
            self._dispatcher.add(chunk, self._options, function=function_key(fn))
        return submitted


class _Use:
    """What the executors of a dispatcher share: it is closed when they are gone, since nobody can shut them down."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        weakref.finalize(self, dispatcher.close, cancels=False).atexit = False


def _results(submitted: list["futures.Future[T]"], until: float | None) -> Iterator[T]:
    """Yield results in their order, and cancel the rest if that is left early."""
    submitted.reverse()
    try:
        while submitted:
            submitted[-1].result(None if until is None else max(0.0, until - monotonic()))
            # No reference is left when the result is yielded, so that it can be freed.
            yield submitted.pop().result()
    finally:
        _cancel(submitted)


def _cancel(submitted: Iterable["futures.Future[T]"]) -> None:
    for future in submitted:
        future.cancel()


def _checked_workers(number: object) -> int:
    try:
        workers = checked_number("max_workers", number)
    except TypeError as error:
        raise TypeError(f"{error}; a module is named with `module=`") from None
    if workers <= 0:
        raise ValueError("max_workers must be greater than 0")
    return workers
