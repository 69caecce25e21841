"""The expectations of a `*.policytest` file, each with the statements that must precede it."""

from collections.abc import Mapping
from typing import Final

from lark import Token, Tree

from messiahs.core.interface.policies import Act
from messiahs.core.model.attributes import Attribute, Scope
from messiahs.language.policytest.phrases import Phrase
from messiahs.language.policytest.statements import NAMED_TASK, Scene, body_of, read_values
from messiahs.language.policytest.trials import (
    ExpectAccept,
    ExpectActs,
    ExpectAsk,
    Expectation,
    ExpectEntry,
    ExpectOffer,
    ExpectRank,
    ExpectRefuse,
    ExpectReveal,
    ExpectSend,
)
from messiahs.language.predicate.parsing import unescaped
from messiahs.language.runtime.readings import CANDIDATE, HERE, MACHINE, PEER
from messiahs.language.syntax.parsing import first_token, parse_statement, tokens_in_tree, trees_in
from messiahs.language.syntax.problems import Code

_MISSING: Final = {
    PEER: ("the asking system is not stated", 'write peer { name = "cs"; relation = "parent"; } before it'),
    HERE: ("nothing is stated about the own machine", "write here { load = 10%; } before it"),
    CANDIDATE: ("no candidate is stated", 'write candidate "a" { load = 10%; } before it'),
    NAMED_TASK: ("no named task is stated", 'write task "a" { mem = 1GiB; } before it'),
    MACHINE: ("no machines are stated", "write machines 5 { load = 10%; } before it"),
}
_NEEDS: Final = {
    "accept": (PEER,),
    "refuse": (PEER,),
    "send": (HERE,),
    "rank": (CANDIDATE,),
    "rank_tasks": (NAMED_TASK,),
    "admit": (PEER,),
    "reveal": (PEER, MACHINE),
}
_WITH_BODY: Final = frozenset({"send", "reveal"})
COUNTED: Final = tuple(
    Attribute(name=name, scope=Scope.MACHINE, supplier="module", meaning=meaning, low=0)
    for name, meaning in (("machines", "machines in the vector"), ("classes", "classes in the vector"))
)
"""What may be expected of a vector besides its attributes."""


def read_expectation(phrase: Phrase, scene: Scene) -> Expectation | None:
    """Read the rest of an `expect` statement; None, with a problem, if it is invalid or needs an earlier statement."""
    tree = parse_statement(phrase.head, "expect", scene.notebook, grammar=scene.grammar)
    if tree is None:
        return None
    (said,) = trees_in(tree)
    rule = str(said.data)
    is_nothing = bool(tokens_in_tree(said, "NOTHING"))
    if phrase.body is not None and (rule not in _WITH_BODY or is_nothing):
        scene.notebook.error(phrase.head.end, Code.SYNTAX, f"`expect {rule}` takes no block", hint="end it with `;`")
    for scope in _NEEDS.get(rule, ()):
        if scope not in scene.told:
            message, hint = _MISSING[scope]
            scene.notebook.error(phrase.word, Code.MEANING, message, hint=hint)
    return _expectation(said, phrase, scene, is_nothing=is_nothing)


def _expectation(tree: Tree[Token], phrase: Phrase, scene: Scene, *, is_nothing: bool) -> Expectation:
    texts = tuple(unescaped(token) for token in tokens_in_tree(tree, "TEXT"))
    match tree.data:
        case "accept":
            return ExpectAccept()
        case "refuse":
            return ExpectRefuse(text=texts[0] if texts else None, by_limit=bool(tokens_in_tree(tree, "LIMIT")))
        case "send":
            return ExpectSend(read_values(body_of(phrase, scene), scene.known(MACHINE), scene.notebook))
        case "rank" | "rank_tasks":
            return ExpectRank(texts, of_tasks=tree.data == "rank_tasks")
        case "offer":
            return ExpectOffer(is_offered=bool(tokens_in_tree(tree, "OFFER")))
        case "ask":
            return ExpectAsk(is_asking=not is_nothing)
        case "admit":
            return ExpectEntry(is_admitted=bool(tokens_in_tree(tree, "ADMIT")))
        case "reveal":
            body = () if is_nothing else body_of(phrase, scene)
            wanted = read_values(body, _revealed(scene), scene.notebook)
            return ExpectReveal(wanted, name=texts[0] if texts else None, is_nothing=is_nothing)
        case _:
            return ExpectActs(tuple(Act(first_token(act)) for act in trees_in(tree)))


def _revealed(scene: Scene) -> Mapping[str, Attribute]:
    return {**scene.known(MACHINE), **{each.name: each for each in COUNTED}}
