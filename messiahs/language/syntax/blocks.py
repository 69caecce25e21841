"""Each block of a policy file: its word, its other keywords, whether it has a body, and where its parts are.

The keywords of the language, the starts of the grammar, the checks of bodies and the words of tests follow from it. The
parts of a block are in rooms that import this one, so they are named here (`module:name`, as in an entry point).
"""

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Final


class Body(StrEnum):
    """Whether `{ ... }` follows the head of a block."""

    NEVER = "never"
    ALWAYS = "always"
    EITHER = "either"


_HEADS: Final = {"policy": "header", "group": "members"}
"""The rules of the grammar for heads that are not named by the word of their block."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of policy files; a keyword of two blocks may be listed in either.

    `words` are keywords everywhere, `names` only where the grammar expects them: elsewhere authors may use such names.
    In `compiler`, `reader` names the function that reads it, and `check` the one that warns about its rules. In
    `explaining`, `explainer` names the function that evaluates its rules. In `policytest`, `expectations` names what a
    test of a policy may expect of it. All but the first may be empty.
    """

    word: str
    body: Body
    words: str = ""
    _: KW_ONLY
    names: str = ""
    reader: str
    check: str = ""
    explainer: str = ""
    expectations: str = ""

    @property
    def starts(self) -> tuple[str, ...]:
        """The rules of the grammar for its head, and for the statements of its body."""
        head = _HEADS.get(self.word, self.word)
        return (head,) if self.body is Body.NEVER else (head, f"{head}_entry")


BLOCKS: Final = {
    block.word: block
    for block in (
        Block("policy", Body.NEVER, "version", reader="small_blocks:read_header"),
        Block(
            "attribute", Body.NEVER, "string int size duration percent optional", reader="small_blocks:read_attribute"
        ),
        Block("group", Body.NEVER, reader="small_blocks:read_group"),
        Block("let", Body.NEVER, reader="small_blocks:read_let"),
        Block(
            "advertise",
            Body.ALWAYS,
            "every or after change of by send all set when else",
            reader="advertise:read_advertise",
            check="advertise:check_advertise",
            explainer="advertise:advertise_in",
            expectations="advertise_expectations:EXPECTATIONS",
        ),
        Block("history", Body.ALWAYS, "keep", names="over", reader="history:read_history"),
        Block("combine", Body.ALWAYS, "key carry drop default", reader="small_blocks:read_combine"),
        Block(
            "reveal",
            Body.EITHER,
            "to nothing all except only hide counts below as demand",
            reader="reveal:read_reveal",
            expectations="reveal_expectations:EXPECTATIONS",
        ),
        Block(
            "accept",
            Body.ALWAYS,
            "from require else when limit tasks per to as",
            names="network",
            reader="accept:read_accept",
            check="accept:check_accept",
            explainer="accept:accept_in",
            expectations="accept_expectations:EXPECTATIONS",
        ),
        Block(
            "rank",
            Body.NEVER,
            "tasks by first where most least random round robin",
            reader="ranks:read_rank",
            expectations="rank_expectations:EXPECTATIONS",
        ),
        Block("allocate", Body.NEVER, "by", reader="allocate:read_allocate"),
        Block(
            "migrate",
            Body.ALWAYS,
            "by offer when keep at least tasks ask every wanting",
            reader="migrate:read_migrate",
            check="migrate:check_migrate",
            explainer="migrate:migrate_in",
            expectations="migrate_expectations:EXPECTATIONS",
        ),
        Block(
            "join",
            Body.ALWAYS,
            "allow parent when limit",
            reader="join:read_join",
            check="join:check_join",
            explainer="join:join_in",
            expectations="join_expectations:EXPECTATIONS",
        ),
        Block(
            "running",
            Body.ALWAYS,
            "tasks where when unless for grace then else suspend resume vacate kill move",
            reader="running:read_running",
            check="running:check_running",
            explainer="running:running_in",
            expectations="running_expectations:EXPECTATIONS",
        ),
        Block("timeouts", Body.ALWAYS, "then forever", reader="bounds:read_timeouts"),
        Block("limits", Body.ALWAYS, reader="bounds:read_limits"),
    )
}
"""In the order in which they are listed for users."""
