"""The syntax of each block of a policy file: its word, its other keywords, and whether it has a body.

The keywords of the language, the starts of the grammar and the checks of bodies follow from it. The meaning of a block
is in a file of its own (`compiler/`), and `compiler/files.py` names the function that reads it.
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
    """A block of policy files; a keyword of two blocks may be listed in either."""

    word: str
    body: Body
    words: str = ""

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
        Block("advertise", Body.ALWAYS, "every or after change of by send all set when else"),
        Block("combine", Body.ALWAYS, "key carry drop default"),
        Block("reveal", Body.EITHER, "to nothing all except only hide counts below as"),
        Block("accept", Body.ALWAYS, "from require else when limit tasks per"),
        Block("rank", Body.NEVER, "tasks by first where most least random round robin"),
        Block("allocate", Body.NEVER, "by"),
        Block("migrate", Body.ALWAYS, "by offer when keep at least tasks ask every wanting"),
        Block("join", Body.ALWAYS, "allow parent when limit"),
        Block("running", Body.ALWAYS, "tasks where when unless for grace then else suspend resume vacate kill move"),
        Block("timeouts", Body.ALWAYS),
    )
}
"""In the order in which they are listed for users."""
