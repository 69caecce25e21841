"""Outputs of ended tasks that become inputs of tasks which have waited for them (not in the papers)."""

from dataclasses import dataclass

from messiahs.core.model.ids import TaskId
from messiahs.core.model.task_files import InputFile


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsTaken:
    """The answer to `TakeOutputs`: the outputs are stored as `inputs`, or never will be, which `problem` explains.

    Or they cannot be stored yet, for the reason in `delay`; then another answer follows.
    """

    submission: TaskId
    inputs: tuple[InputFile, ...] = ()
    problem: str = ""
    delay: str = ""
