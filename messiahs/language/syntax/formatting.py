"""Entry point for formatting: a policy file in, the same file in canonical form out.

It works on words and statements, so a new kind of block needs no change here.
"""

from collections.abc import Callable

from lark import Token

from messiahs.errors import PolicyError
from messiahs.language.syntax.blocks import BLOCKS
from messiahs.language.syntax.layout import lay_out
from messiahs.language.syntax.parsing import keeps_limits, parse_statement
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.scanning import BAD, is_too_long, tokens_in
from messiahs.language.syntax.statements import Item, items_of
from messiahs.language.syntax.words import words_of


def format_policy(text: str, *, file: str) -> str:
    """Return a policy file in canonical form; formatting it again changes nothing. Raises PolicyError if it is invalid.

    The meaning is not checked. A file that would exceed a limit in canonical form is invalid too.
    """
    written = lay_out(words_of(text, _tokens_of(text, file, check=_check)))
    if written != text:
        # The statements are the same as before; only their sizes may differ.
        _tokens_of(written, file, check=_check_limits)
    return written


def _tokens_of(text: str, file: str, *, check: Callable[[Item, Notebook], None]) -> list[Token]:
    """Return the words of a file in which `check` finds no problem in any item, including the end token."""
    notebook = Notebook(file=file, text=text)
    end = Token("$END", "", start_pos=len(text), end_pos=len(text))
    tokens: list[Token] = []
    if not is_too_long(notebook):
        tokens = [*tokens_in(notebook), end]
        for item in items_of(tokens, notebook):
            check(item, notebook)
    if notebook.errors:
        raise PolicyError(notebook.in_order())
    return tokens


def _check(item: Item, notebook: Notebook) -> None:
    word = item.head.words[0]
    if word.type == BAD:
        return
    block = BLOCKS.get(word)
    if block is None:
        notebook.error(word, Code.SYNTAX, f"`{word}` does not begin a block")
        return
    head, *entry = block.starts
    parse_statement(item.head, head, notebook)
    for statement in item.body or ():
        if entry:
            parse_statement(statement, entry[0], notebook)
        else:
            notebook.error(statement.words[0], Code.SYNTAX, f"`{word}` takes no block")


def _check_limits(item: Item, notebook: Notebook) -> None:
    for statement in (item.head, *(item.body or ())):
        keeps_limits(statement, notebook)
