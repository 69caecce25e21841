"""JSON documents of the local API about tasks and vectors."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from messiahs.core.interface.by_hand import HoldRun
from messiahs.core.interface.dependencies import DEPENDENCY_FAILED, Dependency
from messiahs.core.interface.messages import DenyCode, Reason, Substate, TaskState
from messiahs.core.interface.notifications import NotificationRow
from messiahs.core.interface.rows import SubmissionRow, TaskRow
from messiahs.core.model.counted import Counted
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.model.usage import Containment, Usage
from messiahs.core.origin.array_members import command_of, item_of, name_of, tdv_of
from messiahs.core.origin.delays import Delay
from messiahs.core.origin.holds import hold_of
from messiahs.core.vectors.buckets import highest_in, lowest_in
from messiahs.core.vectors.vectors import Interval, MachineClass, Strings, Vector

Document = dict[str, Any]


def time_document(instant: Instant | None) -> str | None:
    """Format an instant as RFC 3339, to the millisecond."""
    if instant is None:
        return None
    return datetime.fromtimestamp(instant / SECOND, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def task_document(
    row: TaskRow,
    submission: SubmissionRow,
    *,
    reasons: tuple[Reason, ...],
    may_run_until: Instant | None = None,
    after: tuple[Dependency, ...] = (),
) -> Document:
    """Describe one task; `reasons` and what it states to be `after` explain why it waits.

    A cancelled task is killed at once, and an overdue one aborted, although it may run until its executor answers, at
    most until `may_run_until`. A killed task has no exit code: if it exited by itself before, its history says so.
    """
    result = row.result
    state, substate = shown_state(row)
    hold = hold_of(submission, row.id.member)
    is_bound = bool(row.executed_on) and not row.is_wanted_again
    started_at, ended_at = _span(row)
    return {
        "id": str(row.id),
        "name": name_of(submission, row.id),
        "item": item_of(submission, row.id.member),
        "user": submission.tdv.description()["user"],
        "tdv": dict(tdv_of(submission, row.id.member).pairs),
        "requirement": submission.requirement,
        "priority": submission.tdv.description().get("priority", 0),
        "argv": list(command_of(submission, row.id).argv),
        "state": state.value,
        "substate": substate.value if substate is not None else None,
        "exit_code": result.exit_code if result is not None and state is not TaskState.KILLED else None,
        "signal": result.signal if result is not None else None,
        "cause": result.cause if result is not None else "",
        "text": result.text if result is not None else _owners_text(row),
        "attempt": row.attempt,
        "executed_on": row.executed_on if is_bound else "",
        "submitted_at": time_document(submission.submitted_at),
        "started_at": time_document(started_at),
        "ended_at": time_document(ended_at),
        "may_run_on": row.executed_on if may_run_until is not None else None,
        "may_run_until": time_document(may_run_until),
        "suspended_since": time_document(row.suspended_at),
        "suspended_s": round(_suspended_ns(row) / SECOND, 3),
        "usage": usage_document(result.usage if result is not None else None),
        "containment": containment_document(result.containment if result is not None else None),
        "assigned": assigned_document(result.assigned if result is not None else row.assigned if is_bound else ()),
        "reasons": [reason_document(reason, own=submission.id.system) for reason in row.reasons or reasons],
        "after": after_document(after, is_taken=submission.taken > 0),
        "hold": None if hold is None or state is not TaskState.EXECUTING else hold_document(hold),
        "history": [
            {
                "at": time_document(entry.at),
                "event": entry.event,
                "attempt": entry.attempt,
                "module": entry.module,
                "text": entry.text,
            }
            for entry in row.history
        ],
    }


def assigned_document(assigned: Iterable[Counted]) -> dict[str, list[int]]:
    """Describe the counted things that an attempt has or had: their numbers on its machine, by the name of the kind."""
    return {things.name: list(things.numbers) for things in assigned}


def usage_document(usage: Usage | None) -> Document | None:
    """Describe what the last attempt of a task used; null if that is not known, as each value that is not known."""
    if usage is None:
        return None
    return {
        "cpu_s": _seconds(usage.cpu_ns),
        "peak_memory_bytes": usage.peak_memory_bytes,
        "written_bytes": usage.written_bytes,
        "read_bytes": usage.read_bytes,
        "suspended_s": _seconds(usage.suspended_ns),
    }


def containment_document(contained: Containment | None) -> Document | None:
    """Describe how the last attempt of a task was contained; null if its executor does not say."""
    return None if contained is None else {"isolation": contained.isolation, "lacks": contained.lacks}


def array_document(
    submission: SubmissionRow,
    ended: Mapping[tuple[TaskState, int | None], int],
    tried: Iterable[TaskRow],
    /,
    *,
    held: int = 0,
) -> Document:
    """Count the members of an array: `ended` ones by state and exit code, `tried` ones by their present state.

    `counts` add up to the members, and `exit_codes` to those that have finished; `held` of the queued ones are on hold.
    """
    states = Counter((substate or state).value for state, substate in map(shown_state, tried))
    for (state, _), count in ended.items():
        states[state.value] += count
    never_tried = submission.members - states.total()
    if never_tried:
        states[Substate.QUEUED.value] += never_tried
    codes: Counter[str] = Counter()
    for (state, exit_code), count in ended.items():
        if state is TaskState.FINISHED and exit_code is not None:
            codes[str(exit_code)] += count
    return {
        "id": str(submission.id),
        "name": submission.name,
        "user": submission.tdv.description().get("user", ""),
        "argv": list(submission.command.argv),
        "priority": submission.tdv.description().get("priority", 0),
        "members": submission.members,
        "submitted_at": time_document(submission.submitted_at),
        "ended_at": time_document(submission.ended_at),
        "counts": dict(sorted(states.items())),
        "exit_codes": dict(sorted(codes.items())),
        "after": after_document(submission.after, is_taken=submission.taken > 0),
        "at_once": submission.at_once or None,
        "held": held,
        "holds": [
            {"first": hold.first, "last": hold.last, **hold_document(hold)}
            for hold in (submission.holds if submission.ended_at is None else ())
        ],
    }


def shown_state(row: TaskRow) -> tuple[TaskState, Substate | None]:
    """Return state and sub-state of a task for its user, to whom the executor's answer does not matter."""
    if row.state is not TaskState.EXECUTING or not row.is_cancelled:
        return row.state, row.substate
    if row.is_wanted_again:
        return TaskState.EXECUTING, Substate.QUEUED
    return (TaskState.KILLED if row.result is None else row.result.state), None


def reason_document(reason: Reason, *, own: SystemId | None = None) -> Document:
    """Describe a module's denial, with those of the modules that it asked.

    Only a reason of the `own` module stands for `dependency_failed`: rules of others may have any name.
    """
    is_own = reason.module == own and reason.code is DenyCode.REQUIREMENT_UNMET
    is_of_order = is_own and reason.rule == DEPENDENCY_FAILED
    return {
        "module": reason.module,
        "code": DEPENDENCY_FAILED if is_of_order else reason.code.value,
        "rule": "" if is_of_order else reason.rule,
        "text": reason.text,
        "why": reason.why,
        "hops": [reason_document(hop) for hop in reason.hops],
    }


def delay_document(delay: Delay) -> Document:
    """Describe why a task makes no progress."""
    return {
        "of": delay.of.value,
        "since": time_document(delay.since),
        "text": delay.text,
        "until": time_document(delay.until),
    }


def after_document(after: Iterable[Dependency], *, is_taken: bool) -> list[Document]:
    """Describe what has to have happened to other tasks before a task, or those of an array, are placed.

    Outputs that are wanted of others are named, and whether they have been taken.
    """
    return [
        {"on": str(each.on), "when": each.when, "is_met": each.is_met}
        | ({"outputs": [one.name for one in each.outputs], "is_taken": is_taken} if each.outputs else {})
        for each in after
    ]


def hold_document(hold: HoldRun) -> Document:
    """Describe since when and why tasks are on hold."""
    return {"since": time_document(hold.since), "reason": hold.text}


def notified_document(row: NotificationRow) -> Document:
    """Describe when a user was notified of an end (null: not yet), what went wrong, and the output of a command."""
    return {"at": time_document(row.given_at), "problem": row.problem, "output": row.output, "retry": None}


def vector_document(vector: Vector) -> Document:
    """Describe a vector: classes with their values as [low, high], a string, or null for differing strings."""
    return {"machines": vector.machines, "classes": [_class_document(one) for one in vector.classes]}


def _seconds(duration_ns: int | None) -> float | None:
    return None if duration_ns is None else round(duration_ns / SECOND, 3)


def _class_document(machine_class: MachineClass) -> Document:
    attributes: Document = {}
    for name, value in machine_class.attributes:
        match value:
            case Interval(low, high):
                attributes[name] = [lowest_in(low), highest_in(high)]
            case Strings():
                attributes[name] = None
            case str():
                attributes[name] = value
    return {"count": machine_class.count, "attributes": attributes, "some_lack": list(machine_class.some_lack)}


def _owners_text(row: TaskRow) -> str:
    """Return the owner's reason for suspending or vacating a task."""
    is_held = row.substate in (Substate.SUSPENDED, Substate.VACATING)
    return row.history[-1].text if is_held and row.history else ""


def _span(row: TaskRow) -> tuple[Instant | None, Instant | None]:
    """Return when the last attempt started and ended; it is as long as its executor measured.

    Reports of a start and of an end arrive late, and of the two the one that took less time to arrive places the span.
    So a report of the end that is later moves no start that has been shown, and no end beyond the run time.
    """
    if row.ended_at is None or row.result is None or not row.result.ran_ns:
        return row.started_at, row.ended_at
    length_ns = row.result.ran_ns + _suspended_ns(row)
    started_at = Instant(row.ended_at - length_ns)
    if row.started_at is not None:
        started_at = min(started_at, row.started_at)
    return started_at, Instant(started_at + length_ns)


def _suspended_ns(row: TaskRow) -> int:
    """Return the length of the suspensions that are over; the executor knows also those that were not reported."""
    usage = row.result.usage if row.result is not None else None
    return max(row.suspended_ns, (usage.suspended_ns or 0) if usage is not None else 0)
