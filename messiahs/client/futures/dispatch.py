"""Runs calls as tasks of a module: one thread sends them, and others deliver their results."""

import atexit
import logging
import os
import threading
from collections.abc import Hashable, Sequence
from typing import Final

from messiahs.client.futures.batches import Call
from messiahs.client.futures.calls import Calls
from messiahs.client.futures.delivery import Delivery
from messiahs.client.futures.sending import Sender
from messiahs.client.task_options import CheckedOptions
from messiahs.client.tasks import Client

CANCELLING_SECONDS: Final = 10.0
"""How long the cancels of calls may take once no call is left: a module that is away may take them much later."""


class Dispatcher:
    """Runs calls until it is closed and all are done (mutable, shared by threads).

    Calls that nobody waits for are finished before the interpreter ends, as by other executors.
    """

    def __init__(self, client: Client, *, max_tasks: int, python: str) -> None:
        self._calls, self._process = Calls(), os.getpid()
        self._delivery = Delivery(self._calls, client)
        self._sender = Sender(self._calls, client, max_tasks=max_tasks, python=python, on_ended=self._delivery.check)
        self._threads = [
            threading.Thread(target=self._send, daemon=True, name="messiahs-calls"),
            threading.Thread(target=self._delivery.run, daemon=True, name="messiahs-endings"),
        ]
        self._own = (*self._delivery.collectors, *self._threads)
        # All of them start now: none can start while the interpreter ends.
        for thread in self._own:
            thread.start()
        atexit.register(self._finish)

    def add(self, chunk: Sequence[Call], options: CheckedOptions, *, function: Hashable) -> None:
        """Let calls of a function run together in a task with some options.

        Raises `RuntimeError` after `close`, and in a process that was forked: its threads are not there.
        """
        if os.getpid() != self._process:
            raise RuntimeError("an executor cannot be used in a process that was forked: make one there")
        self._calls.add(chunk, options, function=function)

    def close(self, *, cancels: bool) -> None:
        """Take no more calls; with `cancels`, cancel those that are in no task yet, or in one that has not begun.

        The latter are cancelled after this returns, once the module has said which tasks have begun.
        """
        with self._calls.changed:
            self._calls.is_closed = True
            self._calls.has_to_drain |= cancels
            self._calls.changed.notify_all()
        for call in self._calls.unsent() if cancels else ():
            call.future.cancel()

    def cancel_all(self) -> None:
        """Cancel every call that is not done."""
        # The last first: each that is cancelled looks for one that is not, from the first call of its task on.
        for call in reversed(self._calls.waiting_and_sent()):
            call.future.cancel()

    def join(self) -> None:
        """Wait until all calls are done, their callbacks have run, and the tasks of cancelled ones were cancelled.

        Only after `close`. A module that does not take the cancels is waited for `CANCELLING_SECONDS`, and a warning
        says then that tasks may run on. Whoever interrupts this cancels all calls. Raises `RuntimeError` in a callback
        of a call, for which this would wait.
        """
        if threading.current_thread() in self._own:
            raise RuntimeError("a callback of a call cannot wait for the shutdown: use shutdown(wait=False)")
        sending, _ = self._threads
        try:
            with self._calls.changed:
                # In a process that was forked, no thread ends the calls.
                self._calls.changed.wait_for(lambda: self._calls.are_over or not sending.is_alive())
        except KeyboardInterrupt:
            self.cancel_all()
            raise
        # The other thread ends by itself: it may wait for a module for a moment.
        sending.join(CANCELLING_SECONDS)
        if sending.is_alive():
            atexit.unregister(self._finish)
            logging.getLogger("messiahs.client").warning(
                "the module has not taken the cancels of calls within %g s: their tasks may run on "
                "(`messiahs status` lists them, `messiahs cancel` ends them)",
                CANCELLING_SECONDS,
            )

    def _send(self) -> None:
        try:
            self._sender.run()
        except BaseException as error:
            self.close(cancels=False)
            for call in self._calls.waiting_and_sent():
                self._calls.fail(call, error)
            raise
        finally:
            atexit.unregister(self._finish)

    def _finish(self) -> None:
        if os.getpid() != self._process:
            return
        self.close(cancels=False)
        try:
            self.join()
        except KeyboardInterrupt:
            # All calls are cancelled now, and the module is to know that.
            self.join()
            raise
