"""What users and administrators ask the core to do, as decisions with their author."""

from typing import Final, NamedTuple

from messiahs.core.interface.actions import Action, Answer, Decision
from messiahs.core.interface.events import (
    CancelRequested,
    CleanRequested,
    DrainRequested,
    Event,
    HandRequested,
    LeaveRequested,
    LendRequested,
    MemberAdded,
    MemberRemoved,
    PrimaryParentChanged,
    RetryRequested,
    RevokeRequested,
    ShutOffRequested,
    Submitted,
    WorkflowSubmitted,
)
from messiahs.core.model.ids import AttemptId, TaskId
from messiahs.core.model.instants import instant_text
from messiahs.daemon.audit.entries import OF_MODULE, Caller, Entry, Kind, of_user

_NOTHING: Final[frozenset[str]] = frozenset()


class Act(NamedTuple):
    """An act, its tasks by name, and a task of the user whose they are; `said` are decisions that say the same.

    Instead of tasks it may have attempts at the own machine, of any users.
    """

    entry: Entry
    tasks: tuple[str, ...] = ()
    task: TaskId | None = None
    said: frozenset[str] = _NOTHING
    attempts: tuple[AttemptId, ...] = ()


def act_of(event: Event, actions: tuple[Action, ...], *, by: Caller | None) -> Act | None:
    """Return what a local user has asked for, with the reason of a refusal; None for all other events.

    A submission that is repeated with its key decides nothing, and neither does a cancel of what has ended.
    """
    act = _asked(event, actions, by=by)
    if act is None:
        return None
    problem = next((action.problem for action in actions if isinstance(action, Answer)), "")
    if not problem:
        return act
    refused = act.entry._replace(what="refused", code=act.entry.what, why=problem, is_counted=True)
    return act._replace(entry=refused)


def _asked(event: Event, actions: tuple[Action, ...], *, by: Caller | None) -> Act | None:
    of_task = Entry(Kind.TASK, "", of_user(by.user) if by is not None else OF_MODULE, by)
    match event:
        case Submitted():
            return _submitted(event, actions, of_task)
        case WorkflowSubmitted():
            return _workflow_submitted(actions, of_task)
        case CancelRequested(task=task):
            if all(isinstance(action, Answer) for action in actions):
                return None
            return Act(of_task._replace(what="cancelled"), (str(task),), task)
        case CleanRequested():
            gone = tuple(each.task for each in actions if isinstance(each, Decision) and each.what == "forgotten")
            return Act(of_task._replace(what="cleaned"), gone) if gone else None
        case RetryRequested():
            task = event.submission.id
            first, last = event.members
            name = f"{task}.{first}" if 0 < first == last else str(task)
            return Act(of_task._replace(what="retried"), (name,), task, frozenset({"retry"}))
        case HandRequested(task=task):
            what = f"{event.act} by hand"
            return Act(of_task._replace(what=what, why=event.text), (str(task),), task, frozenset({what}))
        case RevokeRequested():
            entry = of_task._replace(what="kill by hand" if event.kills else "revoke by hand", why=event.text)
            return Act(entry, attempts=event.attempts)
        case _:
            return _of_member(event, by)


def _submitted(event: Submitted, actions: tuple[Action, ...], of_task: Entry) -> Act | None:
    if not any(isinstance(action, Decision) and action.what == "submitted" for action in actions):
        is_refused = any(isinstance(action, Answer) and action.problem for action in actions)
        return Act(of_task._replace(what="submitted")) if is_refused else None
    task = next(action.task for action in actions if isinstance(action, Answer))
    why = f"{max(1, event.members)} tasks: {event.command.argv[0]}"
    return Act(of_task._replace(what="submitted", why=why), (str(task),), task, frozenset({"submitted"}))


def _workflow_submitted(actions: tuple[Action, ...], of_task: Entry) -> Act | None:
    tasks = [action.task for action in actions if isinstance(action, Decision) and action.what == "submitted"]
    answer = next(action for action in actions if isinstance(action, Answer))
    if not tasks:
        return Act(of_task._replace(what="submitted")) if answer.problem else None
    why = f"{len(tasks)} tasks and arrays together"
    return Act(of_task._replace(what="submitted", why=why), tuple(tasks), answer.task, frozenset({"submitted"}))


def _of_member(event: Event, by: Caller | None) -> Act | None:
    def act(what: str, about: str, *, why: str, said: str) -> Act:
        return Act(Entry(Kind.MEMBER, what, OF_MODULE, by, about, about=about, why=why), said=frozenset({said}))

    match event:
        case ShutOffRequested():
            what = "shut_off" if event.is_off else "readmitted"
            return act(what, event.neighbor, why=event.text, said=what)
        case MemberAdded():
            what = "readmitted" if event.is_by_file else "added"
            return act(what, event.neighbor.system, why=event.text, said="neighbor_added")
        case MemberRemoved():
            return act(
                "removed now" if event.is_forced else "removed", event.system, why=event.text, said="neighbor_leaves"
            )
        case LeaveRequested():
            return act("left", event.parent, why=event.text, said="neighbor_leaves")
        case DrainRequested():
            if event.is_on and event.begins is not None:
                return act(f"drain announced from {instant_text(event.begins)}", "", why=event.text, said="announced")
            what = "drained" if event.is_on else "undrained"
            return act(what, "", why=event.text, said=what)
        case LendRequested():
            until = "" if event.until is None else f"until {instant_text(event.until)}"
            return act(f"lend {event.lent}", "", why=until, said="lend")
        case PrimaryParentChanged():
            return act("primary parent", event.parent, why=event.text, said="handover")
        case _:
            return None
