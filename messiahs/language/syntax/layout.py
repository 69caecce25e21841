"""Lines of a policy file in canonical form: one statement per line, four spaces in blocks, at most 120 columns.

A block of one statement is on one line if it fits. A longer statement continues on lines indented by four more
spaces: it breaks before every `or` outside of parentheses, and where it is still too long before `and`, `or`, `xor`,
`else`, `when`, `+` and `-`, and after commas. A comment keeps its place, two spaces after the word before it. Of
several blank lines one is kept.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from messiahs.language.syntax.words import Comment, Word, with_parentheses

COLUMNS: Final = 120
INDENT: Final = "    "
_BREAKS_BEFORE: Final = frozenset({"AND", "OR", "XOR", "ELSE", "WHEN", "ADD"})
_NO_SPACE_BEFORE: Final = frozenset({"SEMICOLON", "COMMA", "COLON", "RPAR", "RANGE"})
_NO_SPACE_AFTER: Final = frozenset({"LPAR", "RANGE"})


@dataclass(slots=True)
class Lines:
    """The lines so far (mutable). A blank line is never the first one of the file or of a block."""

    lines: list[str] = field(default_factory=list)
    is_at_start: bool = True

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(f"{line}\n" for line in self.lines)

    def put(self, line: str, *, is_after_blank: bool = False) -> None:
        """Add a line."""
        if is_after_blank and not self.is_at_start:
            self.lines.append("")
        self.lines.append(line)
        self.is_at_start = False

    def put_comments(self, comments: Sequence[Comment], indent: str) -> None:
        """Add comments that are on lines of their own."""
        for comment in comments:
            self.put(indent + comment.text, is_after_blank=comment.is_after_blank)


def lay_out(words: Sequence[Word]) -> str:
    """Return the text of a valid file; the last word is the end token."""
    lines = Lines()
    place = 0
    while words[place].type != "$END":
        end = next(at for at in range(place, len(words)) if words[at].type in {"SEMICOLON", "LBRACE"})
        head = words[place : end + 1]
        place = end + 1
        if words[end].type == "SEMICOLON":
            put_statement(head, "", lines)
            continue
        statements, place = _body(words, place)
        _put_block(head, statements, words[place - 1], lines=lines)
    lines.put_comments(words[-1].above, "")
    return lines.text


def _body(words: Sequence[Word], place: int) -> tuple[list[Sequence[Word]], int]:
    """Return the statements of a block, and the position after its `}`."""
    statements: list[Sequence[Word]] = []
    start, depth = place, 0
    while depth > 0 or words[place].type != "RBRACE":
        depth += (words[place].type == "LBRACE") - (words[place].type == "RBRACE")
        place += 1
        if depth == 0 and words[place - 1].type == "SEMICOLON":
            statements.append(words[start:place])
            start = place
    return statements, place + 1


def _put_block(head: Sequence[Word], statements: Sequence[Sequence[Word]], end: Word, *, lines: Lines) -> None:
    inside = [*head[1:], *(word for statement in statements for word in statement)]
    is_plain = not (head[0].behind or end.above or any(word.is_commented for word in inside))
    inner = "".join(f"{''.join(spaced(with_parentheses(statement)))} " for statement in statements)
    one_line = f"{''.join(spaced(with_parentheses(head)))} {inner}}}"
    if is_plain and len(statements) <= 1 and len(one_line) <= COLUMNS:
        lines.put_comments(head[0].above, "")
        lines.put(with_comment(one_line, end), is_after_blank=head[0].is_after_blank)
        return
    put_statement(head, "", lines)
    lines.is_at_start = True
    for statement in statements:
        put_statement(statement, INDENT, lines)
    lines.put_comments(end.above, INDENT)
    lines.put(with_comment("}", end))


def put_statement(statement: Sequence[Word], indent: str, lines: Lines, /) -> None:
    """Write words up to their `;` or `{`, on several lines if necessary."""
    lines.put_comments(statement[0].above, indent)
    line, further = indent, indent + INDENT
    is_after_blank = statement[0].is_after_blank
    words = with_parentheses(statement)
    is_long = len(indent) + sum(map(len, spaced(words))) > COLUMNS
    for chunk in _chunks(words):
        is_too_long = len(line) + len(chunk.glue) + len(chunk.text) > COLUMNS or (is_long and chunk.is_outer_or)
        if (line.strip() and is_too_long) or chunk.above:
            if line.strip():
                lines.put(line, is_after_blank=is_after_blank)
                is_after_blank = False
            lines.put_comments(chunk.above, further)
            line = further
        line += (chunk.glue if line.strip() else "") + chunk.text
        if chunk.behind:
            lines.put(f"{line}  {chunk.behind}", is_after_blank=is_after_blank)
            line, is_after_blank = further, False
    if line.strip():
        lines.put(line, is_after_blank=is_after_blank)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chunk:
    """Words that stay on one line, with the comments above the first and after the last of them.

    `is_outer_or` means that they begin with an `or` outside of parentheses.
    """

    glue: str
    text: str
    above: tuple[Comment, ...]
    behind: str
    is_outer_or: bool


def _chunks(statement: Sequence[Word]) -> Iterator[_Chunk]:
    start = depth = 0
    gaps = ["", *_gaps(statement)]
    for place, word in enumerate(statement):
        following = statement[place + 1] if place + 1 < len(statement) else None
        if following is not None and not word.behind and not following.above and not _may_break(word, following):
            continue
        own = range(start, place + 1)
        text = "".join((gaps[at] if at > start else "") + statement[at].text for at in own)
        above = statement[start].above if start else ()
        is_outer_or = depth == 0 and statement[start].type == "OR"
        yield _Chunk(glue=gaps[start], text=text, above=above, behind=word.behind, is_outer_or=is_outer_or)
        depth += sum((statement[at].type == "LPAR") - (statement[at].type == "RPAR") for at in own)
        start = place + 1


def _may_break(before: Word, after: Word) -> bool:
    return after.type in _BREAKS_BEFORE or before.type == "COMMA"


def spaced(words: Sequence[Word]) -> Iterator[str]:
    """Yield words without comments, each with the gap before it."""
    yield words[0].text
    for gap, word in zip(_gaps(words), words[1:], strict=True):
        yield gap + word.text


def _gaps(words: Sequence[Word]) -> Iterator[str]:
    for before, after in pairwise(words):
        is_part = before.type == "NAME" and after.type == "LPAR"
        yield "" if is_part or after.type in _NO_SPACE_BEFORE or before.type in _NO_SPACE_AFTER else " "


def with_comment(line: str, word: Word) -> str:
    """Return a line with the comment that follows its last word."""
    return f"{line}  {word.behind}" if word.behind else line
