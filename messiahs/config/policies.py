"""Policy files on disk."""

from pathlib import Path

from messiahs.core.ports import Timeouts
from messiahs.errors import PolicyError, Problem
from messiahs.language.compiled_policy import CompiledPolicy
from messiahs.language.policy_files import parse_policy
from messiahs.language.policy_scanning import FILE_LIMIT_BYTES

_UNREADABLE = "P001"


def read_policy(path: Path, *, timeouts: Timeouts | None = None) -> CompiledPolicy:
    """Give the policy in a file; raises PolicyError, also if the file cannot be read or is no UTF-8.

    `timeouts` are those that the policy need not say.
    """
    try:
        with path.open("rb") as file:
            # What is longer than allowed is not read to its end.
            content = file.read(FILE_LIMIT_BYTES + 1)
        return parse_policy(content.decode(), file=str(path), timeouts=timeouts)
    except UnicodeDecodeError as error:
        before = content[: error.start].decode()
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        message, hint = "this is no UTF-8", "save the file with the encoding UTF-8"
    except OSError as error:
        line, column, message, hint = 1, 1, f"the file cannot be read: {error.strerror}", ""
    raise PolicyError(
        (Problem(code=_UNREADABLE, file=str(path), line=line, column=column, message=message, hint=hint),)
    )
