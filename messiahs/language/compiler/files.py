"""Entry point for policy files: a text in, a policy that decides out, or every mistake of the file at once.

It uses, in this order, the room `syntax` (words, statements and trees), the other modules of this room (one for each
block, and `draft`, which collects their results), and `runtime`, which decides. `syntax/blocks.py` lists the blocks and
names the function that reads each of them.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pkgutil import resolve_name
from typing import Final

from lark import Token

from messiahs.core.interface.policies import Timeouts
from messiahs.errors import PolicyError
from messiahs.language.compiler.draft import Draft
from messiahs.language.compiler.lint import review
from messiahs.language.compiler.reader import Reader
from messiahs.language.predicate.source_places import quoted
from messiahs.language.runtime.compiled_policy import CompiledPolicy, Source
from messiahs.language.syntax.blocks import BLOCKS, Body
from messiahs.language.syntax.problems import Code, Notebook, nearest
from messiahs.language.syntax.scanning import BAD, is_too_long, tokens_in
from messiahs.language.syntax.statements import Item, items_of
from messiahs.policy.built_in import Catalogue

_DECLARATIONS: Final = ("attribute", "group")

BlockReader = Callable[[Item, Draft], None]
"""Adds one block of a file to the draft of its policy."""


def parse_policy(
    text: str, *, file: str, timeouts: Timeouts | None = None, catalogue: Catalogue | None = None
) -> CompiledPolicy:
    """Compile a policy; raises PolicyError with all mistakes. The policy carries its warnings.

    `timeouts` are the defaults, `catalogue` has the parts that the policy may name (by default the built-in ones), and
    `file` appears in messages.
    """
    notebook = Notebook(file=file, text=text)
    given = timeouts or Timeouts()
    draft = Draft(reader=Reader(notebook=notebook), timeouts=given, catalogue=catalogue or Catalogue())
    if not is_too_long(notebook):
        _read(draft)
    if notebook.errors:
        raise PolicyError(notebook.in_order())
    source = Source(file=file, text=text, timeouts=given)
    return replace(draft.finish(notebook.in_order()), source=source)


def _read(draft: Draft) -> None:
    notebook = draft.reader.notebook
    end = Token("$END", "", start_pos=len(notebook.text.rstrip()), end_pos=len(notebook.text.rstrip()))
    items = items_of([*tokens_in(notebook), end], notebook)
    # Declarations apply to the whole file, wherever they are; a `let` must precede its use.
    for item in items:
        words = item.head.words
        if words[0] in _DECLARATIONS:
            _read_item(item, draft)
        elif words[0] == "let":
            draft.reader.defined_below.update(str(word) for word in words[1:2] if word.type == "NAME")
    for item in items:
        if item.head.words[0] == "history":
            _read_item(item, draft)
    for place, item in enumerate(items):
        if notebook.is_full:
            return
        if item.head.words[0] == "policy" and place > 0:
            notebook.error(item.head.words[0], Code.MEANING, "`policy` must be at the top of the file")
        if item.head.words[0] not in (*_DECLARATIONS, "history"):
            _read_item(item, draft)
    if not notebook.errors:
        review(items, draft)


def _read_item(item: Item, draft: Draft) -> None:
    word = item.head.words[0]
    if word in BLOCKS:
        _check_body(item, draft)
        _reader_of(word)(item, draft)
    elif word.type != BAD:
        hint = nearest(word, BLOCKS) or f"a policy is made of {', '.join(BLOCKS)}"
        draft.reader.notebook.error(word, Code.SYNTAX, f"{quoted(word)} does not begin a block", hint=hint)


def _check_body(item: Item, draft: Draft) -> None:
    word = item.head.words[0]
    rule = BLOCKS[word].body
    if rule is Body.ALWAYS and item.body is None:
        draft.reader.notebook.error(item.head.end, Code.SYNTAX, f"`{word}` needs a block", hint="write { ... }")
    elif rule is Body.NEVER and item.body is not None:
        draft.reader.notebook.error(item.head.end, Code.SYNTAX, f"`{word}` takes no block", hint="end it with `;`")


@cache
def _reader_of(word: str) -> BlockReader:
    reader: BlockReader = resolve_name(f"{__package__}.{BLOCKS[word].reader}")
    return reader
