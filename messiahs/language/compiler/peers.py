"""The peers of `accept from` and `reveal to`: relations, names, any neighbor, the local users."""

from collections.abc import Mapping
from typing import Final, TypeVar

from lark import Token, Tree

from messiahs.core.model.neighbors import Relation
from messiahs.language.predicate.parsing import unescaped
from messiahs.language.predicate.source_places import quoted
from messiahs.language.syntax.parsing import first_token, trees_in
from messiahs.language.syntax.problems import Code, Notebook, nearest

_WORDS: Final = ("parent", "children", "siblings", "users", "any")
_RELATIONS: Final = {
    "parent": Relation.PARENT,
    "children": Relation.CHILD,
    "siblings": Relation.SIBLING,
    "users": Relation.SELF,
}
_Rule = TypeVar("_Rule")


def read_peers(tree: Tree[Token], notebook: Notebook) -> tuple[Token, ...]:
    """Return the peers that a head names, as written; unknown words are recorded and left out."""
    (peers,) = (part for part in trees_in(tree) if part.data == "peers")
    known: list[Token] = []
    for token in map(first_token, trees_in(peers)):
        if token.type == "NAME":
            hint = nearest(token, _WORDS) or f'peers are {", ".join(_WORDS)}; the name of a system is written "{token}"'
            notebook.error(token, Code.UNKNOWN_NAME, f"{quoted(token)} is not a peer", hint=hint)
        else:
            known.append(token)
    return tuple(known)


def enter(peers: tuple[Token, ...], rule: _Rule, rules: dict[str, _Rule], /, *, notebook: Notebook) -> None:
    """Record a rule for each of its peers; a peer that already has one is a problem."""
    for token in peers:
        if token in rules:
            notebook.error(token, Code.TWICE, f"{token} already has a block of this kind", hint="join the two blocks")
        rules[str(token)] = rule


def rules_by_name(rules: Mapping[str, _Rule]) -> tuple[tuple[str, _Rule], ...]:
    """Return the rules for named systems."""
    return tuple((unescaped(Token("TEXT", peer)), rule) for peer, rule in rules.items() if peer not in _WORDS)


def rules_by_relation(rules: Mapping[str, _Rule]) -> tuple[tuple[Relation, _Rule], ...]:
    """Return the rules for relations; `users` are those of the module itself."""
    return tuple((_RELATIONS[peer], rule) for peer, rule in rules.items() if peer in _RELATIONS)
