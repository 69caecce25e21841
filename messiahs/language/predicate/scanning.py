"""The words of a predicate, found and checked in one pass over the text (MESSIAHS 5.4)."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple, NoReturn

from messiahs.core.model.attributes import INTEGER_HIGHEST, INTEGER_LOWEST
from messiahs.language.predicate.places import error_at, quoted
from messiahs.language.predicate.syntax import COMPARATORS, Connective

LENGTH_LIMIT_BYTES: Final = 4096
NESTING_LIMIT: Final = 64
COMPARISON_LIMIT: Final = 256

_KEYWORDS: Final = frozenset({"not", *Connective, *COMPARATORS})
_INTEGER_DIGITS: Final = 19

# Every character belongs to one token or to the space before it, and none is looked at more than a fixed number of
# times. What nothing is wrong with has the name of a terminal of the grammar.
_TOKEN: Final = re.compile(
    r"""
    [ \t\r\n]*
    (?: (?P<VARIABLE>\$[A-Za-z_][A-Za-z0-9_]{0,63}(?![\w.]))
      | (?P<COMPARATOR><=|>=|<>|<|>|=(?![=<>])|(?:eq|gr|ls|le|ge|ne)(?!\w))
      | (?P<INTEGER>-?[0-9]{1,18}(?![\w.%:]))
      | (?P<STRING>"(?:\\["\\nt]|[^"\\\x00-\x1f])*")
      | (?P<AND>and(?!\w))
      | (?P<OR>or(?!\w))
      | (?P<XOR>xor(?!\w))
      | (?P<NOT>not(?!\w))
      | (?P<LPAR>\()
      | (?P<RPAR>\))
      | (?P<string>"(?:\\[^\n]|[^"\\\n])*")
      | (?P<quote>")
      | (?P<variable>\$[\w.]*)
      | (?P<number>-?[0-9][\w.%:]*)
      | (?P<word>\w+)
      | (?P<symbol>==|!=|=<|=>|&&|\|\||.)
      | \Z
    )
    """,
    re.VERBOSE | re.DOTALL,
)
FORBIDDEN: Final = re.compile(r"[\x00\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_INTEGER: Final = re.compile(r"-?[0-9]+")
_ESCAPE: Final = re.compile(r"\\(.)")
CONTROL: Final = re.compile(r"[\x00-\x1f]")

_POLICY_FILES_ONLY: Final = "it exists in policy files only"
_WORD_HINTS: Final = {
    "lt": "write ls for strings, < for integers",
    "gt": "write gr for strings, > for integers",
} | dict.fromkeys(("in", "like", "has", "default", "let"), _POLICY_FILES_ONLY)
SYMBOL_HINTS: Final = {
    "==": "write = for integers, eq for strings",
    "!=": "write <> for integers, ne for strings",
    "=<": "write <=",
    "=>": "write >=",
    "&&": "write and",
    "&": "write and",
    "||": "write or",
    "|": "write or",
    "!": "write not",
    "^": "write xor",
    "'": "strings stand in double quotes",
    "\ufeff": "this is a byte order mark: save the text as UTF-8 without one",
    "#": "comments exist in policy files only",
    "-": "a minus sign stands directly before its digits; there is no arithmetic",
}


class Word(NamedTuple):
    """A word of a predicate, by the terminal of the grammar that it is, and where in the text it starts."""

    terminal: str
    text: str
    start: int


def words_of(text: str) -> Iterator[Word]:
    """Give the words of a text that is not too long; whatever is no word of the language is refused."""
    _check_length(text)
    forbidden = FORBIDDEN.search(text)
    if forbidden:
        message = f"the character U+{ord(forbidden[0]):04X} is not allowed anywhere in a predicate"
        raise error_at(
            text, forbidden.start(), message, "remove it: unseen characters make a text look like another one"
        )
    for token in _TOKEN.finditer(text):
        terminal = token.lastgroup
        if terminal is None:
            continue
        word, start = token[terminal], token.start(terminal)
        if terminal.islower():
            terminal = _checked(text, terminal, word, start)
        yield Word(terminal, word, start)


def is_too_long(text: str) -> bool:
    """Say whether a text has more bytes than a predicate may have."""
    return len(text) > LENGTH_LIMIT_BYTES or len(text.encode(errors="surrogatepass")) > LENGTH_LIMIT_BYTES


def _check_length(text: str) -> None:
    if is_too_long(text):
        message = f"the predicate is longer than {LENGTH_LIMIT_BYTES} bytes"
        # A megabyte would be kept and searched for a few words of it.
        raise error_at(text[:LENGTH_LIMIT_BYTES], 0, message, "ask for less, or in fewer words")


def _checked(text: str, kind: str, word: str, start: int, /) -> str:
    """Say which terminal an unusual word is: a long integer. Everything else is refused, with a reason."""
    match kind:
        case "number":
            _check_number(text, word, start)
            return "INTEGER"
        case "string":
            _refuse_string(text, word, start)
        case "quote":
            raise error_at(text, start, "the string has no end", 'a string ends with " on its own line')
        case "variable":
            _refuse_variable(text, word, start)
        case "word":
            _refuse_word(text, word, start)
    hint = SYMBOL_HINTS.get(word, "")
    raise error_at(text, start, f"{quoted(word)} means nothing here", hint)


def _refuse_string(text: str, word: str, start: int) -> NoReturn:
    for escape in _ESCAPE.finditer(word):
        if escape[1] not in '"\\nt':
            hint = r"the escapes are \" \\ \n \t; write \\ for a backslash"
            raise error_at(text, start + escape.start(), f"{quoted(escape[0])} is no escape", hint)
    control = CONTROL.search(word)
    assert control is not None, "nothing else can be wrong with a string"
    message = f"the string holds the control character U+{ord(control[0]):04X}"
    raise error_at(text, start + control.start(), message, r"a tab is written \t, a new line \n")


def _refuse_variable(text: str, word: str, start: int) -> NoReturn:
    if "." in word:
        message, hint = f"{quoted(word)} has a scope", "a predicate sees one description only: write the bare name"
    else:
        message, hint = (
            f"{quoted(word)} is no variable",
            "$ and 1 to 64 ASCII letters, digits and _, the first no digit",
        )
    raise error_at(text, start, message, hint)


def _check_number(text: str, word: str, start: int) -> None:
    if not _INTEGER.fullmatch(word):
        hint = "write a plain decimal integer: bytes, seconds or 1/100 %"
        raise error_at(text, start, f"{quoted(word)} is no integer", hint)
    digits = word.lstrip("-").lstrip("0")
    if len(digits) > _INTEGER_DIGITS or not INTEGER_LOWEST <= int(word) <= INTEGER_HIGHEST:
        hint = f"integers go from {INTEGER_LOWEST} to {INTEGER_HIGHEST}"
        raise error_at(text, start, "the integer does not fit into 64 bits", hint)


def _refuse_word(text: str, word: str, start: int) -> NoReturn:
    if word in _WORD_HINTS:
        hint = _WORD_HINTS[word]
    elif word.lower() in _KEYWORDS:
        hint = f"write {word.lower()}"
    elif _NAME.fullmatch(word):
        hint = f'write ${word} for the attribute, or "{word}" for the string'
    else:
        hint = "attributes begin with $, strings stand in double quotes"
    raise error_at(text, start, f"{quoted(word)} is no word of the language", hint)
