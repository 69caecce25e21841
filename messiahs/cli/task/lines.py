"""Tables of tasks for people, with the reasons why a task waits, was denied or is suspended."""

import shlex
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta

from messiahs.cli.output import (
    is_held,
    local_time,
    may_run_text,
    outputs_text_of,
    print_table,
    print_text,
    reason_lines,
    result_of,
    state_of,
    with_local_times,
)
from messiahs.cli.task.delays import delay_lines
from messiahs.cli.task.groups import group_lines
from messiahs.cli.task.notified import notified_text
from messiahs.cli.task.search_lines import search_lines
from messiahs.cli.task.tree import tree_of
from messiahs.cli.task.usage import usage_text
from messiahs.client.connection import Document
from messiahs.client.status import is_final
from messiahs.client.words import why_ended
from messiahs.core.model.texts import printable

_HEADER = ("ID", "STATE", "RESULT", "ATTEMPT", "MODULE", "SUBMITTED", "RAN", "USER", "NAME", "COMMAND")
_COMMAND_COLUMNS = 40
_NEVER_STARTED = {"queued", "denied"}
_SHORT_SECONDS = 100
_SECONDS_PER_MINUTE = 60
_NEWS = timedelta(hours=1)
"""For how long a list of all tasks says why one was denied."""
_HELD = {"suspended": "suspended by the owner of", "vacating": "being vacated by the owner of"}
_WAY = "route"
"""The event in a task's history that tells through which modules its files go, and why not straight."""


def show_tasks(tasks: list[Document], *, are_named: bool = False, now: datetime | None = None) -> None:
    """Print a table of tasks, indented below those for which they wait, then each set of reasons once, with its tasks.

    With `are_named`, the user asked for these tasks, and is also told which outputs are missing or were omitted, and
    why tasks were denied however long ago; otherwise only for an hour.
    """
    now = datetime.now(UTC) if now is None else now
    if tasks:
        print_table(_HEADER, [_row(document, now, indent=indent) for document, indent in tree_of(tasks)])
    for line in delay_lines(tasks):
        print_text(line if line.startswith(" ") else f"\n{line}")
    _show_denials(tasks if are_named else (each for each in tasks if not _ended_long_ago(each, now)))
    if are_named:
        _show_outputs_texts(tasks)
    if len(tasks) == 1:
        _show_priority(tasks[0])
        _show_way(tasks[0])
        _show_assigned(tasks[0])
        _show_usage(tasks[0])
        _show_containment(tasks[0])
    for document in tasks:
        if "counts" not in document and document.get("substate") in _HELD:
            print_text(f"\n{document['id']} is {printable(_held(document))}")
        if document.get("hold") and not is_held(document):
            since = local_time(document["hold"]["since"])
            print_text(f"\n{document['id']} is on hold since {since}: its attempt runs on, and no other follows")
        if are_named and (text := notified_text(document)):
            print_text("\n" + printable(f"{document['id']}: {text}"))
        if text := may_run_text(document):
            print_text(f"\n{document['id']} {text}")


def show_reasons(tasks: Iterable[Document]) -> None:
    """Print the state of each task, every denial that it received, and its history."""
    for document in tasks:
        print_text(printable(f"{document['id']}: {_present(document)}"))
        for line in reason_lines(document.get("reasons", ()), depth=1, whole=True):
            print_text(line)
        for line in (*delay_lines([{**document, "reasons": ()}]), *search_lines(document)):
            print_text(f"  {line}")
        for text in filter(None, (may_run_text(document), notified_text(document))):
            print_text(printable(f"  {text}"))
        for entry in document.get("history", ()):
            attempt = f"attempt {entry['attempt']}" if entry["attempt"] else ""
            parts = filter(None, (local_time(entry["at"]), attempt, entry["event"], _event_text(entry)))
            print_text(printable(f"  {' '.join(parts)}"))


def show_groups(array: Document, members: Collection[Document]) -> None:
    """Print the members of an array, grouped by what has become of them and why."""
    print_text(f"{array['id']}: {array['members']} tasks")
    if text := notified_text(array):
        print_text(printable(f"  {text}"))
    for line in group_lines(members):
        print_text(line)


def _present(document: Document) -> str:
    """Return the state of a task, and how it ended if it has."""
    place = f" at {document['executed_on']}" if document.get("executed_on") else ""
    why = why_ended(document) if is_final(document) else ""
    if document["state"] == "finished" and document.get("exit_code") is not None:
        why = "; ".join(filter(None, (f"exit code {document['exit_code']}", why)))
    return f"{state_of(document)}{place}" + (f": {why}" if why else "")


def _show_denials(tasks: Iterable[Document]) -> None:
    alike: dict[str, list[Document]] = {}
    for document in tasks:
        # What kept a task waiting that somebody has ended since did not deny it.
        if (
            (document.get("state") == "denied" or document.get("counts", {}).get("denied"))
            and is_final(document)
            and document.get("reasons")
        ):
            alike.setdefault("\n".join(reason_lines(document["reasons"], depth=1)), []).append(document)
    for text, documents in alike.items():
        print_text(f"\n{_names(documents)} {'was' if len(documents) == 1 else 'were'} denied by\n{text}")


def _ended_long_ago(document: Document, now: datetime) -> bool:
    ended_at = document.get("ended_at")
    return ended_at is not None and now - datetime.fromisoformat(ended_at) > _NEWS


def _show_outputs_texts(tasks: Iterable[Document]) -> None:
    alike: dict[str, list[Document]] = {}
    for document in tasks:
        if text := outputs_text_of(document):
            alike.setdefault(text, []).append(document)
    for text, documents in alike.items():
        print_text(f"\n{printable(f'{_names(documents)}: {text}')}")


def _show_priority(task: Document) -> None:
    """Print the priority of a task that has not ended, if it is not 0."""
    if task.get("priority") and not is_final(task):
        print_text(f"\n{task['id']} has the priority {task['priority']} among the tasks of its user")


def _show_way(task: Document) -> None:
    """Print which way the files of the present or last attempt go, if not straight."""
    attempt, history = task.get("attempt"), task.get("history", ())
    ways = [entry["text"] for entry in history if entry["event"] == _WAY and entry["attempt"] == attempt]
    if ways:
        print_text("\n" + printable(f"{task['id']}: files go {ways[-1]}"))


def _show_assigned(task: Document) -> None:
    """Print which counted things, such as GPUs, the present or last attempt of a task has or had."""
    kinds = [f"{name} {','.join(map(str, numbers))}" for name, numbers in sorted(task.get("assigned", {}).items())]
    if kinds:
        print_text("\n" + printable(f"{task['id']}: {'; '.join(kinds)} of {task['executed_on']}"))


def _show_usage(task: Document) -> None:
    """Print what the last attempt of a task used, if that is known."""
    if text := usage_text(task.get("usage")):
        print_text(f"\n{task['id']} used {text}")


def _show_containment(task: Document) -> None:
    """Print how the last attempt was contained, and what its machine lacks for that, which need not be the reason."""
    contained = task.get("containment") or {}
    if contained.get("lacks"):
        kind = "without a sandbox" if contained["isolation"] == "process" else "in a sandbox"
        print_text("\n" + printable(f"{task['id']} ran {kind}; its machine reports: {contained['lacks']}"))


def _event_text(entry: Document) -> str:
    if entry["event"] == _WAY:
        # The text names the module.
        return str(entry["text"])
    place = f"at {entry['module']}" if entry["module"] else ""
    return ": ".join(filter(None, (place, with_local_times(entry.get("text") or ""))))


def _held(document: Document) -> str:
    """Return the text for a task that the owner of its machine suspended or vacates, with the reason if known."""
    why = f": {with_local_times(document['text'])}" if document.get("text") else ""
    return f"{_HELD[document['substate']]} {document['executed_on']}{why}"


def ran_of(document: Document, now: datetime) -> str:
    """Return the run time of a task and its suspensions; for an array that has begun, the time since its submission.

    While its outputs come home, the run time is not known yet.
    """
    ran, suspended = ran_seconds(document, now), _suspended_seconds(document, now)
    if ran is None:
        return "-"
    return f"{duration_text(ran)} + {duration_text(suspended)} suspended" if suspended else duration_text(ran)


def ran_seconds(document: Document, now: datetime) -> float | None:
    """Return the run time without suspensions, as `ran_of` does; None if it is not known."""
    counts = document.get("counts")
    begun = document.get("submitted_at" if counts and counts.keys() - _NEVER_STARTED else "started_at")
    if begun is None or document.get("substate") == "staging":
        return None
    if document.get("ended_at") is None and is_final(document):
        return None
    end = datetime.fromisoformat(document["ended_at"]) if document.get("ended_at") else now
    seconds = (end - datetime.fromisoformat(begun)).total_seconds()
    return max(0.0, seconds - _suspended_seconds(document, now))


def _suspended_seconds(document: Document, now: datetime) -> float:
    """Return the total suspension of the present or last attempt of a task."""
    since = document.get("suspended_since")
    until_now = 0.0 if since is None else max(0.0, (now - datetime.fromisoformat(since)).total_seconds())
    return float(document.get("suspended_s") or 0.0) + until_now


def duration_text(seconds: float) -> str:
    """Return a duration for people."""
    if seconds < _SHORT_SECONDS:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), _SECONDS_PER_MINUTE)
    hours, minutes = divmod(minutes, _SECONDS_PER_MINUTE)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def _row(document: Document, now: datetime, *, indent: str) -> tuple[object, ...]:
    ran, name = ran_of(document, now), document.get("name") or document.get("item") or ""
    submitted_at = local_time(document.get("submitted_at"))
    shown_id = f"{indent}{document['id']}"
    whose = (document.get("user") or "-", name, command_text(document))
    if "counts" in document:
        counts = ", ".join(f"{count} {state}" for state, count in _counts_of(document).items() if count)
        if document.get("at_once") and not is_final(document):
            counts += f" (at most {document['at_once']} at once)"
        codes = ", ".join(f"{code} ({count})" for code, count in document["exit_codes"].items())
        return (shown_id, counts, codes or "-", "-", "-", submitted_at, ran, *whose)
    attempt, executor = document.get("attempt") or "-", document.get("executed_on") or "-"
    return (shown_id, state_of(document), result_of(document), attempt, executor, submitted_at, ran, *whose)


def command_text(document: Document) -> str:
    """Return the beginning of the command of a task; `-` if its module does not tell it."""
    text = printable(shlex.join(document.get("argv") or ()))
    return f"{text[: _COMMAND_COLUMNS - 1]}…" if len(text) > _COMMAND_COLUMNS else text or "-"


def _counts_of(array: Document) -> dict[str, int]:
    """Return how many members are in each state, and how many of those that wait are on hold."""
    counts, held = array["counts"], array.get("held", 0)
    return {**counts, "queued": counts.get("queued", 0) - held, "held": held} if held else counts


def _names(documents: Iterable[Document]) -> str:
    first, *others = [document["id"] for document in documents]
    return f"{first} and {len(others)} more" if others else str(first)
