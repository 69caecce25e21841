"""`messiahs run`: a task as if it were local, with its output, its signals and its exit code."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from messiahs.cli.exit_codes import FEDERATION_FAILED, KILLED_BY_ITS_USER, USAGE, exit_code_of, failure_of
from messiahs.cli.fetching import write_outputs
from messiahs.cli.output import print_document, reason_lines
from messiahs.client.connection import Document
from messiahs.client.fetching import outputs_of
from messiahs.client.locating import ModulePlace
from messiahs.client.module import ModuleClient, is_final
from messiahs.client.submission import Submission
from messiahs.errors import ClientError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PATIENCE_SECONDS = 3.0
"""After so long a task that waits says why."""


@dataclass(slots=True)
class Interruption:
    """How often the user asked for the end; the second time is always obeyed at once."""

    asked: int = 0
    may_raise: bool = False

    def on_signal(self, _number: int, _frame: FrameType | None) -> None:
        """Count the request; while a submit is under way the first one only counts, for the task may exist already."""
        self.asked += 1
        if self.may_raise or self.asked > 1:
            raise KeyboardInterrupt

    def raise_if_asked(self) -> None:
        """Let signals through from now on, and what came before, too."""
        self.may_raise = True
        if self.asked:
            raise KeyboardInterrupt


def run_submission(place: ModulePlace, prepare: Callable[[ModuleClient], Submission], *, as_json: bool) -> int:
    """Submit, show the output while it comes, write the outputs, and give the task's exit code; 125 on our failure.

    The first Ctrl-C (or SIGTERM) cancels the task and waits for its end; the second one leaves at once. While
    `prepare` uploads, the first one ends it, and nothing was submitted.
    """
    interruption = Interruption()
    with _as_failures_of_the_federation(), ModuleClient(place.socket) as module:
        submission = prepare(module)
        try:
            with _signals_to(interruption):
                task = module.submit(submission)
                ended = _followed(module, task, interruption, shows_output=not as_json)
        except KeyboardInterrupt:
            return KILLED_BY_ITS_USER
        if as_json:
            print_document(ended)
        if failure := failure_of(ended):
            sys.stderr.write(f"messiahs: {failure}\n")
        if submission.outputs and ended["state"] != "denied":
            write_outputs(module, outputs_of(module, task), into=Path())
    return KILLED_BY_ITS_USER if interruption.asked else exit_code_of(ended)


@contextmanager
def _as_failures_of_the_federation() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        # A mistake in the command stays a usage error; everything else is the federation's failure.
        raise ClientError(str(error), code=USAGE if error.code == USAGE else FEDERATION_FAILED) from error


def _followed(module: ModuleClient, task: str, interruption: Interruption, *, shows_output: bool) -> Document:
    streams = {"stdout": sys.stdout.buffer, "stderr": sys.stderr.buffer} if shows_output else {}
    followers = [
        threading.Thread(target=_copy, args=(module.socket_path, task, stream, sink), daemon=True)
        for stream, sink in streams.items()
    ]
    for follower in followers:
        follower.start()
    try:
        interruption.raise_if_asked()
        ended = _waited(module, task)
    except KeyboardInterrupt:
        sys.stderr.write(f"messiahs: ending {task}; once more leaves it to its module\n")
        module.cancel(task)
        ended = _waited(module, task)
    for follower in followers:
        follower.join()
    return ended


def _waited(module: ModuleClient, task: str) -> Document:
    try:
        soon = module.wait(task, timeout=_PATIENCE_SECONDS)
        if is_final(soon):
            return soon
        if soon.get("reasons"):
            sys.stderr.write(f"messiahs: {task} waits; Ctrl-C ends it\n")
            sys.stderr.writelines(f"    {line}\n" for line in reason_lines(soon["reasons"]))
        return module.wait(task)
    except ClientError as error:
        raise ClientError(f"{error}\nthe task goes on: `messiahs wait {task}`", code=error.code) from error


def _copy(socket: Path, task: str, stream: str, sink: BinaryIO) -> None:
    """Copy a stream of the task until its end; runs in a thread of its own, with a client of its own."""
    try:
        with ModuleClient(socket) as module:
            for piece in module.logs(task, stream=stream, follow=True):
                sink.write(piece)
                sink.flush()
    except BrokenPipeError:
        # Nobody reads any more: end the task as the shell would. What is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sink.fileno())
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGTERM)
    except ClientError as error:
        sys.stderr.write(f"messiahs: the task's {stream} cannot be shown: {error}\n")


@contextmanager
def _signals_to(interruption: Interruption) -> Iterator[None]:
    before = {number: signal.signal(number, interruption.on_signal) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
