"""Statements and blocks of a policy file: their bounds, independent of mistakes inside them.

After a mistake, reading continues after the next `;` or `}`, so that all mistakes of a file are reported.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lark import Token

from messiahs.language.predicate.source_places import quoted
from messiahs.language.syntax.blocks import BLOCKS
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.scanning import BAD

ITEM_WORDS: Final = frozenset(word.upper() for word in BLOCKS)


@dataclass(frozen=True, slots=True)
class Statement:
    """At least one word, and the `;`, `{` or `}` after them."""

    words: tuple[Token, ...]
    end: Token


@dataclass(frozen=True, slots=True)
class Item:
    """A top-level statement, with the statements of its block if it has one."""

    head: Statement
    body: tuple[Statement, ...] | None = None


@dataclass(slots=True)
class _Reader:
    """A position in the words (mutable)."""

    tokens: Sequence[Token]
    notebook: Notebook
    place: int = 0

    def peek(self) -> Token:
        return self.tokens[self.place]

    def take(self) -> Token:
        token = self.tokens[self.place]
        self.place += 1
        return token


def items_of(tokens: Sequence[Token], notebook: Notebook) -> tuple[Item, ...]:
    """Split the words of a file into items; the last word is of type `$END`."""
    reader = _Reader(tokens, notebook)
    items: list[Item] = []
    while reader.peek().type != "$END":
        token = reader.peek()
        if token.type in {"RBRACE", "SEMICOLON", "LBRACE"}:
            reader.take()
            if token.type == "LBRACE":
                notebook.error(token, Code.SYNTAX, "this block has no name")
                _body(reader)
            else:
                notebook.error(token, Code.SYNTAX, f"{quoted(token)} has nothing to end", hint="remove it")
            continue
        items.append(_item(reader))
    return tuple(items)


def _item(reader: _Reader) -> Item:
    words = [reader.take()]
    while reader.peek().type not in {"SEMICOLON", "LBRACE", "RBRACE", "$END"}:
        if reader.peek().type in ITEM_WORDS:
            break  # the `;` before it is missing
        words.append(reader.take())
    end = reader.peek()
    if end.type == "LBRACE":
        reader.take()
        return Item(Statement(tuple(words), end), _body(reader))
    if end.type == "SEMICOLON":
        reader.take()
    else:
        _note_missing_end(reader, words)
        if end.type == "RBRACE":
            reader.take()
    return Item(Statement(tuple(words), end))


def _body(reader: _Reader) -> tuple[Statement, ...]:
    statements: list[Statement] = []
    while reader.peek().type != "RBRACE":
        if reader.peek().type == "$END" or reader.peek().type in ITEM_WORDS:
            end = reader.peek()
            reader.notebook.error(end, Code.SYNTAX, f"a `}}` is missing before {_shown(end)}")
            return tuple(statements)
        statement = _statement(reader)
        if statement.words:
            statements.append(statement)
    reader.take()
    return tuple(statements)


def _statement(reader: _Reader) -> Statement:
    words: list[Token] = []
    depth = 0
    while reader.peek().type != "$END":
        token = reader.peek()
        if depth == 0 and token.type == "SEMICOLON":
            if not words:
                reader.notebook.error(token, Code.SYNTAX, "`;` has nothing to end", hint="remove it")
            return Statement(tuple(words), reader.take())
        if (depth == 0 and token.type == "RBRACE") or (token.type in ITEM_WORDS and words):
            break
        depth += (token.type == "LBRACE") - (token.type == "RBRACE")
        words.append(reader.take())
    _note_missing_end(reader, words)
    return Statement(tuple(words), reader.peek())


def _note_missing_end(reader: _Reader, words: list[Token]) -> None:
    # An unclosed string may contain the `;`, and is already a problem.
    if not words or words[-1].type != BAD:
        end = reader.peek()
        reader.notebook.error(end, Code.SYNTAX, f"a `;` is missing before {_shown(end)}")


def _shown(token: Token) -> str:
    return "the end" if token.type == "$END" else quoted(token)
