"""The block `reveal` of a policy file: what is sent to each neighbor, and under which name."""

import re
from dataclasses import replace
from typing import Final

from lark import Token, Tree

from messiahs.language.compiler.draft import Draft
from messiahs.language.compiler.peers import enter, read_peers
from messiahs.language.compiler.vocabulary import View
from messiahs.language.predicate.parsing import unescaped
from messiahs.language.predicate.source_places import quoted
from messiahs.language.runtime.readings import MACHINE
from messiahs.language.runtime.reveal_rules import EVERYTHING, Disclosure
from messiahs.language.syntax.literals import quantity_of
from messiahs.language.syntax.parsing import first_token, parse_statement, tokens_in_tree
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.statements import Item

REVEAL: Final = View(block="reveal", subject=MACHINE, scopes=())

_ATTRIBUTES: Final = ("reveal_all", "reveal_only")
_DEMAND: Final = ("reveal_demand", "hide_demand")
_TWICE: Final = {
    "attributes": "which attributes are revealed",
    "reveal_hide": "which counts are hidden",
    "reveal_as": "under which name",
    "demand": "whether unmet demand is revealed",
}
_SYSTEM: Final = re.compile(r"(?=.{1,255}\Z)[a-z0-9-]+(\.[a-z0-9-]+)*", re.ASCII)


def read_reveal(item: Item, draft: Draft) -> None:
    """Record what is revealed to some neighbors."""
    notebook = draft.reader.notebook
    tree = parse_statement(item.head, "reveal", notebook)
    disclosure = _disclosure(item, draft)
    if tree is None:
        return
    is_nothing = bool(tokens_in_tree(tree, "NOTHING"))
    peers = read_peers(tree, notebook)
    for peer in peers:
        if peer == "users":
            notebook.error(peer, Code.UNKNOWN_NAME, "users are not neighbors; they see what their module sees")
    if is_nothing and item.body is not None:
        notebook.error(item.head.end, Code.MEANING, "`nothing` takes no block", hint="write `;`")
    elif not is_nothing and not item.body:
        hint = "write { all; } or nothing;"
        notebook.error(item.head.end, Code.MEANING, "this does not state what is revealed", hint=hint)
    enter(peers, Disclosure(is_nothing=True) if is_nothing else disclosure, draft.revealed, notebook=notebook)


def _disclosure(item: Item, draft: Draft) -> Disclosure:
    """Combine the statements of a block; each may occur once, and only one of `all` and `only`."""
    disclosure, notebook = EVERYTHING, draft.reader.notebook
    seen: set[str] = set()
    for statement in item.body or ():
        tree = parse_statement(statement, "reveal_entry", notebook)
        if tree is None:
            continue
        kind = "attributes" if tree.data in _ATTRIBUTES else "demand" if tree.data in _DEMAND else str(tree.data)
        if kind in seen:
            notebook.error(first_token(tree), Code.TWICE, f"the block says {_TWICE[kind]} twice")
        seen.add(kind)
        disclosure = _with(disclosure, tree, draft)
    return disclosure


def _with(disclosure: Disclosure, tree: Tree[Token], draft: Draft) -> Disclosure:
    notebook = draft.reader.notebook
    match tree.data:
        case "reveal_all":
            return replace(disclosure, withheld=_names(tree, draft))
        case "reveal_only":
            return replace(disclosure, only=_names(tree, draft))
        case "reveal_hide":
            return replace(disclosure, least_count=_count(tokens_in_tree(tree, "INTEGER")[0], notebook))
        case "reveal_demand" | "hide_demand":
            return replace(disclosure, demand=tree.data == "reveal_demand")
        case _:
            (name,) = tokens_in_tree(tree, "TEXT")
            return replace(disclosure, name=_system_name(name, notebook))


def _names(tree: Tree[Token], draft: Draft) -> tuple[str, ...]:
    vocabulary, notebook = draft.reader.vocabulary, draft.reader.notebook
    variables = tokens_in_tree(tree, "VARIABLE")
    for variable in variables:
        vocabulary.look_up(variable, REVEAL, notebook)
    return tuple(sorted({variable[1:] for variable in variables}))


def _count(number: Token, notebook: Notebook) -> int:
    count = quantity_of(number).steps
    if count < 1:
        notebook.error(number, Code.RANGE, "a class has at least one machine")
    return count


def _system_name(token: Token, notebook: Notebook) -> str:
    name = unescaped(token)
    if not _SYSTEM.fullmatch(name):
        hint = "a name consists of small letters, digits and `-`, joined by dots"
        notebook.error(token, Code.MEANING, f"{quoted(name)} is not the name of a system", hint=hint)
    return name
