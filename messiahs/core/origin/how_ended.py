"""How tasks ended, in words for the users of tasks that waited for them."""

from collections.abc import Mapping

from messiahs.core.interface.messages import TaskState
from messiahs.core.interface.rows import TaskRow


def how_ended(row: TaskRow) -> str:
    """Return how a task ended that has, such as `exit code 3`, `memory limit` or `cancelled`."""
    result = row.result
    if result is None or row.state not in (TaskState.FINISHED, TaskState.ABORTED):
        return _words(row.state, None)
    exited = "" if result.exit_code is None else f"exit code {result.exit_code}"
    ended = f"signal {result.signal}" if result.signal and not result.cause else result.cause.replace("_", " ")
    return ", ".join(filter(None, (exited, ended))) or str(row.state.value)


def how_some_ended(ended: Mapping[tuple[TaskState, int | None], int], *, members: int) -> str:
    """Return how those of an array ended that did not end well, such as `1 of 4: exit code 3; 2 of 4: denied`."""
    bad = {ending: count for ending, count in ended.items() if count and ending != (TaskState.FINISHED, 0)}
    return "; ".join(f"{count} of {members}: {_words(*ending)}" for ending, count in sorted(bad.items(), key=str))


def _words(state: TaskState, exit_code: int | None) -> str:
    match state:
        case TaskState.KILLED:
            return "cancelled"
        case TaskState.FINISHED | TaskState.ABORTED if exit_code:
            return f"exit code {exit_code}"
        case _:
            return str(state.value)
