"""The terminal of a task in the body of a submit, and which machines have what a task needs to be set up."""

from typing import Annotated

import msgspec

from messiahs.core.model.descriptions import TDV
from messiahs.core.model.environments import ENVIRONMENT_REQUIREMENT, environment_in
from messiahs.core.model.images import IMAGE_REQUIREMENT, image_in
from messiahs.core.model.terminals import LONGEST, TERMINAL_REQUIREMENT, TerminalSize


class TerminalBody(msgspec.Struct, forbid_unknown_fields=True):
    """The size of a terminal."""

    rows: Annotated[int, msgspec.Meta(ge=1, le=LONGEST)]
    columns: Annotated[int, msgspec.Meta(ge=1, le=LONGEST)]


def size_of(body: TerminalBody | None) -> TerminalSize | None:
    """Return the size of the terminal of a task, if it has one."""
    return None if body is None else TerminalSize(rows=body.rows, columns=body.columns)


def needed_machine(tdv: TDV, *, has_terminal: bool) -> str:
    """Return what a machine must fulfil to unpack what a task brings, or to give it a terminal, as those do, too."""
    if image_in(tdv.pairs):
        return IMAGE_REQUIREMENT
    if environment_in(tdv.pairs):
        return ENVIRONMENT_REQUIREMENT
    return TERMINAL_REQUIREMENT if has_terminal else ""


def why_no_terminal(*, members: int) -> str:
    """Return why the tasks of an array, or one with retries, cannot have a terminal."""
    if members:
        return "an array cannot have a terminal"
    return "a task with a terminal runs once, since what was typed is gone: it has no retries"
