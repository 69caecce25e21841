"""`messiahs run`: run a task as if it were local, with its output, signals and exit code."""

import os
import re
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from types import FrameType

from messiahs.cli.exit_codes import FEDERATION_FAILED, KILLED_BY_ITS_USER, OUTPUT_LOST, USAGE, exit_code_of, notice_of
from messiahs.cli.output import print_document
from messiahs.cli.task.delays import delay_lines, why_delayed
from messiahs.cli.task.fetch import write_outputs
from messiahs.cli.task.missing_program import program_hint
from messiahs.cli.task.standard_input import Source, feed
from messiahs.cli.task.terminal import TerminalInput
from messiahs.cli.task.waking import woken_by_signals
from messiahs.client.connection import Document
from messiahs.client.fetching import outputs_of
from messiahs.client.locating import ModulePlace
from messiahs.client.module import ModuleClient
from messiahs.client.status import is_final
from messiahs.client.submission import Submission
from messiahs.core.model.texts import printable_lines
from messiahs.errors import ClientError, ModuleUnreachableError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PATIENCE_SECONDS = 3.0
"""How long a task may wait before its reasons are printed."""
_LONGEST_PAUSE_SECONDS = 12.0
_AGAIN_SECONDS = 600.0
"""The same reason is printed again after this time."""
_DIGITS = re.compile(r"\d+")
_WITHOUT_INPUT = "if it waits for more standard input, it is cancelled after 10 min"


@dataclass(frozen=True, slots=True)
class Asked:
    """The user requests the end of the task, by a signal."""

    signal: int


@dataclass(frozen=True, slots=True)
class Woken:
    """A signal has arrived, and the main thread has run its handler or runs it now."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A stream of the task cannot be written any more; the task is cancelled, as a local command would end."""

    text: str


@dataclass(frozen=True, slots=True)
class InputLost:
    """The task cannot get its standard input (any more), and is cancelled."""

    text: str


@dataclass(frozen=True, slots=True)
class Submitted:
    """The module has stored the task."""

    task: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A stream of the task has been copied to its end."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The task's state is final."""

    document: Document


@dataclass(frozen=True, slots=True)
class Failed:
    """A thread failed with `error`."""

    error: BaseException


Event = Asked | Woken | Unread | InputLost | Submitted | Shown | Ended | Failed
Inbox = SimpleQueue[Event]


@dataclass(slots=True)
class Run:
    """State of the task as known here (mutable)."""

    inbox: Inbox
    task: str = ""
    ended: Document | None = None
    asked: list[int] = field(default_factory=list)
    """The signals that have requested its end."""
    unread: str = ""
    input_loss: str = ""
    shown: int = 0


def run_submission(
    place: ModulePlace,
    prepare: Callable[[ModuleClient], Submission],
    *,
    stdin: Source | None,
    as_json: bool,
) -> int:
    """Submit, bring standard input, stream the output, write the output files, and return the task's exit code.

    It is 125 if the federation fails, also if it repeats a task whose standard input cannot be read again.

    The first Ctrl-C (or SIGTERM, or SIGHUP without `nohup`) cancels the task and waits for its end; the second one
    returns at once. During the upload in `prepare` the first one stops the command, and nothing is submitted. The task
    is also cancelled when the reader of its output goes away.
    """
    with _as_failures_of_the_federation(), ModuleClient(place.socket) as module:
        submission = prepare(module)
        run = Run(inbox=SimpleQueue())
        with _signals_to(run.inbox), stdin.in_use() if isinstance(stdin, TerminalInput) else nullcontext():
            _follow(run, place.socket, submission, stdin=stdin, shows_output=not as_json)
        if run.ended is None:
            return KILLED_BY_ITS_USER
        if as_json:
            print_document(run.ended)
        if notice := notice_of(run.ended):
            names = {each.name for each in submission.inputs}
            hint = program_hint(run.ended, submission.argv, inputs=names, folder=Path())
            _report(run.inbox, "\n    ".join(filter(None, (notice, hint))))
        if submission.outputs and run.ended["state"] != "denied":
            _write_outputs(module, run.task, submission)
    if run.input_loss:
        _report(run.inbox, run.input_loss)
        return FEDERATION_FAILED
    if run.asked:
        return KILLED_BY_ITS_USER
    return OUTPUT_LOST if run.unread else exit_code_of(run.ended)


def _write_outputs(module: ModuleClient, task: str, submission: Submission) -> None:
    """Write the outputs of an ended task here; a `ClientError` says how to fetch outputs that cannot be written."""
    try:
        write_outputs(module, outputs_of(module, task, declared=submission.outputs), into=Path())
    except ClientError as error:
        remedy = f"the module keeps them; `messiahs fetch {task} --into FOLDER` writes them elsewhere"
        raise ClientError(f"{error}; {remedy}") from error


@contextmanager
def _as_failures_of_the_federation() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        # A usage error stays one; every other failure is the federation's.
        raise ClientError(str(error), code=USAGE if error.code == USAGE else FEDERATION_FAILED) from error


def _follow(run: Run, socket: Path, submission: Submission, *, stdin: Source | None, shows_output: bool) -> None:
    """Submit a task and return once it has ended and its output is shown, or at the user's second request to end it.

    Blocking calls run in threads with clients of their own; this thread only reads the inbox. Signals go through the
    inbox too, because an exception raised by a signal handler is lost if a destructor is running.
    """
    streams = {"stdout": sys.stdout, "stderr": sys.stderr} if shows_output else {}
    if isinstance(stdin, TerminalInput):
        del streams["stderr"]
    _start(run.inbox, _submit, socket, submission)
    while run.ended is None or run.shown < len(streams):
        match run.inbox.get():
            case Asked(number):
                run.asked.append(number)
            case Unread(text):
                run.unread = text
            case InputLost(text):
                run.input_loss = text
            case Submitted(task):
                run.task = task
                if stdin is not None:
                    _start(run.inbox, _feed, socket, run, stdin)
                # What a task shows is for a terminal that leaves it as it is.
                prepare = stdin.make_raw if isinstance(stdin, TerminalInput) else _do_nothing
                for stream, sink in streams.items():
                    _start(run.inbox, _copy, socket, task, stream, sink.fileno(), prepare)
            case Woken():
                continue
            case Shown():
                run.shown += 1
                continue
            case Ended(document):
                run.ended = document
                continue
            case Failed(error):
                raise error
        if len(run.asked) > 1:
            run.ended = None
            return
        if isinstance(stdin, TerminalInput) and (run.asked or run.unread or run.input_loss):
            # The next Ctrl-C is for this command.
            stdin.restore()
        # Until its id is known, the task may already exist.
        if (run.asked or run.unread or run.input_loss) and run.task and run.ended is None:
            _start(run.inbox, _cancel, socket, run.task)
            # Printed from a thread: a full pipe must not delay the next signal.
            _start(run.inbox, _report, _cancelling(run))


def _cancelling(run: Run) -> str:
    if run.asked:
        number = signal.Signals(run.asked[0])
        after, again = ("", "Ctrl-C") if number == signal.SIGINT else (f" after {number.name}", number.name)
        return f"cancelling {run.task}{after}; {again} again: stop waiting (it is ended anyway)"
    return f"{run.unread or 'the task cannot get its standard input'}: cancelling {run.task}"


def _start(inbox: Inbox, work: Callable[..., None], *words: object) -> None:
    def run() -> None:
        try:
            work(inbox, *words)
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that reads the inbox
            inbox.put(Failed(error))

    threading.Thread(target=run, daemon=True).start()


def _submit(inbox: Inbox, socket: Path, submission: Submission) -> None:
    with ModuleClient(socket) as module:
        task = module.submit(submission)
        inbox.put(Submitted(task))
        try:
            document = _waited(inbox, module, task)
        except ClientError as error:
            without = f"; {_WITHOUT_INPUT}" if submission.takes_stdin else ""
            text = f"{error}\nthe task continues{without}; `messiahs wait {task}` waits for it"
            raise ClientError(text, code=error.code) from error
        inbox.put(Ended(document))


def _feed(inbox: Inbox, socket: Path, run: Run, stdin: Source) -> None:
    """Bring standard input to the task until it has ended."""
    try:
        with ModuleClient(socket) as module:
            feed(
                module,
                run.task,
                source=stdin,
                has_ended=lambda: run.ended is not None,
                report=partial(_report, inbox),
            )
    except ModuleUnreachableError:
        # The thread that waits for the task reports it.
        return
    except ClientError as error:
        inbox.put(InputLost(str(error)))


def _cancel(_: Inbox, socket: Path, task: str) -> None:
    with ModuleClient(socket) as module:
        module.cancel(task)


def _waited(inbox: Inbox, module: ModuleClient, task: str) -> Document:
    """Return the document of the ended task; report each reason why it makes no progress meanwhile."""
    reported: dict[str, float] = {}
    pause_seconds = _PATIENCE_SECONDS
    while not is_final(document := module.wait(task, timeout=pause_seconds)):
        pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)
        lines = tuple(delay_lines([document]))
        # Numbers in the reasons, such as a remaining time, change all the time, as does the order of the neighbors.
        what, now = "\n".join(sorted(_DIGITS.sub("", each) for each in why_delayed(document))), time.monotonic()
        if not lines or now < reported.get(what, now):
            continue
        reported[what] = now + _AGAIN_SECONDS
        # Printed from a thread: a full pipe must not delay the end.
        _start(inbox, _report, "\n  ".join((*lines, "Ctrl-C cancels it")))
    return document


def _do_nothing() -> None:
    pass


def _copy(inbox: Inbox, socket: Path, task: str, stream: str, sink: int, prepare: Callable[[], None]) -> None:
    """Copy a stream of the task until its end, after preparing for it."""
    try:
        with ModuleClient(socket) as module:
            for piece in module.logs(task, stream=stream, follow=True):
                prepare()
                _write(sink, piece)
    except ClientError as error:
        _report(inbox, f"the task's {stream} cannot be shown: {error}")
    except OSError as error:
        is_closed = isinstance(error, BrokenPipeError)
        inbox.put(Unread(f"the reader of {stream} has closed the pipe" if is_closed else "the output is lost"))
        if not is_closed:
            _report(inbox, f"the task's {stream} cannot be written: {error}")
    inbox.put(Shown())


def _report(_: Inbox, text: str) -> None:
    """Print a message on stderr; has no effect if stderr is closed."""
    with suppress(OSError):
        sink = sys.stderr.fileno()
        content = f"messiahs: {printable_lines(text)}\n".encode()
        _write(sink, content.replace(b"\n", b"\r\n") if _is_raw(sink) else content)


def _is_raw(sink: int) -> bool:
    """Whether this is a terminal that begins no line by itself, as while a task has it."""
    try:
        return not termios.tcgetattr(sink)[1] & termios.OPOST
    except termios.error:
        return False


def _write(sink: int, piece: bytes) -> None:
    """Write unbuffered: a buffer's lock would be held while the reader is slow, even during interpreter exit."""
    while piece:
        piece = piece[os.write(sink, piece) :]


@contextmanager
def _signals_to(inbox: Inbox) -> Iterator[None]:
    def request_end(number: int, _frame: FrameType | None) -> None:
        inbox.put(Asked(number))

    # With `nohup` the task continues after its terminal is closed.
    handled = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    with woken_by_signals(lambda: inbox.put(Woken())):
        before = {number: signal.signal(number, request_end) for number in handled}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
