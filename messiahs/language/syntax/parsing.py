"""Parse one statement of a policy file, and explain a syntax error."""

from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

from lark import Lark, Token, Tree, UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser

from messiahs.core.model.terms import NETWORKS
from messiahs.language.predicate.error_messages import before, misplaced
from messiahs.language.predicate.limits import LENGTH_LIMIT_BYTES, TooMuchError, bounded
from messiahs.language.syntax.blocks import BLOCKS
from messiahs.language.syntax.problems import Code, Notebook, nearest
from messiahs.language.syntax.scanning import BAD
from messiahs.language.syntax.statements import Statement

STARTS: Final = tuple(start for block in BLOCKS.values() for start in block.starts)
_WORDS: Final = {
    "VARIABLE": "an attribute ($...)",
    "TEXT": 'a string ("...")',
    "INTEGER": "a number",
    "QUANTITY": "a number",
    "NAME": "a name",
    "COLON": "`:`",
    "COMMA": "`,`",
    "EQUAL": "`=`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "RANGE": "`..`",
    "ADD": "`+`",
    "MUL": "`*`",
}
_EXPECTED_NAMES: Final = frozenset(name for block in BLOCKS.values() for name in block.names.split())
"""Names that are keywords where the grammar expects them, and nowhere else."""
_JOINING: Final = frozenset({"OR", "XOR", "AND", "NOT", "COMPARATOR"})
"""Words that join others in predicates; they are never meant as names."""
_BEFORE_NETWORKS: Final = ("network", "to")
"""Words after which only some names have a meaning."""


@cache
def policy_grammar() -> Lark:
    """Return the grammar of the statements of policy files."""
    return Lark.open_from_package(
        "messiahs.language", "syntax/grammar.lark", parser="lalr", lexer="basic", start=list(STARTS)
    )


def parse_statement(
    statement: Statement, start: str, notebook: Notebook, /, *, grammar: Callable[[], Lark] = policy_grammar
) -> Tree[Token] | None:
    """Return the syntax tree of a statement; None, with a problem, if it is invalid or exceeds a limit."""
    if any(word.type == BAD for word in statement.words) or not keeps_limits(statement, notebook):
        return None
    parser = grammar().parse_interactive(start=start)
    token = statement.words[0]
    taken: list[Token] = []
    try:
        for word in statement.words:
            token = _as_expected(word, parser)
            parser.feed_token(token)
            taken.append(token)
        token = Token("$END", statement.end, start_pos=statement.end.start_pos, end_pos=statement.end.end_pos)
        tree = parser.feed_token(token)
    except UnexpectedToken:
        accepted = parser.accepts()  # type: ignore[no-untyped-call]  # lark leaves it untyped
        message, hint = _syntax_error(token, accepted, taken)
        notebook.error(token, Code.SYNTAX, message, hint=hint)
        return None
    assert isinstance(tree, Tree)
    return tree


def _as_expected(word: Token, parser: InteractiveParser) -> Token:
    """Return a word, as a keyword if it is a name that the grammar expects in this place."""
    if word.type != "NAME" or word not in _EXPECTED_NAMES:
        return word
    is_expected = word.upper() in parser.choices()  # type: ignore[no-untyped-call]  # lark leaves it untyped
    return Token.new_borrow_pos(word.upper(), word, word) if is_expected else word


def trees_in(tree: Tree[Token]) -> list[Tree[Token]]:
    """Return the children of a tree that are trees."""
    return [child for child in tree.children if isinstance(child, Tree)]


def tokens_in_tree(tree: Tree[Token], *types: str) -> list[Token]:
    """Return the child tokens of a tree, all or those of the given types."""
    return [child for child in tree.children if isinstance(child, Token) and (not types or child.type in types)]


def first_token(tree: Tree[Token]) -> Token:
    """Return the first word of a tree; every rule has one."""
    child = tree.children[0]
    return child if isinstance(child, Token) else first_token(child)


def last_token(tree: Tree[Token]) -> Token:
    """Return the last word of a tree; every rule has one."""
    child = tree.children[-1]
    return child if isinstance(child, Token) else last_token(child)


def on_one_line(words: tuple[Token, ...]) -> str:
    """Return a statement on one line, without its comments."""
    return "".join(_with_gaps(words))


def _with_gaps(words: tuple[Token, ...]) -> Iterator[str]:
    end = words[0].start_pos
    for word in words:
        yield " " if word.start_pos != end else ""
        yield word
        end = word.end_pos


def keeps_limits(statement: Statement, notebook: Notebook) -> bool:
    """Check the limits of a statement before parsing it, since trees are walked recursively.

    A `group` is a flat list, however long.
    """
    first, last = statement.words[0], statement.words[-1]
    if first.type == "GROUP":
        return True
    size = len(notebook.text[first.start_pos : last.end_pos].encode())
    if size > LENGTH_LIMIT_BYTES:
        notebook.error(first, Code.LIMIT, f"the statement is longer than {LENGTH_LIMIT_BYTES} bytes")
        return False
    try:
        deque(bounded(statement.words), maxlen=0)
    except TooMuchError as mistake:
        notebook.error(mistake.word, Code.LIMIT, str(mistake))
        return False
    return True


def _syntax_error(token: Token, accepted: set[str], taken: list[Token], /) -> tuple[str, str]:
    if accepted == {"NAME"} and tuple(taken[-2:]) == _BEFORE_NETWORKS:
        return f"a network is missing {before(token)}", f"one of {', '.join(NETWORKS)}"
    mistake = misplaced(token, accepted, example="$mem <= 4GiB")
    if mistake is not None:
        message, hint = mistake
        return message, _hint_at_attribute(token, accepted) or hint
    words = sorted({word.lower() for word in accepted if word not in _WORDS and word != "$END"})
    expected = sorted({_WORDS[word] for word in accepted if word in _WORDS}) + [f"`{word}`" for word in words]
    expected += ["the end of the statement"] if "$END" in accepted else []
    listed = ", ".join(expected[:-1]) + (" or " if len(expected) > 1 else "") + expected[-1]
    return f"{listed} is missing {before(token)}", nearest(token, words) if token.type == "NAME" else ""


def _hint_at_attribute(token: Token, accepted: set[str]) -> str:
    """Return a hint for a word in place of an attribute."""
    if "VARIABLE" not in accepted or not token.isidentifier() or token.type in _JOINING:
        return ""
    return f'write ${token} for the attribute, or "{token}" for the string'
