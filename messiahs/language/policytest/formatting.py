"""Entry point for formatting tests of policies: a `*.policytest` file in, the same file in canonical form out.

Words, comments and lines are those of policy files, except that a block is on one line wherever it fits and has no
comments inside; `test` is never on one line.
"""

from collections.abc import Sequence
from typing import Final

from lark import Token

from messiahs.errors import PolicyError
from messiahs.language.policytest.files import KEYWORDS, trial_grammar
from messiahs.language.policytest.phrases import Phrase, phrases_of
from messiahs.language.policytest.statements import NAMED_TASK_RULE, STATEMENTS
from messiahs.language.predicate.source_places import quoted
from messiahs.language.syntax.layout import COLUMNS, INDENT, Lines, put_statement, spaced, with_comment
from messiahs.language.syntax.parsing import parse_statement
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.scanning import BAD, is_too_long, tokens_in
from messiahs.language.syntax.words import Word, words_of

_STARTS: Final = {
    "POLICY": "policy",
    "TEST": "test",
    **{word: kind.rule for word, kind in STATEMENTS.items()},
    "EXPECT": "expect",
}
_VALUE_WORDS: Final = 3


def are_trials(text: str, /) -> bool:
    """Return whether a text contains tests and is not a policy: only tests have names in quotes and a block."""
    types = [token.type for token in tokens_in(Notebook(file="", text=text), keywords=KEYWORDS)]
    return any(types[place : place + 3] == ["TEST", "TEXT", "LBRACE"] for place in range(len(types)))


def format_trials(text: str, /, *, file: str) -> str:
    """Return a test file in canonical form; formatting it again changes nothing. Raises PolicyError if it is invalid.

    Neither its meaning nor its policy is checked.
    """
    words = words_of(text, _tokens_of(text, file))
    lines = Lines()
    _put_phrases(words, "", lines)
    lines.put_comments(words[-1].above, "")
    written = lines.text
    if written != text:
        _tokens_of(written, file)
    return written


def _tokens_of(text: str, file: str) -> list[Token]:
    """Return the words of a valid file, including the end token."""
    notebook = Notebook(file=file, text=text)
    end = Token("$END", "", start_pos=len(text), end_pos=len(text))
    tokens: list[Token] = []
    if not is_too_long(notebook):
        tokens = [*tokens_in(notebook, keywords=KEYWORDS), end]
        for phrase in phrases_of(tokens, notebook):
            _check(phrase, notebook)
    if notebook.errors:
        raise PolicyError(notebook.in_order())
    return tokens


def _check(phrase: Phrase, notebook: Notebook) -> None:
    words = phrase.head.words
    if any(word.type == BAD for word in words):
        return
    if len(words) > 1 and words[1].type == "EQUAL":
        if len(words) != _VALUE_WORDS or phrase.body is not None:
            notebook.error(words[0], Code.SYNTAX, "this states nothing", hint='write mem = 4GiB; or name = "cs";')
        return
    is_named_task = words[0].type == "TASK" and len(words) > 1
    start = NAMED_TASK_RULE if is_named_task else _STARTS.get(words[0].type)
    if start is None:
        notebook.error(words[0], Code.SYNTAX, f"{quoted(words[0])} cannot begin a statement here")
    else:
        parse_statement(phrase.head, start, notebook, grammar=trial_grammar)
    for each in phrase.body or ():
        _check(each, notebook)


def _put_phrases(words: Sequence[Word], indent: str, lines: Lines, /) -> None:
    """Write the phrases in some words, the last of which is the `}` or the end token."""
    place = 0
    while place < len(words) - 1:
        end = next(at for at in range(place, len(words)) if words[at].type in {"SEMICOLON", "LBRACE"})
        if words[end].type == "SEMICOLON":
            put_statement(words[place : end + 1], indent, lines)
            place = end + 1
            continue
        close = _closing(words, end)
        _put_block(words[place : end + 1], words[end + 1 : close + 1], indent, lines=lines)
        place = close + 1


def _closing(words: Sequence[Word], opening: int) -> int:
    depth = 0
    for place in range(opening, len(words)):
        depth += (words[place].type == "LBRACE") - (words[place].type == "RBRACE")
        if depth == 0:
            return place
    raise AssertionError("a valid file has as many `}` as `{`")


def _put_block(head: Sequence[Word], inner: Sequence[Word], indent: str, *, lines: Lines) -> None:
    end = inner[-1]
    line = indent + "".join(spaced([*head, *inner]))
    is_plain = not (head[0].behind or end.above or any(word.is_commented for word in (*head[1:], *inner[:-1])))
    if is_plain and head[0].type != "TEST" and len(line) <= COLUMNS:
        lines.put_comments(head[0].above, indent)
        lines.put(with_comment(line, end), is_after_blank=head[0].is_after_blank)
        return
    put_statement(head, indent, lines)
    lines.is_at_start = True
    _put_phrases(inner, indent + INDENT, lines)
    lines.put_comments(end.above, indent + INDENT)
    lines.put(with_comment(f"{indent}}}", end))
