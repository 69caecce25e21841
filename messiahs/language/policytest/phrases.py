"""Phrases of a `*.policytest` file: words up to a `;`, or up to braces with phrases in them.

After a mistake, reading continues after the next `;` or `}`, so that all mistakes of a file are reported.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lark import Token

from messiahs.language.predicate.source_places import quoted
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.statements import Statement

_DEPTH_LIMIT: Final = 8
_ENDS: Final = frozenset({"SEMICOLON", "LBRACE", "RBRACE", "$END"})


@dataclass(frozen=True, slots=True)
class Phrase:
    """At least one word and the token after them; `body` are the phrases in its braces, None without braces."""

    head: Statement
    body: "tuple[Phrase, ...] | None" = None

    @property
    def word(self) -> Token:
        """Its first word."""
        return self.head.words[0]


@dataclass(slots=True)
class _Reader:
    """A position in the words (mutable)."""

    tokens: Sequence[Token]
    notebook: Notebook
    place: int = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.place]

    def take(self) -> Token:
        token = self.tokens[self.place]
        self.place += 1
        return token


def phrases_of(tokens: Sequence[Token], notebook: Notebook, /) -> tuple[Phrase, ...]:
    """Split the words of a file into phrases; the last word is of type `$END`."""
    reader = _Reader(tokens, notebook)
    phrases: list[Phrase] = []
    while reader.next.type != "$END":
        phrases += _phrases(reader, depth=0)
        if reader.next.type == "RBRACE":
            notebook.error(reader.take(), Code.SYNTAX, "`}` has nothing to end", hint="remove it")
    return tuple(phrases)


def _phrases(reader: _Reader, *, depth: int) -> tuple[Phrase, ...]:
    """Read up to the `}` or the end, without consuming it; a `test` in a test begins a new test."""
    phrases: list[Phrase] = []
    while reader.next.type not in {"RBRACE", "$END"} and not (depth and _begins_test(reader)):
        phrase = _phrase(reader, depth=depth)
        if phrase is not None:
            phrases.append(phrase)
    return tuple(phrases)


def _phrase(reader: _Reader, *, depth: int) -> Phrase | None:
    words: list[Token] = []
    while reader.next.type not in _ENDS and not (words and _begins_test(reader)):
        words.append(reader.take())
    end = reader.next
    if end.type in {"SEMICOLON", "LBRACE"}:
        reader.take()
    elif words and words[-1].type != "BAD":
        shown = "the end" if end.type == "$END" else quoted(end)
        reader.notebook.error(end, Code.SYNTAX, f"a `;` is missing before {shown}")
    if not words:
        message = "this block has no name" if end.type == "LBRACE" else "`;` has nothing to end"
        reader.notebook.error(end, Code.SYNTAX, message)
    body = _body(reader, depth=depth + 1) if end.type == "LBRACE" else None
    return Phrase(Statement(tuple(words), end), body) if words else None


def _body(reader: _Reader, *, depth: int) -> tuple[Phrase, ...]:
    if depth > _DEPTH_LIMIT:
        reader.notebook.error(reader.next, Code.LIMIT, f"braces are nested deeper than {_DEPTH_LIMIT}")
        while reader.next.type != "$END":
            reader.take()
        return ()
    phrases = _phrases(reader, depth=depth)
    if reader.next.type == "RBRACE":
        reader.take()
    else:
        shown = "the end" if reader.next.type == "$END" else quoted(reader.next)
        reader.notebook.error(reader.next, Code.SYNTAX, f"a `}}` is missing before {shown}")
    return phrases


def _begins_test(reader: _Reader) -> bool:
    return reader.next.type == "TEST" and reader.tokens[reader.place + 1].type == "TEXT"
