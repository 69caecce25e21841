"""Policy files on disk."""

from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from messiahs.config.installed_parts import PartSource, catalogue, why_not_as_recorded
from messiahs.config.regular_files import read_at_most
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.policies import Timeouts
from messiahs.errors import PolicyError, Problem
from messiahs.language.compiler.files import parse_policy
from messiahs.language.explaining.parts import parts_of
from messiahs.language.runtime.compiled_policy import CompiledPolicy, Source
from messiahs.language.syntax.scanning import FILE_LIMIT_BYTES
from messiahs.policy.open_policy import OpenPolicy

_TESTS_SUFFIX = ".policytest"
_UNREADABLE, _MISSING = "P001", "P304"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySource:
    """Everything that determines a module's policy: the text of its file (None: no file), and default timeouts."""

    file: str
    text: str | None
    timeouts: Timeouts
    parts: tuple[PartSource, ...] = ()
    """The parts from outside that the policy named when it was recorded; empty for a source that was not compiled."""

    @property
    def sha256(self) -> str:
        """SHA-256 of the text, in hexadecimal; empty without a file."""
        return "" if self.text is None else sha256(self.text.encode()).hexdigest()

    def policy(self) -> Policy:
        """Return the compiled policy, or without a file the one that accepts everything; raises PolicyError."""
        if self.text is None:
            return OpenPolicy(timeouts=self.timeouts)
        try:
            return _parsed(self.text, file=self.file, timeouts=self.timeouts)
        except PolicyError as error:
            raise self._missing_parts() or error from error

    def _missing_parts(self) -> PolicyError | None:
        missing = why_not_as_recorded(self.parts)
        hint = "install what it was recorded with, and try again"
        problems = (
            Problem(code=_MISSING, file=self.file, line=1, column=1, message=each, hint=hint) for each in missing
        )
        return PolicyError(tuple(problems)) if missing else None


def source_of(policy: Policy) -> PolicySource:
    """Return the source of a policy; a `TypeError` if it is unknown."""
    match policy:
        case OpenPolicy():
            return PolicySource(file="", text=None, timeouts=policy.timeouts)
        case CompiledPolicy(source=Source(file=file, text=text, timeouts=timeouts)):
            return with_parts(PolicySource(file=file, text=text, timeouts=timeouts), policy)
        case _:
            raise TypeError(f"the source of a {type(policy).__name__} is unknown")


def with_parts(source: PolicySource, policy: Policy) -> PolicySource:
    """Return the source of a policy with the parts from outside that the policy names."""
    if not isinstance(policy, CompiledPolicy):
        return source
    used = (each.declared for each in parts_of(policy) if each.declared.distribution)
    parts = (PartSource(name=each.name, distribution=each.distribution, version=each.version) for each in used)
    return replace(source, parts=tuple(parts))


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
        return parse_policy(text, file=file, timeouts=timeouts, catalogue=catalogue())
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
