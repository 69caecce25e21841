"""The block `allocate`: how many slots a task gets, and how much of a request is granted."""

from messiahs.core.interface.parts import PartKind
from messiahs.language.compiler.draft import Draft
from messiahs.language.compiler.parts import read_part
from messiahs.language.syntax.parsing import first_token, parse_statement, trees_in
from messiahs.language.syntax.statements import Item


def read_allocate(item: Item, draft: Draft) -> None:
    """Record the part that grants places."""
    tree = parse_statement(item.head, "allocate", draft.reader.notebook)
    if tree is None:
        return
    draft.begin(first_token(tree))
    part = read_part(trees_in(tree)[0], PartKind.ALLOCATION, draft)
    if part is not None:
        draft.parts["allocation"] = part
