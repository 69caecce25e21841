"""Collects the problems of one policy file, so that all of them are reported at once."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

from lark import Token

from messiahs.errors import Problem
from messiahs.language.predicate.source_places import showable

_PROBLEM_LIMIT: Final = 100


class Code(StrEnum):
    """Codes of problems, as shown to users."""

    FORBIDDEN = "P101"
    WORD = "P102"
    NUMBER = "P103"
    STRING = "P104"
    LIMIT = "P105"
    SYNTAX = "P106"
    UNKNOWN_ATTRIBUTE = "P201"
    SCOPE = "P202"
    TYPE = "P203"
    DIMENSION = "P204"
    TWO_TYPES = "P205"
    RANGE = "P206"
    LET = "P207"
    NOT_OF_THE_PAPER = "P208"
    NEVER_TRUE = "P209"
    UNKNOWN_NAME = "P301"
    TWICE = "P302"
    MEANING = "P303"
    UNKNOWN_PART = "P304"
    PARAMETER = "P305"
    PARAMETER_VALUE = "P306"
    BARE_NUMBER = "P401"
    XOR = "P402"
    NO_LIMIT = "P403"
    ALWAYS_TRUE = "P404"
    DEAD_PART = "P405"
    TOGETHER = "P406"
    LOST_SENSOR = "P407"
    NEGATED_OPTIONAL = "P408"
    VAIN_PRESENCE = "P409"
    UNREACHABLE = "P410"
    UNSAID = "P411"
    UNUSED = "P412"
    TERMINALS_ONLY = "P413"
    EMPTY = "P414"
    NEVER_RESUMED = "P415"


@dataclass(slots=True, kw_only=True)
class Notebook:
    """Problems of one file, added while it is read. A position has at most one problem of each kind.

    `mistakes` counts all reported errors, including duplicates and those beyond the limit.
    """

    file: str
    text: str
    found: dict[tuple[int, Code], Problem] = field(default_factory=dict)
    shown: dict[int, str] = field(default_factory=dict)
    mistakes: int = 0

    def error(self, token: Token, code: Code, message: str, /, *, hint: str = "", label: str = "") -> None:
        """Record an error at a word of the file."""
        self.mistakes += 1
        self._note(token, code, message, hint=hint, label=label)

    def warning(self, token: Token, code: Code, message: str, /, *, hint: str = "") -> None:
        """Record a valid construct that is probably a mistake."""
        self._note(token, code, message, hint=hint, is_warning=True)

    @property
    def errors(self) -> int:
        """Number of errors so far, without warnings."""
        return sum(not problem.is_warning for problem in self.found.values())

    @property
    def is_full(self) -> bool:
        """Whether the limit of recorded problems is reached."""
        return len(self.found) >= _PROBLEM_LIMIT

    def in_order(self) -> tuple[Problem, ...]:
        """Return all problems in the order of the file."""
        return tuple(self.found[key] for key in sorted(self.found))

    def _note(
        self, token: Token, code: Code, message: str, *, hint: str = "", label: str = "", is_warning: bool = False
    ) -> None:
        if self.is_full:
            return  # computing a line and column takes time proportional to the text
        start, end = token.start_pos or 0, token.end_pos or 0
        line_start = self.text.rfind("\n", 0, start) + 1
        problem = Problem(
            code=code,
            file=self.file,
            line=self.text.count("\n", 0, start) + 1,
            column=start - line_start + 1,
            message=message,
            hint=hint,
            label=label,
            source=self._line_at(line_start),
            width=max(1, end - start),
            is_warning=is_warning,
        )
        self.found.setdefault((start, code), problem)

    def _line_at(self, start: int) -> str:
        # A hostile file may be a single line with many mistakes.
        if start not in self.shown:
            end = self.text.find("\n", start)
            self.shown[start] = showable(self.text[start : end if end >= 0 else len(self.text)])
        return self.shown[start]


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint at the known name nearest to `name`, or an empty text if none is similar."""
    near = get_close_matches(name, sorted(known), n=1)
    return f"did you mean `{near[0]}`?" if near else ""
