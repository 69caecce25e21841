"""Words of a policy file with the comments and blank lines between them, for formatting."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Final

from lark import Token

_COMMENT: Final = re.compile(r"#[^\n]*")
_NUMBER: Final = re.compile(r"(-?)0*([0-9]+?)(?:\.([0-9]*?)0*)?([A-Za-z%]*|:[0-9]+)", re.ASCII)
_JOINED: Final = frozenset({"AND", "OR", "XOR", "NOT", "HAS", "IN", "LIKE", "DEFAULT", "COMPARATOR", "ADD", "MUL"})
_OPERANDS: Final = frozenset({"VARIABLE", "INTEGER", "QUANTITY", "TEXT", "NAME"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment on a line of its own."""

    text: str
    is_after_blank: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word in canonical spelling, the comments above it, and the comment after it on its line.

    `is_after_blank` means that a blank line precedes it. The last word of a file is empty and of type `$END`.
    """

    type: str
    text: str
    above: tuple[Comment, ...] = ()
    behind: str = ""
    is_after_blank: bool = False

    @property
    def is_commented(self) -> bool:
        """Whether it has a comment."""
        return bool(self.above or self.behind)


def words_of(text: str, tokens: Sequence[Token]) -> list[Word]:
    """Return the words of a valid file; the last token is the end token."""
    words: list[Word] = []
    place = 0
    for token in tokens:
        assert token.start_pos is not None
        gap = text[place : token.start_pos] if token.type != "$END" else text[place:]
        behind, above, is_after_blank = _comments_in(gap, is_first=not words)
        if behind:
            words[-1] = _with_comment(words[-1], behind)
        words.append(Word(type=token.type, text=_spelled(token), above=above, is_after_blank=is_after_blank))
        place = token.end_pos or place
    return words


def with_parentheses(words: Sequence[Word]) -> list[Word]:
    """Return a statement and its end, with parentheses around `xor` beside `or`, and around `and` beside `xor`.

    Other languages order `or` and `xor` differently, and the precedence of `and` and `xor` is not widely known.
    """
    opening, closing = Counter[int](), Counter[int]()
    for alternatives in _predicates_in(words[:-1]):
        for places in alternatives:
            terms = _divided(places, words, at="XOR")
            mixed = [term for term in terms if len(terms) > 1 and any(words[place].type == "AND" for place in term)]
            if len(terms) > 1 and len(alternatives) > 1:
                mixed.append(places)
            opening.update(run[0] for run in mixed)
            closing.update(run[-1] for run in mixed)
    return [
        written
        for place, word in enumerate(words)
        for written in _bracketed(word, opening=opening[place], closing=closing[place])
    ]


def _comments_in(gap: str, *, is_first: bool) -> tuple[str, tuple[Comment, ...], bool]:
    """Return the comment on the line where a gap begins, the comments below, and whether a blank line ends the gap."""
    behind = ""
    above: list[Comment] = []
    breaks, place = 1 if is_first else 0, 0
    for comment in _COMMENT.finditer(gap):
        breaks += gap.count("\n", place, comment.start())
        if breaks == 0:
            behind = comment[0].rstrip()
        else:
            above.append(Comment(text=comment[0].rstrip(), is_after_blank=breaks > 1))
        breaks, place = 0, comment.end()
    return behind, tuple(above), breaks + gap.count("\n", place) > 1


def _with_comment(word: Word, behind: str) -> Word:
    return Word(type=word.type, text=word.text, above=word.above, behind=behind, is_after_blank=word.is_after_blank)


def _spelled(token: Token) -> str:
    """Return a number without insignificant zeros; its unit is unchanged, because the owner chose it."""
    parts = _NUMBER.fullmatch(token) if token.type in {"INTEGER", "QUANTITY"} else None
    if parts is None:
        # Dates, too, are written in one way only.
        return str(token)
    sign, digits, decimals, unit = parts.groups()
    number = f"{digits}.{decimals}" if decimals else digits
    return f"{sign if number != '0' else ''}{number}{unit}"


def _predicates_in(words: Sequence[Word]) -> Iterator[list[list[int]]]:
    """Yield every run of terms joined by `or`, as the positions of the words between the `or`s."""
    runs: list[list[list[int]]] = [[[]]]
    for place, word in enumerate(words):
        match word.type:
            case "LPAR" | "LBRACE":
                runs[-1][-1].append(place)
                runs.append([[]])
            case "RPAR" | "RBRACE" if len(runs) > 1:
                yield runs.pop()
                runs[-1][-1].append(place)
            case "OR":
                runs[-1].append([])
            case "EQUAL" if words[0].type == "LET" and place == 2:  # noqa: PLR2004 - let NAME = ...
                runs[-1] = [[]]
            case kind if kind in _JOINED or kind in _OPERANDS or kind == "EQUAL":
                runs[-1][-1].append(place)
            case _:
                yield runs[-1]
                runs[-1] = [[]]
    yield from runs


def _divided(places: Sequence[int], words: Sequence[Word], *, at: str) -> list[list[int]]:
    """Split positions at the words of one type."""
    runs: list[list[int]] = [[]]
    for place in places:
        if words[place].type == at:
            runs.append([])
        else:
            runs[-1].append(place)
    return runs


def _bracketed(word: Word, *, opening: int, closing: int) -> Iterator[Word]:
    """Yield a word in parentheses; comments above and after it stay outside."""
    if opening:
        yield Word(type="LPAR", text="(", above=word.above, is_after_blank=word.is_after_blank)
        yield from repeat(Word(type="LPAR", text="("), opening - 1)
        word = Word(type=word.type, text=word.text, behind=word.behind)
    if not closing:
        yield word
        return
    yield Word(type=word.type, text=word.text, above=word.above, is_after_blank=word.is_after_blank)
    yield from repeat(Word(type="RPAR", text=")"), closing - 1)
    yield Word(type="RPAR", text=")", behind=word.behind)
