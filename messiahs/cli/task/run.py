"""`messiahs run`: a task as if it were local, with its output, its signals and its exit code."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from types import FrameType

from messiahs.cli.exit_codes import (
    FEDERATION_FAILED,
    KILLED_BY_ITS_USER,
    OUTPUT_LOST,
    USAGE,
    exit_code_of,
    failure_of,
)
from messiahs.cli.output import print_document, reason_lines
from messiahs.cli.task.fetch import write_outputs
from messiahs.client.connection import Document
from messiahs.client.fetching import outputs_of
from messiahs.client.locating import ModulePlace
from messiahs.client.module import ModuleClient, is_final
from messiahs.client.submission import Submission
from messiahs.core.model.texts import printable_lines
from messiahs.errors import ClientError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PATIENCE_SECONDS = 3.0
"""After so long a task that waits says why."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The user asks for the task's end."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A stream of the task cannot be written any more, which ends it as it would end a local command."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """The module has stored the task."""

    task: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A stream of the task was shown to its end."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The task's state is final."""

    document: Document


@dataclass(frozen=True, slots=True)
class Failed:
    """A thread can do no more."""

    error: BaseException


News = Asked | Unread | Submitted | Shown | Ended | Failed
Inbox = SimpleQueue[News]


@dataclass(slots=True)
class Run:
    """A task on its way, as far as is known (mutable)."""

    inbox: Inbox
    task: str = ""
    ended: Document | None = None
    asked: int = 0
    is_unread: bool = False
    shown: int = 0


def run_submission(place: ModulePlace, prepare: Callable[[ModuleClient], Submission], *, as_json: bool) -> int:
    """Submit, show the output while it comes, write the outputs, and give the task's exit code; 125 on our failure.

    The first Ctrl-C (or SIGTERM, or SIGHUP without `nohup`) cancels the task and waits for its end; the second one
    leaves at once. While `prepare` uploads, the first one ends it, and nothing was submitted. When nobody reads the
    output any more, the task is cancelled, too.
    """
    with _as_failures_of_the_federation(), ModuleClient(place.socket) as module:
        submission = prepare(module)
        run = Run(inbox=SimpleQueue())
        with _signals_to(run.inbox):
            _follow(run, place.socket, submission, shows_output=not as_json)
        if run.ended is None:
            return KILLED_BY_ITS_USER
        if as_json:
            print_document(run.ended)
        if failure := failure_of(run.ended):
            _say(run.inbox, failure)
        if submission.outputs and run.ended["state"] != "denied":
            _write_outputs(module, run.task, submission)
    if run.asked:
        return KILLED_BY_ITS_USER
    return OUTPUT_LOST if run.is_unread else exit_code_of(run.ended)


def _write_outputs(module: ModuleClient, task: str, submission: Submission) -> None:
    """Write the outputs of an ended task here; a `ClientError` says how to get those that cannot be written."""
    try:
        write_outputs(module, outputs_of(module, task, declared=submission.outputs), into=Path())
    except ClientError as error:
        remedy = f"the module keeps them: `messiahs fetch {task} --into FOLDER` writes them elsewhere"
        raise ClientError(f"{error}; {remedy}") from error


@contextmanager
def _as_failures_of_the_federation() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        # A mistake in the command stays a usage error; everything else is the federation's failure.
        raise ClientError(str(error), code=USAGE if error.code == USAGE else FEDERATION_FAILED) from error


def _follow(run: Run, socket: Path, submission: Submission, *, shows_output: bool) -> None:
    """Hand a task in and stay until it has ended and was shown, or until the user has asked twice.

    Whatever may block does so in a thread, with a client of its own, and this one listens. An exception that a signal
    raises is lost when it comes while a destructor runs, so a signal is news like any other.
    """
    streams = {"stdout": sys.stdout, "stderr": sys.stderr} if shows_output else {}
    _start(run.inbox, _hand_in, socket, submission)
    while run.ended is None or run.shown < len(streams):
        match run.inbox.get():
            case Asked():
                run.asked += 1
            case Unread():
                run.is_unread = True
            case Submitted(task):
                run.task = task
                for stream, sink in streams.items():
                    _start(run.inbox, _copy, socket, task, stream, sink.fileno())
            case Shown():
                run.shown += 1
                continue
            case Ended(document):
                run.ended = document
                continue
            case Failed(error):
                raise error
        if run.asked > 1:
            run.ended = None
            return
        # Before it is known, the task may exist already.
        if (run.asked or run.is_unread) and run.task and run.ended is None:
            _start(run.inbox, _cancel, socket, run.task)
            # What is told may stand in a full pipe, and the next signal is to be heard all the same.
            _start(run.inbox, _say, f"ending {run.task}; once more leaves it to its module")


def _start(inbox: Inbox, work: Callable[..., None], *words: object) -> None:
    def run() -> None:
        try:
            work(inbox, *words)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the thread that listens raises it
            inbox.put(Failed(error))

    threading.Thread(target=run, daemon=True).start()


def _hand_in(inbox: Inbox, socket: Path, submission: Submission) -> None:
    with ModuleClient(socket) as module:
        task = module.submit(submission)
        inbox.put(Submitted(task))
        inbox.put(Ended(_waited(inbox, module, task)))


def _cancel(_: Inbox, socket: Path, task: str) -> None:
    with ModuleClient(socket) as module:
        module.cancel(task)


def _waited(inbox: Inbox, module: ModuleClient, task: str) -> Document:
    try:
        soon = module.wait(task, timeout=_PATIENCE_SECONDS)
        if is_final(soon):
            return soon
        if soon.get("reasons"):
            _say(inbox, "\n    ".join((f"{task} waits; Ctrl-C ends it", *reason_lines(soon["reasons"]))))
        return module.wait(task)
    except ClientError as error:
        raise ClientError(f"{error}\nthe task goes on: `messiahs wait {task}`", code=error.code) from error


def _copy(inbox: Inbox, socket: Path, task: str, stream: str, sink: int) -> None:
    """Copy a stream of the task until its end."""
    try:
        with ModuleClient(socket) as module:
            for piece in module.logs(task, stream=stream, follow=True):
                _write(sink, piece)
    except ClientError as error:
        _say(inbox, f"the task's {stream} cannot be shown: {error}")
    except OSError as error:
        inbox.put(Unread())
        if not isinstance(error, BrokenPipeError):
            _say(inbox, f"the task's {stream} cannot be written: {error}")
    inbox.put(Shown())


def _say(_: Inbox, text: str) -> None:
    """Tell the user something; nothing else changes if nobody reads it any more."""
    with suppress(OSError):
        _write(sys.stderr.fileno(), f"messiahs: {printable_lines(text)}\n".encode())


def _write(sink: int, piece: bytes) -> None:
    """Write without a buffer, whose lock would be held for as long as nobody reads, even at our end."""
    while piece:
        piece = piece[os.write(sink, piece) :]


@contextmanager
def _signals_to(inbox: Inbox) -> Iterator[None]:
    def tell(_number: int, _frame: FrameType | None) -> None:
        inbox.put(Asked())

    # With `nohup` the task goes on when its terminal is closed.
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, tell) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
