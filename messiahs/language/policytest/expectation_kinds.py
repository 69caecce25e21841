"""What an expectation of a trial consists of: its grammar, how it is read, and how it is judged."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lark import Token, Tree

from messiahs.language.policytest.course import Course
from messiahs.language.policytest.phrases import Phrase
from messiahs.language.policytest.statements import Scene
from messiahs.language.policytest.verdicts import Verdict


class Expectation(Protocol):
    """What a trial expects of a decision."""

    def judge(self, course: Course, /) -> Verdict:
        """Ask the policy, compare its answer with the expectation, and explain it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationKind:
    """One form of `expect`: the name and the text of its rule in the grammar.

    The statements in `needs` must precede it. `read` gets the tree of its rule; `takes_block` is for those that may
    have a block.
    """

    rule: str
    grammar: str
    read: Callable[[Tree[Token], Phrase, Scene], Expectation]
    needs: tuple[str, ...] = ()
    takes_block: bool = False
