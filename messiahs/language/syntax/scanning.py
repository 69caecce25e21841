"""Words of a policy file. An invalid word is recorded as a problem and invalidates only its own statement."""

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
"""Type of an invalid word; its problem is already recorded."""

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
    | (?P<number>[0-9]{4}-[0-9]+-[0-9]+(?![\w%:.-])|[0-9](?:[\w%:]|\.(?!\.))*)
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
    """Return whether a file exceeds the size limit, which is then its only problem; its text is dropped."""
    if len(notebook.text.encode(errors="surrogatepass")) <= FILE_LIMIT_BYTES:
        return False
    notebook.text = ""
    message = f"the file is longer than {FILE_LIMIT_BYTES} bytes"
    notebook.error(Token(BAD, "", start_pos=0, end_pos=0), Code.LIMIT, message)
    return True


def tokens_in(notebook: Notebook, /, *, keywords: frozenset[str] = KEYWORDS) -> Iterator[Token]:
    """Yield the words of a file with their positions; an invalid word has the type `BAD`, and is recorded.

    The type of a keyword is the keyword in capital letters; other words are names.
    """
    text = notebook.text
    for character in FORBIDDEN.finditer(text):
        if notebook.is_full:
            break
        token = Token(BAD, character[0], start_pos=character.start(), end_pos=character.end())
        message = f"the character {quoted(token)} is not allowed anywhere in a policy"
        notebook.error(token, Code.FORBIDDEN, message, hint="remove it: it can disguise a text as another one")
    before, place = "", 0
    may_be_spoiled = FORBIDDEN.search(text) is not None
    while place < len(text):
        # A minus sign directly before digits is part of a number, unless an operand ends before it.
        negative = _NEGATIVE.match(text, place) if text[place] == "-" and before not in _OPERANDS else None
        match = negative or _TOKEN.match(text, place)
        assert match is not None, "every character is part of a word"
        place = match.end()
        if match.lastgroup == "space":
            continue
        # Creating tokens takes most of the time here, so each is created once and typed afterwards.
        token = Token(BAD, match[0], start_pos=match.start(), end_pos=match.end())
        if not may_be_spoiled or not FORBIDDEN.search(token):
            token.type = _READERS["number" if negative else match.lastgroup or ""](token, notebook)
        if token.type == "NAME" and str(token) in keywords:
            token.type = token.upper()
        before = token.type
        yield token


def _quote(token: Token, notebook: Notebook) -> str:
    notebook.error(token, Code.STRING, "the string is not closed", hint='a string ends with " on its own line')
    return BAD


def _string(token: Token, notebook: Notebook) -> str:
    problem, hint = "", ""
    for escape in _ESCAPE.finditer(token):
        if escape[1] not in '"\\nt':
            problem, hint = f"{quoted(escape[0])} is not an escape", r"the escapes are \" \\ \n \t"
    if CONTROL.search(token):
        problem, hint = "the string contains a control character", r"a tab is written \t, a new line \n"
    if len(token.encode()) > _STRING_LIMIT_BYTES:
        problem, hint = f"the string is longer than {_STRING_LIMIT_BYTES} bytes", ""
    if problem:
        notebook.error(token, Code.STRING, problem, hint=hint)
    return BAD if problem else "TEXT"


def _variable(token: Token, notebook: Notebook) -> str:
    parts = _VARIABLE.fullmatch(token)
    if parts is None:
        hint = "$ and 1 to 64 ASCII letters, digits and _, the first no digit"
        notebook.error(token, Code.WORD, f"{quoted(token)} is not a variable", hint=hint)
        return BAD
    if parts["scope"] is not None and parts["scope"] not in SCOPES:
        hint = f"the scopes are {' '.join(SCOPES)}"
        notebook.error(token, Code.SCOPE, f"unknown scope {quoted(parts['scope'])}", hint=hint)
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
        notebook.error(token, Code.WORD, f"{quoted(token)} is not a comparator", hint=_WORD_HINTS[token])
        return BAD
    if not _NAME.fullmatch(token):
        hint = f"write {token.lower()}" if token.lower() in KEYWORDS else "names are a to z, 0 to 9 and _"
        notebook.error(token, Code.WORD, f"{quoted(token)} is not a word of the language", hint=hint)
        return BAD
    return "NAME"


def _symbol(token: Token, notebook: Notebook) -> str:
    if token in _SYMBOLS:
        return _SYMBOLS[token]
    if token in COMPARATORS:
        return "COMPARATOR"
    hint = SYMBOL_HINTS.get(token, "")
    notebook.error(token, Code.WORD, f"{quoted(token)} has no meaning here", hint=hint)
    return BAD


_READERS: Final[dict[str, Callable[[Token, Notebook], str]]] = {
    "string": _string,
    "quote": _quote,
    "variable": _variable,
    "number": _number,
    "word": _word,
    "symbol": _symbol,
}
"""For each group of `_TOKEN`, the function that returns a token's type and records its problems."""
