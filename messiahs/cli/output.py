"""Output shared by all commands: one JSON document, or lines for people."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import click

from messiahs.client.connection import Document
from messiahs.client.words import NOT_EXECUTABLE, passed_refusals, reason_text
from messiahs.core.interface.causes import OUTPUT_CAUSES, Cause
from messiahs.core.model.texts import printable, printable_json, printable_lines

SCHEMA = 1
"""Version of all JSON documents; it changes when one of them changes incompatibly."""

_INSTANT = re.compile(r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
"""An instant in a text of a module (`instant_text`)."""
_CONDITIONS = {
    "started": "to start",
    "ended": "to end",
    "ok": "to end with exit code 0",
    "each": "to end with exit code 0",
}


def print_text(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text with its line ends; other control characters are escaped, whoever wrote it.

    Every command prints through this function, and no linter lets it call `click.echo`. A text of others that has to
    stay on its line is made `printable` first.
    """
    click.echo(printable_lines(text), err=err, nl=nl)  # noqa: TID251 - this is the place


def print_document(document: Mapping[str, object]) -> None:
    """Print one JSON document; control characters in its texts are escaped."""
    print_json({"schema": SCHEMA, **document})


def print_json(document: Mapping[str, object]) -> None:
    """Print a document on one line as it is, without the version."""
    print_text(printable_json(json.dumps(document, ensure_ascii=False)))


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows in columns under a header, never truncated, since a program may read them."""
    lines = [[printable(str(cell)) for cell in row] for row in (header, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        print_text("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def state_of(task: Document) -> str:
    """Return the state of a task for people: for an executing one, its present step.

    It is `held` if the task gets no place, and `waiting` if it waits for other tasks.
    """
    state, substate = str(task["state"]), task.get("substate")
    if is_held(task):
        return "held"
    if conditions_of(task):
        return "waiting"
    return f"{substate}" if state == "executing" and substate else state


def is_held(task: Document) -> bool:
    """Whether a task waits on hold."""
    return bool(task.get("hold")) and task.get("substate") == "queued"


def conditions_of(task: Document) -> list[str]:
    """Return what a task, or each of an array, waits for, as text; nothing if it has ended or waits for no other."""
    has_ended = task.get("ended_at") is not None or task.get("state", "executing") != "executing"
    after = () if has_ended else task.get("after", ())
    how = {"each": ", member by member," if "counts" in task else ""}
    others = [f"for others of the same array (at most {task['behind']} at once)"] if task.get("behind") else []
    return others + [
        f"for {each['on']}{how.get(each['when'], '')} {_CONDITIONS[each['when']]}{_wanted_text(each)}"
        for each in after
        if not each["is_met"] or not each.get("is_taken", True)
    ]


def _wanted_text(after: Document) -> str:
    names = after.get("outputs", ())
    return f", for its {', '.join(map(printable, names))}" if names else ""


def may_run_text(task: Document) -> str:
    """Return where, and until when, a task that was cancelled or moved may still run; empty if that is known."""
    if not task.get("may_run_until"):
        return ""
    until = local_time(task["may_run_until"])
    return printable(f"may run at {task['may_run_on']} until {until}: its module has not reported its end")


def result_of(task: Document) -> str:
    """Return how a task ended: its cause if known, else its exit code or signal.

    A task that lacks outputs has both an exit code and a cause.
    """
    if task.get("cause") in OUTPUT_CAUSES and task.get("exit_code") is not None:
        return f"{task['exit_code']} ({task['cause']})"
    if task.get("cause"):
        is_there = task["cause"] == Cause.NOT_FOUND and task.get("exit_code") == NOT_EXECUTABLE
        return "not_executable" if is_there else str(task["cause"])
    if task.get("exit_code") is not None:
        return str(task["exit_code"])
    return f"signal {task['signal']}" if task.get("signal") is not None else "-"


def outputs_text_of(task: Document) -> str:
    """Return which declared outputs of an ended task are missing, and what was omitted; empty if nothing is."""
    cause = task.get("cause") or ""
    has_exited = task.get("state") in {"finished", "aborted"} and (
        not cause or cause in (Cause.TIME_LIMIT, Cause.MEMORY_LIMIT, Cause.DISK_LIMIT, *OUTPUT_CAUSES)
    )
    return str(task.get("text") or "") if has_exited else ""


def reason_lines(reasons: Iterable[Document], *, depth: int = 0, whole: bool = False) -> Iterator[str]:
    """Yield one line per denial, with the denials of each hop indented below it.

    With `whole`, a denial by the module's own policy is followed by the comparisons that failed.
    """
    for reason in reasons:
        if refusals := passed_refusals(reason):
            yield "  " * depth + printable(with_local_times(refusals))
            continue
        yield "  " * depth + printable(with_local_times(reason_text(reason)))
        if whole and reason.get("why"):
            yield "  " * depth + printable(f"  because {reason['why']}")
        yield from reason_lines(reason.get("hops", ()), depth=depth + 1, whole=whole)


def local_time(stamp: str | None) -> str:
    """Return an instant of a document in the local time of this host; `-` for none."""
    if stamp is None:
        return "-"
    return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def with_local_times(text: str) -> str:
    """Return a text of a module, perhaps in another time zone, with its instants in the local time of this host."""
    return _INSTANT.sub(_localized, text)


def _localized(instant: re.Match[str]) -> str:
    try:
        return local_time(instant[0])
    except (ValueError, OverflowError):
        return instant[0]
