"""Every exception of this project, by who has to act on it.

A bug is an `assert`; a neighbor's mistake is a `Report` action of the core, never an exception.
"""

import errno
from dataclasses import dataclass
from typing import Final

_SHOWN_COLUMNS: Final = 120
_FREE_SPACE: Final = "free space on that disk, and repeat it"
_OTHER_ACCOUNT: Final = "it is for the account of its owner: repeat it as that account, or as root"
_REMEDIES: Final = {
    errno.ENOSPC: _FREE_SPACE,
    errno.EDQUOT: _FREE_SPACE,
    errno.EACCES: _OTHER_ACCOUNT,
    errno.EPERM: _OTHER_ACCOUNT,
    errno.EROFS: "mount that disk for writing, and repeat it",
}


class MessiahsError(Exception):
    """Base class; the text can be shown to a user unchanged."""


class PredicateError(MessiahsError):
    """A predicate is invalid; the text contains the position (line and column from 1) and a hint."""

    def __init__(self, message: str, *, line: int = 1, column: int = 1, source: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message, self.line, self.column, self.source, self.hint = message, line, column, source, hint

    def __str__(self) -> str:
        """Return the message with its line, a caret under the position, and the hint."""
        lines = self.source.splitlines()
        shown = f"{self.line}:{self.column}: {self.message}"
        if 0 < self.line <= len(lines):
            window_start = max(0, self.column - 61)
            text = lines[self.line - 1][window_start : window_start + 120]
            shown += f"\n    {text}\n    {' ' * (self.column - 1 - window_start)}^"
        return f"{shown}\n    = help: {self.hint}" if self.hint else shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One mistake in a policy file; line and column count from 1, and `source` is the line, safe to print."""

    code: str
    file: str
    line: int
    column: int
    message: str
    hint: str = ""
    label: str = ""
    source: str = ""
    width: int = 1
    is_warning: bool = False

    def facts(self) -> dict[str, object]:
        """Return the problem as a JSON document; `end_column` is exclusive and does not exceed the first line."""
        return {
            "code": self.code,
            "severity": "warning" if self.is_warning else "error",
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "end_column": min(self.column + self.width, max(self.column, len(self.source)) + 1),
            "message": self.message,
            "hint": self.hint,
            "label": self.label,
            "source": self.source,
        }

    def __str__(self) -> str:
        """Return the message with its line, carets under the position, and the hint."""
        severity = "warning" if self.is_warning else "error"
        shown = f"{self.file}:{self.line}:{self.column}: {severity}[{self.code}]: {self.message}"
        start = max(0, self.column - 61)
        text = self.source[start : start + _SHOWN_COLUMNS]
        if text.strip():
            carets = "^" * max(1, min(self.width, len(text) - (self.column - 1 - start)))
            shown += (
                f"\n{self.line:5} | {text}\n      | {' ' * (self.column - 1 - start)}{carets} {self.label}".rstrip()
            )
        return f"{shown}\n      = help: {self.hint}" if self.hint else shown


class PolicyError(MessiahsError):
    """A policy file has mistakes; `problems` contains all of them, and warnings."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class TopologyError(MessiahsError):
    """A topology file has one or more problems, each with file, line and column."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class ExecutorError(MessiahsError):
    """A task could not be started or controlled; `transient` means that a retry may succeed."""

    def __init__(self, message: str, *, transient: bool) -> None:
        super().__init__(message)
        self.transient = transient


class ChannelError(MessiahsError):
    """A neighbor could not be reached, or its connection ended.

    `public` is what other systems may read of the text: no addresses and no files of this host.
    """

    def __init__(self, text: str, *, public: str = "") -> None:
        super().__init__(text)
        self.public = public or text


class RefusedError(ChannelError):
    """A neighbor was reached and refused the request; the text is the neighbor's."""


class DeniedError(RefusedError):
    """A system was reached and does not let this module send or read bytes of a claim."""


class BeyondError(ChannelError):
    """A system was reached and could not take or give bytes now, or one beyond it could not; the text names which."""


class ProtocolError(ChannelError):
    """A peer's answer violates the protocol or its own announcement; a retry does not help."""


class UntrustedError(ChannelError):
    """One side does not trust the certificate of the other, so no connection is possible; a retry does not help.

    `claimed` is the system that the certificate names, if no root has confirmed that.
    """

    def __init__(self, message: str, *, claimed: str | None = None, public: str = "") -> None:
        super().__init__(message, public=public)
        self.claimed = claimed


class DeclinedError(MessiahsError):
    """This module does not let bytes of others pass; the text names the module concerned and the reason.

    With `is_brief` it helps to try again soon. With `is_denied` the peer has no right to the claim.
    """

    def __init__(self, text: str, *, is_brief: bool = False, is_denied: bool = False) -> None:
        super().__init__(text)
        self.is_brief, self.is_denied = is_brief, is_denied


class CodecError(MessiahsError):
    """Received bytes are not a valid message: malformed, oversized or out of range."""


class StoreError(MessiahsError):
    """The state on disk cannot be read or written; the text names the file and the remedy."""


class NoRoomError(StoreError):
    """The disk has no room for a file, or too little would be left for everything else."""


class UnusableStateError(StoreError):
    """The state on disk is damaged, or written by a newer release; a retry does not help, an administrator must act.

    A daemon with such a state exits with `EXIT_CODE`.
    """

    EXIT_CODE: Final = 65


class CertificateError(MessiahsError):
    """A certificate is not made, not taken or not revoked; the text says why and what an administrator can do."""


class RevocationListError(CertificateError):
    """A list of revoked certificates is damaged, or no root of the site has signed it, as after a new root."""


class TraceError(MessiahsError):
    """A trace cannot be written or read; the text names the file and the reason."""


class ClientError(MessiahsError):
    """A command could not be carried out; `code` is its exit code, `USAGE` if its words are at fault."""

    USAGE: Final = 2

    def __init__(self, message: str, *, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class OptionValueError(ClientError, ValueError):
    """The value of an option of a task cannot be one; the text has the option, the value, and what is allowed."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=ClientError.USAGE)


class WorkflowError(ClientError):
    """A file of tasks has one or more problems, each with file, line and column; nothing was submitted."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems), code=ClientError.USAGE)
        self.problems = problems


class PartRefusedError(ClientError):
    """A module refuses one of several submissions, at its `place` from 0, and so all of them."""

    def __init__(self, text: str, place: int) -> None:
        super().__init__(text, code=ClientError.USAGE)
        self.place = place


class UnknownTaskError(ClientError):
    """A module knows no task of that id; the text has the id."""


class UnknownRequestError(ClientError):
    """A module that is of an earlier release than its client does not have a request."""


class TaskFailedError(MessiahsError):
    """A task ended without the result of a call; the text says how."""


class PythonMismatchError(TaskFailedError):
    """Calls were not run, because the Python that pickled them is not there; the text has both versions."""


class ModuleUnreachableError(ClientError):
    """No module answers at the socket: it is not running, is still starting, or does not serve requests."""


class ModuleSilentError(ModuleUnreachableError):
    """A module runs and serves no request now; the text says why, as far as that is known."""


def explained(error: OSError) -> str:
    """Return an error of the operating system with its file, and what to do if that is known."""
    place = f"{error.filename}: " if error.filename else ""
    remedy = _REMEDIES.get(error.errno or 0)
    return f"{place}{error.strerror or error}{f'; {remedy}' if remedy else ''}"


def lacks_files(error: BaseException | None) -> bool:
    """Whether an error comes from this process, or its host, that may open no more files."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            return True
        error = error.__cause__
    return False


def public_of(error: Exception) -> str:
    """Return what other systems may read of an error: no addresses and no files of this host."""
    match error:
        case ChannelError():
            return error.public
        case NoRoomError():
            return "its disk has no room"
        case StoreError():
            return "it can store no files now"
        case OSError() if error.errno is not None:
            return error.strerror or type(error).__name__
        case _:
            return str(error)
