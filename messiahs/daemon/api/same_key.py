"""What differs between a submit and the one that is stored under its key."""

import shlex
from collections.abc import Iterable

from messiahs.core.interface.dependencies import Dependency
from messiahs.core.interface.events import Submitted
from messiahs.core.interface.rows import SubmissionRow
from messiahs.core.model.ids import TaskId

_SHOWN_CHARACTERS = 200


def difference(row: SubmissionRow, submitted: Submitted, /, *, within: Iterable[Dependency] = ()) -> str:
    """Return how a submit differs from the one that is stored under its key; empty if they are equal.

    `within` are its dependencies on others of its workflow. Deadlines are not compared, because both count from the
    first submit.
    """
    before, now = row.command, submitted.command
    after = (*within, *(each.dependency for each in submitted.after))
    if before.argv != now.argv:
        return f"whose command is `{_shown(before.argv)}`, and this one's is `{_shown(now.argv)}`"
    # The other tasks may have ended since: then their outputs are among the inputs from the beginning.
    is_later = row.taken > 0 and not any(each.outputs for each in after)
    given = before.inputs if is_later else before.inputs[: len(before.inputs) - row.taken]
    conditions = (each for each in row.after if not (is_later and each.outputs))
    pairs = (
        ("environment", before.env, now.env),
        ("inputs", (given, row.member_inputs), (now.inputs, submitted.member_inputs)),
        ("outputs", before.outputs, now.outputs),
        ("`--cwd`", before.cwd, now.cwd),
        ("standard input", before.takes_stdin, now.takes_stdin),
        ("terminal", before.terminal, now.terminal),
        ("members", (row.members, row.items, row.at_once), (submitted.members, submitted.items, submitted.at_once)),
        ("needs or stated attributes", row.tdv, submitted.tdv),
        ("requirement", row.requirement, submitted.requirement),
        ("name", row.name, submitted.name),
        ("`--retries`", row.retries, submitted.retries),
        ("`--no-wait`", row.waits, submitted.waits),
        ("`--notify`", row.notification, submitted.notification),
        ("dependencies", _conditions(conditions), _conditions(after)),
    )
    others = [what for what, stored, asked in pairs if stored != asked]
    return f"whose command is `{_shown(before.argv)}`, with other {', '.join(others)}" if others else ""


def _conditions(dependencies: Iterable[Dependency]) -> list[tuple[TaskId, str, list[tuple[str, str]]]]:
    return sorted((each.on, each.when, [(one.name, one.to) for one in each.outputs]) for each in dependencies)


def _shown(argv: tuple[str, ...]) -> str:
    text = shlex.join(argv)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
