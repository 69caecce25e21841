"""Policy files on disk."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from messiahs.config.regular_files import read_at_most
from messiahs.core.interface.policies import Policy, Timeouts
from messiahs.errors import PolicyError, Problem
from messiahs.language.compiler.files import parse_policy
from messiahs.language.runtime.compiled_policy import CompiledPolicy, Source
from messiahs.language.syntax.scanning import FILE_LIMIT_BYTES
from messiahs.policy.open_policy import OpenPolicy

_TESTS_SUFFIX = ".policytest"
_UNREADABLE = "P001"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySource:
    """Everything that determines a module's policy: the text of its file (None: no file), and default timeouts."""

    file: str
    text: str | None
    timeouts: Timeouts

    @property
    def sha256(self) -> str:
        """SHA-256 of the text, in hexadecimal; empty without a file."""
        return "" if self.text is None else sha256(self.text.encode()).hexdigest()

    def policy(self) -> Policy:
        """Return the compiled policy, or without a file the one that accepts everything; raises PolicyError."""
        if self.text is None:
            return OpenPolicy(timeouts=self.timeouts)
        return _parsed(self.text, file=self.file, timeouts=self.timeouts)


def source_of(policy: Policy) -> PolicySource:
    """Return the source of a policy; a `TypeError` if it is unknown."""
    match policy:
        case OpenPolicy():
            return PolicySource(file="", text=None, timeouts=policy.timeouts)
        case CompiledPolicy(source=Source(file=file, text=text, timeouts=timeouts)):
            return PolicySource(file=file, text=text, timeouts=timeouts)
        case _:
            raise TypeError(f"the source of a {type(policy).__name__} is unknown")


def policy_source(path: Path | None, *, timeouts: Timeouts) -> PolicySource:
    """Read a policy file, if there is one; raises PolicyError if it cannot be read, but does not check its content."""
    if path is None:
        return PolicySource(file="", text=None, timeouts=timeouts)
    return PolicySource(file=str(path), text=policy_text(path), timeouts=timeouts)


def read_policy(path: Path, *, timeouts: Timeouts | None = None) -> CompiledPolicy:
    """Compile the policy in a file; raises PolicyError, also if the file cannot be read or is not UTF-8.

    `timeouts` are the defaults for timeouts that the policy does not set.
    """
    return _parsed(policy_text(path), file=str(path), timeouts=timeouts)


def _parsed(text: str, *, file: str, timeouts: Timeouts | None) -> CompiledPolicy:
    try:
        return parse_policy(text, file=file, timeouts=timeouts)
    except PolicyError:
        if not file.endswith(_TESTS_SUFFIX):
            raise
        message, hint = "this file contains tests of a policy, not a policy", f"`messiahs policy test {file}` runs them"
    problem = Problem(code=_UNREADABLE, file=file, line=1, column=1, message=message, hint=hint)
    raise PolicyError((problem,))


def policy_text(path: Path) -> str:
    """Read the text of a policy file; raises PolicyError if it cannot be read or is not UTF-8."""
    try:
        # A file that is too long is not read to its end.
        content = read_at_most(path, FILE_LIMIT_BYTES + 1)
        # The cut may be within a character; then the length is reported.
        return content.decode(errors="replace" if len(content) > FILE_LIMIT_BYTES else "strict")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode()
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        message, hint = "this file is not UTF-8", "save the file with the encoding UTF-8"
    except OSError as error:
        line, column, message, hint = 1, 1, f"the file cannot be read: {error.strerror}", ""
    raise PolicyError(
        (Problem(code=_UNREADABLE, file=str(path), line=line, column=column, message=message, hint=hint),)
    )
