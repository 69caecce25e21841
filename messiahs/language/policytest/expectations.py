"""The expectations of a `*.policytest` file: the blocks of policy files each bring their own (`syntax/blocks.py`)."""

import re
from functools import cache
from pkgutil import resolve_name
from typing import Final

from messiahs.language.policytest.expectation_kinds import Expectation, ExpectationKind
from messiahs.language.policytest.phrases import Phrase
from messiahs.language.policytest.statements import NAMED_TASK, Scene
from messiahs.language.runtime.readings import CANDIDATE, HERE, MACHINE, PEER
from messiahs.language.syntax.blocks import BLOCKS
from messiahs.language.syntax.parsing import parse_statement, tokens_in_tree, trees_in
from messiahs.language.syntax.problems import Code

_MISSING: Final = {
    PEER: ("the asking system is not stated", 'write peer { name = "cs"; relation = "parent"; } before it'),
    HERE: ("nothing is stated about the own machine", "write here { load = 10%; } before it"),
    CANDIDATE: ("no candidate is stated", 'write candidate "a" { load = 10%; } before it'),
    NAMED_TASK: ("no named task is stated", 'write task "a" { mem = 1GiB; } before it'),
    MACHINE: ("no machines are stated", "write machines 5 { load = 10%; } before it"),
}
_NO_WORDS: Final = frozenset({"TEXT", "COMMA"})


@cache
def expectation_kinds() -> dict[str, ExpectationKind]:
    """Return every kind of expectation by its rule in the grammar."""
    found: dict[str, ExpectationKind] = {}
    for name in (block.expectations for block in BLOCKS.values() if block.expectations):
        kinds: tuple[ExpectationKind, ...] = resolve_name(f"{__package__}.{name}")
        found.update((kind.rule, kind) for kind in kinds)
    return found


def expected_words() -> frozenset[str]:
    """Return the words of all expectations, after `expect`, as the grammar names them."""
    kinds = expectation_kinds().values()
    return frozenset(word for kind in kinds for word in re.findall(r"\b[A-Z]+\b", kind.grammar)) - _NO_WORDS


def expectation_rules() -> str:
    """Return the rules of the grammar for all expectations, and their words."""
    kinds = expectation_kinds().values()
    rules = [f"expect: EXPECT ({' | '.join(kind.rule for kind in kinds)})"]
    rules += [f"{kind.rule}: {kind.grammar}" for kind in kinds]
    return "\n".join((*rules, f"%declare {' '.join(sorted(expected_words()))}", ""))


def read_expectation(phrase: Phrase, scene: Scene) -> Expectation | None:
    """Read the rest of an `expect` statement; None, with a problem, if it is invalid or needs an earlier statement."""
    tree = parse_statement(phrase.head, "expect", scene.notebook, grammar=scene.grammar)
    if tree is None:
        return None
    (said,) = trees_in(tree)
    kind = expectation_kinds()[str(said.data)]
    if phrase.body is not None and (not kind.takes_block or tokens_in_tree(said, "NOTHING")):
        message = f"`expect {kind.rule}` takes no block"
        scene.notebook.error(phrase.head.end, Code.SYNTAX, message, hint="end it with `;`")
    for scope in kind.needs:
        if scope not in scene.stated:
            message, hint = _MISSING[scope]
            scene.notebook.error(phrase.word, Code.MEANING, message, hint=hint)
    return kind.read(said, phrase, scene)
