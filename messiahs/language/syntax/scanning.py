"""The words of a policy file. A word that is none is a problem, and spoils no more than its own statement."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from lark import Token

from messiahs.language.predicate.error_messages import CONTROL, SYMBOL_HINTS
from messiahs.language.predicate.source_places import quoted
from messiahs.language.predicate.syntax import COMPARATORS
from messiahs.language.predicate.words import FORBIDDEN
from messiahs.language.syntax.blocks import BLOCKS
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.quantities import NoQuantity, read_quantity

SCOPES: Final = ("task", "here", "cand", "peer", "now")
BAD: Final = "BAD"
"""The type of what is no word; its problem is noted already."""

FILE_LIMIT_BYTES: Final = 256 << 10
_ANYWHERE: Final = "parent children siblings users any and xor or not has in like default"
"""Words of senders and of predicates, which no block brings."""
KEYWORDS: Final = frozenset(
    word for text in (_ANYWHERE, *(f"{each.word} {each.words}" for each in BLOCKS.values())) for word in text.split()
)

_TOKEN: Final = re.compile(
    r"""
      (?P<space>[ \t\r\n]+|\#[^\n]*)
    | (?P<string>"(?:\\[^\n]|[^"\\\n])*")
    | (?P<quote>"[^\n]*)
    | (?P<variable>\$[\w.]*)
    | (?P<number>[0-9](?:[\w%:]|\.(?!\.))*)
    | (?P<word>\w+)
    | (?P<symbol>\.\.|==|!=|=<|=>|&&|\|\||<=|>=|<>|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_NEGATIVE: Final = re.compile(r"-[0-9](?:[\w%:]|\.(?!\.))*")
_VARIABLE: Final = re.compile(r"\$(?:(?P<scope>\w+)\.)?(?P<name>[A-Za-z_][A-Za-z0-9_]{0,63})", re.ASCII)
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)
_ESCAPE: Final = re.compile(r"\\(.)")
_SYMBOLS: Final = {
    "{": "LBRACE",
    "}": "RBRACE",
    ";": "SEMICOLON",
    ",": "COMMA",
    ":": "COLON",
    "(": "LPAR",
    ")": "RPAR",
    "..": "RANGE",
    "=": "EQUAL",
    "+": "ADD",
    "-": "ADD",
    "*": "MUL",
    "/": "MUL",
}
_OPERANDS: Final = ("VARIABLE", "INTEGER", "QUANTITY", "RPAR")
_WORD_HINTS: Final = {"lt": "write ls for strings, < for integers", "gt": "write gr for strings, > for integers"}
_STRING_LIMIT_BYTES: Final = 4096


def is_too_long(notebook: Notebook, /) -> bool:
    """Say whether a file is longer than any that is read, which becomes its one problem; its text is dropped then."""
    if len(notebook.text.encode(errors="surrogatepass")) <= FILE_LIMIT_BYTES:
        return False
    notebook.text = ""
    message = f"the file is longer than {FILE_LIMIT_BYTES} bytes"
    notebook.error(Token(BAD, "", start_pos=0, end_pos=0), Code.LIMIT, message)
    return True


def tokens_in(notebook: Notebook, /, *, keywords: frozenset[str] = KEYWORDS) -> Iterator[Token]:
    """Give the words of a file, each with its place; what is none is of type `BAD` and noted.

    A keyword is of the type that is called like it in capital letters, other words are names.
    """
    text = notebook.text
    for character in FORBIDDEN.finditer(text):
        if notebook.is_full:
            break
        token = Token(BAD, character[0], start_pos=character.start(), end_pos=character.end())
        message = f"the character {quoted(token)} is not allowed anywhere in a policy"
        notebook.error(token, Code.FORBIDDEN, message, hint="remove it: it makes a text look like another one")
    before, place = "", 0
    may_be_spoiled = FORBIDDEN.search(text) is not None
    while place < len(text):
        # A minus sign directly before its digits, where no operand ends, is part of a number.
        negative = _NEGATIVE.match(text, place) if text[place] == "-" and before not in _OPERANDS else None
        match = negative or _TOKEN.match(text, place)
        assert match is not None, "every character belongs to a word"
        place = match.end()
        if match.lastgroup == "space":
            continue
        # A token is made once and typed afterwards: making tokens is most of the work in here.
        token = Token(BAD, match[0], start_pos=match.start(), end_pos=match.end())
        if not may_be_spoiled or not FORBIDDEN.search(token):
            token.type = _READERS["number" if negative else match.lastgroup or ""](token, notebook)
        if token.type == "NAME" and str(token) in keywords:
            token.type = token.upper()
        before = token.type
        yield token


def _quote(token: Token, notebook: Notebook) -> str:
    notebook.error(token, Code.STRING, "the string has no end", hint='a string ends with " on its own line')
    return BAD


def _string(token: Token, notebook: Notebook) -> str:
    problem, hint = "", ""
    for escape in _ESCAPE.finditer(token):
        if escape[1] not in '"\\nt':
            problem, hint = f"{quoted(escape[0])} is no escape", r"the escapes are \" \\ \n \t"
    if CONTROL.search(token):
        problem, hint = "the string holds a control character", r"a tab is written \t, a new line \n"
    if len(token.encode()) > _STRING_LIMIT_BYTES:
        problem, hint = f"the string is longer than {_STRING_LIMIT_BYTES} bytes", ""
    if problem:
        notebook.error(token, Code.STRING, problem, hint=hint)
    return BAD if problem else "TEXT"


def _variable(token: Token, notebook: Notebook) -> str:
    parts = _VARIABLE.fullmatch(token)
    if parts is None:
        hint = "$ and 1 to 64 ASCII letters, digits and _, the first no digit"
        notebook.error(token, Code.WORD, f"{quoted(token)} is no variable", hint=hint)
        return BAD
    if parts["scope"] is not None and parts["scope"] not in SCOPES:
        hint = f"the scopes are {' '.join(SCOPES)}"
        notebook.error(token, Code.SCOPE, f"there is no scope {quoted(parts['scope'])}", hint=hint)
        return BAD
    return "VARIABLE"


def _number(token: Token, notebook: Notebook) -> str:
    quantity = read_quantity(token)
    if isinstance(quantity, NoQuantity):
        notebook.error(token, Code.NUMBER, quantity.message, hint=quantity.hint)
        return BAD
    return "INTEGER" if token.lstrip("-").isdigit() else "QUANTITY"


def _word(token: Token, notebook: Notebook) -> str:
    if token in COMPARATORS:
        return "COMPARATOR"
    if token in _WORD_HINTS:
        notebook.error(token, Code.WORD, f"{quoted(token)} is no comparator", hint=_WORD_HINTS[token])
        return BAD
    if not _NAME.fullmatch(token):
        hint = f"write {token.lower()}" if token.lower() in KEYWORDS else "names are a to z, 0 to 9 and _"
        notebook.error(token, Code.WORD, f"{quoted(token)} is no word of the language", hint=hint)
        return BAD
    return "NAME"


def _symbol(token: Token, notebook: Notebook) -> str:
    if token in _SYMBOLS:
        return _SYMBOLS[token]
    if token in COMPARATORS:
        return "COMPARATOR"
    hint = SYMBOL_HINTS.get(token, "")
    notebook.error(token, Code.WORD, f"{quoted(token)} means nothing here", hint=hint)
    return BAD


_READERS: Final[dict[str, Callable[[Token, Notebook], str]]] = {
    "string": _string,
    "quote": _quote,
    "variable": _variable,
    "number": _number,
    "word": _word,
    "symbol": _symbol,
}
"""What gives the type of a token, and notes what is wrong with it, by the group of `_TOKEN`."""
