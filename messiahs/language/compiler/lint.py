"""Warnings about a valid policy file: rules that contradict each other or never apply."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pkgutil import resolve_name
from typing import Final

from lark import Token

from messiahs.language.compiler.constant_predicates import certainty_in
from messiahs.language.compiler.draft import Draft
from messiahs.language.compiler.provability import Certainty
from messiahs.language.syntax.blocks import BLOCKS
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.statements import Item, Statement

_RELATIONS: Final = {"PARENT", "CHILDREN", "SIBLINGS"}
_OF_PEERS: Final = {"FROM", "TO"}

Check = Callable[[Draft, Certainty], None]
"""Adds the warnings about the rules of one block of the language; the file is valid."""


def review(items: Sequence[Item], draft: Draft) -> None:
    """Add every warning."""
    notebook = draft.reader.notebook
    if not items:
        start = Token("$START", "", start_pos=0, end_pos=0)
        hint = 'only local users are accepted; admit others with `accept`, or begin with `policy "NAME";`'
        notebook.warning(start, Code.EMPTY, "this file contains no policy", hint=hint)
    certainty = certainty_in(draft.reader.vocabulary, draft.reader.effort)
    for heads in _heads_by_peer(items):
        _warn_of_unreachable(heads, notebook)
    for block in BLOCKS.values():
        if block.check:
            check: Check = resolve_name(f"{__package__}.{block.check}")
            check(draft, certainty)
    _warn_of_unused(items, notebook)
    _warn_of_unused_definitions(items, notebook)
    _warn_of_block_for_all(items, notebook)


def _heads_by_peer(items: Sequence[Item]) -> Iterable[list[Statement]]:
    """Return the heads of the blocks that are for some peers, by kind of block."""
    found: dict[str, list[Statement]] = {}
    for head in (item.head for item in items):
        if any(word.type in _OF_PEERS for word in head.words[1:2]):
            found.setdefault(head.words[0].type, []).append(head)
    return found.values()


def _warn_of_unreachable(heads: Sequence[Statement], notebook: Notebook) -> None:
    """Warn of a block for `any` if every neighbor has a closer one, unless it reveals nothing: that is for safety."""
    is_safe = any({"ANY", "NOTHING"} <= {word.type for word in head.words} for head in heads)
    words: list[Token] = [word for head in heads for word in head.words]
    if {word.type for word in words} >= _RELATIONS:
        for word in words:
            if word.type == "ANY" and not is_safe:
                hint = "parent, children and siblings have blocks of their own"
                notebook.warning(word, Code.UNREACHABLE, "this applies to no neighbor", hint=hint)


def _warn_of_unused(items: Sequence[Item], notebook: Notebook) -> None:
    """Warn of an attribute that is declared and never used in the file."""
    used: set[str] = set()
    declared: list[Token] = []
    for item in items:
        names = [word for each in (item.head, *(item.body or ())) for word in each.words if word.type == "VARIABLE"]
        if item.head.words[0].type == "ATTRIBUTE":
            declared += names
        else:
            used.update(name[1:].rpartition(".")[2] for name in names)
    for token in declared:
        if token[1:] not in used:
            hint = "remove it, or, if machines of a topology have it, name that with `policy check --topology`"
            notebook.warning(token, Code.UNUSED, f"{token} is declared and never used in this policy", hint=hint)


def _warn_of_unused_definitions(items: Sequence[Item], notebook: Notebook) -> None:
    """Warn of a definition (`WORD NAME = …`) whose name occurs nowhere else in the file."""
    words = [word for item in items for each in (item.head, *(item.body or ())) for word in each.words]
    named = Counter(str(word) for word in words if word.type == "NAME")
    for word, *rest in (item.head.words for item in items):
        if [each.type for each in rest[:2]] == ["NAME", "EQUAL"] and named[str(rest[0])] == 1:
            text = f"`{word} {rest[0]}` is never used in this policy"
            notebook.warning(rest[0], Code.UNUSED, text, hint="remove it")


def _warn_of_block_for_all(items: Sequence[Item], notebook: Notebook) -> None:
    """Warn of an `accept` without senders if no other one has senders."""
    heads = [item.head.words for item in items if item.head.words[0].type == "ACCEPT"]
    if heads and all(len(words) == 1 for words in heads):
        hint = "name those who may place tasks: accept from children { limit 100 tasks; }"
        notebook.warning(heads[0][0], Code.UNREACHABLE, "this applies to nobody", hint=hint)
