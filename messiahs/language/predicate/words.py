"""The words of a predicate, found by the terminals of its grammar (MESSIAHS 5.4)."""

import re
from collections.abc import Iterator
from typing import Final

from lark import Token
from lark.common import LexerConf
from lark.lexer import Lexer

from messiahs.language.predicate.error_messages import check_integer, no_word
from messiahs.language.predicate.limits import LENGTH_LIMIT_BYTES, bounded, is_too_long
from messiahs.language.predicate.source_places import error_at

FORBIDDEN: Final = re.compile(r"[\x00\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT_INTEGER: Final = 18
_NO_WORD: Final = "no_word"


class Words(Lexer):
    """Splits a text into words by one regular expression, made from the terminals of a grammar.

    Lark's own lexer finds the same words, but is slower: it counts lines, and does not allow for checking the limits.
    """

    def __init__(self, conf: LexerConf) -> None:
        patterns = {terminal.name: terminal.pattern.to_regexp() for terminal in conf.terminals}
        space = "|".join(patterns.pop(name) for name in conf.ignore)
        words = "|".join(f"(?P<{name}>{pattern})" for name, pattern in patterns.items())
        # Every character is part of a word or of the space before it, so none is tried more than a few times.
        self._find = re.compile(rf"(?:{space})*(?:{words}|(?P<{_NO_WORD}>.)|\Z)", re.DOTALL).finditer

    def lex(self, text: str) -> Iterator[Token]:  # type: ignore[override]  # lark documents this signature
        """Yield the words of a text within all limits. Raises PredicateError and TooMuchError."""
        _check_characters(text)
        return bounded(self._words(text))

    def _words(self, text: str) -> Iterator[Token]:
        for match in self._find(text):
            terminal = match.lastgroup
            if terminal is None:
                continue
            word, start = match[terminal], match.start(terminal)
            if terminal == _NO_WORD:
                raise no_word(text, start)
            if terminal == "INTEGER" and len(word) > _SHORT_INTEGER:
                check_integer(text, word, start)
            yield _token(terminal, word, start)


def _token(terminal: str, word: str, start: int) -> Token:
    # Equal to `Token(terminal, word, start)`, whose constructor takes four times as long: a fifth of all parsing.
    token = str.__new__(Token, word)
    token.type, token.value, token.start_pos = terminal, word, start
    token.line = token.column = token.end_line = token.end_column = token.end_pos = None
    return token


def _check_characters(text: str) -> None:
    if is_too_long(text):
        message = f"the predicate is longer than {LENGTH_LIMIT_BYTES} bytes"
        # Otherwise a megabyte would be kept and searched for an excerpt of a few words.
        raise error_at(text[:LENGTH_LIMIT_BYTES], 0, message, "ask for less, or in fewer words")
    forbidden = FORBIDDEN.search(text)
    if forbidden:
        message = f"the character U+{ord(forbidden[0]):04X} is not allowed anywhere in a predicate"
        hint = "remove it: unseen characters make a text look like another one"
        raise error_at(text, forbidden.start(), message, hint)
