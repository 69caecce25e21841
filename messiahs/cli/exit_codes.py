"""Exit codes for ended tasks, as `run` and `wait` return them."""

from messiahs.cli.output import outputs_text_of, reason_lines
from messiahs.client.connection import Document
from messiahs.client.words import NOT_EXECUTABLE, ending_text
from messiahs.core.interface.causes import OUTPUT_CAUSES, Cause
from messiahs.core.model.texts import printable

USAGE = 2
WOULD_WAIT = 3
WOULD_BE_DENIED = 4
"""Exit codes of `plan`, which is 0 for a task that would start."""
NOT_IN_TIME = 124
"""Exit code of `wait --timeout`, as of timeout(1)."""
FEDERATION_FAILED = 125
NOT_FOUND = 127
KILLED_BY_ITS_USER = 130
SIGNAL_BASE = 128
OUTPUT_LOST = 141
"""Exit code when the reader of the output is gone, as if SIGPIPE had ended the command."""


def exit_code_of(task: Document) -> int:
    """Return the exit code of a task in a final state; for an array 0 if every member exited 0, else 1."""
    if "counts" in task:
        # A member without a declared output may have exited with 0 and is not finished.
        good = min(task["exit_codes"].get("0", 0), task["counts"].get("finished", 0))
        return 0 if good == task["members"] else 1
    if task["state"] == "killed":
        return KILLED_BY_ITS_USER
    if task.get("cause") == Cause.NOT_FOUND:
        return NOT_EXECUTABLE if task.get("exit_code") == NOT_EXECUTABLE else NOT_FOUND
    if task["state"] == "finished" and task.get("exit_code") is not None:
        return int(task["exit_code"])
    if task.get("cause") in OUTPUT_CAUSES and task.get("exit_code"):
        return int(task["exit_code"])
    if task.get("signal") is not None and task.get("cause") in {None, "", "signal"}:
        return SIGNAL_BASE + int(task["signal"])
    return FEDERATION_FAILED


def notice_of(task: Document) -> str:
    """Return what the exit code of an ended task does not show; empty if that is nothing.

    This is why the task has no exit code of its own, or which of its outputs are missing or were omitted. Arrays have
    no notice, their members have.
    """
    if "counts" in task:
        return ""
    lacks_outputs = task.get("cause") in OUTPUT_CAUSES
    is_failure = exit_code_of(task) in {FEDERATION_FAILED, NOT_EXECUTABLE, NOT_FOUND}
    if not lacks_outputs and (task["state"] == "finished" or not is_failure):
        omitted = outputs_text_of(task)
        return printable(f"{task['id']}: {omitted}") if omitted else ""
    return "\n    ".join((printable(ending_text(task)), *reason_lines(task.get("reasons") or ())))
