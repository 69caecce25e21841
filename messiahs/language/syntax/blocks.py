"""Each block of a policy file: its word, its other keywords, whether it has a body, and where its parts are.

The keywords of the language, the starts of the grammar, the checks of bodies and the words of tests follow from it. The
parts of a block are in rooms that import this one, so they are named here (`module:name`, as in an entry point).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Body(StrEnum):
    """Whether `{ ... }` follows the head of a block."""

    NEVER = "never"
    ALWAYS = "always"
    EITHER = "either"


@dataclass(frozen=True, slots=True)
class Block:
    """A block of policy files; a keyword of two blocks may be listed in either.

    `explainer` names the function that evaluates its rules, in `explaining`, and `expectations` what a test of a policy
    may expect of it, in `policytest`; empty without any.
    """

    word: str
    body: Body
    words: str = ""
    explainer: str = ""
    expectations: str = ""

    @property
    def starts(self) -> tuple[str, ...]:
        """The rules of the grammar for its head, and for the statements of its body."""
        head = "header" if self.word == "policy" else self.word
        return (head,) if self.body is Body.NEVER else (head, f"{head}_entry")


BLOCKS: Final = {
    block.word: block
    for block in (
        Block("policy", Body.NEVER, "version"),
        Block("attribute", Body.NEVER, "string int size duration percent optional"),
        Block("let", Body.NEVER),
        Block(
            "advertise",
            Body.ALWAYS,
            "every or after change of by send all set when else",
            explainer="advertise:advertise_in",
            expectations="advertise_expectations:EXPECTATIONS",
        ),
        Block("combine", Body.ALWAYS, "key carry drop default"),
        Block(
            "reveal",
            Body.EITHER,
            "to nothing all except only hide counts below as",
            expectations="reveal_expectations:EXPECTATIONS",
        ),
        Block(
            "accept",
            Body.ALWAYS,
            "from require else when limit tasks per",
            explainer="accept:accept_in",
            expectations="accept_expectations:EXPECTATIONS",
        ),
        Block(
            "rank",
            Body.NEVER,
            "tasks by first where most least random round robin",
            expectations="rank_expectations:EXPECTATIONS",
        ),
        Block("allocate", Body.NEVER, "by"),
        Block(
            "migrate",
            Body.ALWAYS,
            "by offer when keep at least tasks ask every wanting",
            explainer="migrate:migrate_in",
            expectations="migrate_expectations:EXPECTATIONS",
        ),
        Block(
            "join",
            Body.ALWAYS,
            "allow parent when limit",
            explainer="join:join_in",
            expectations="join_expectations:EXPECTATIONS",
        ),
        Block(
            "running",
            Body.ALWAYS,
            "tasks where when unless for grace then else suspend resume vacate kill move",
            explainer="running:running_in",
            expectations="running_expectations:EXPECTATIONS",
        ),
        Block("timeouts", Body.ALWAYS),
    )
}
"""In the order in which they are listed for users."""
