"""The block `history` of a policy file: the attributes whose past is known, and for how long (MESSIAHS 5.1)."""

from typing import Final

from lark import Token

from messiahs.core.model.attributes import SEEN_BY_THE_OWNER, Kind
from messiahs.core.model.series import (
    HISTORY_LIMIT,
    LONGEST_NS,
    SHORTEST_NS,
    Kept,
    attributes_in_history,
)
from messiahs.language.compiler.draft import Draft
from messiahs.language.compiler.durations import read_duration_ns
from messiahs.language.compiler.vocabulary import View
from messiahs.language.runtime.readings import MACHINE
from messiahs.language.syntax.literals import range_of
from messiahs.language.syntax.parsing import first_token, parse_statement, tokens_in_tree, trees_in
from messiahs.language.syntax.problems import Code
from messiahs.language.syntax.statements import Item

HISTORY: Final = View(block="history", subject=MACHINE, scopes=())

_NAME_LIMIT: Final = 64
_SEEN: Final = frozenset(each.name for each in SEEN_BY_THE_OWNER)


def read_history(item: Item, draft: Draft) -> None:
    """Record the attributes of which a history is kept; the attributes that it has are known from now on."""
    notebook = draft.reader.notebook
    if parse_statement(item.head, "history", notebook) is not None:
        draft.begin(item.head.words[0])
    for statement in item.body or ():
        tree = parse_statement(statement, "history_entry", notebook)
        if tree is None:
            continue
        length_ns = read_duration_ns(
            first_token(trees_in(tree)[0]),
            notebook,
            example="10min or 1d",
            least_ns=SHORTEST_NS,
            too_short="a history is one second long or more",
            most_ns=LONGEST_NS,
        )
        for variable in tokens_in_tree(tree, "VARIABLE"):
            _keep(variable, length_ns or SHORTEST_NS, draft)


def _keep(variable: Token, length_ns: int, draft: Draft) -> None:
    notebook, vocabulary = draft.reader.notebook, draft.reader.vocabulary
    known = vocabulary.look_up(variable, HISTORY, notebook)
    if known is None or known.attribute is None:
        return
    name, told = known.attribute.name, attributes_in_history(known.attribute)
    names = {each.name for each in told}
    taken = sorted(names & {*vocabulary.declared, *vocabulary.names_in(MACHINE), *_SEEN})
    if name in vocabulary.in_history:
        notebook.error(variable, Code.MEANING, f"{variable} is part of a history, and has none of its own")
    elif any(each.name == name for each in draft.histories):
        notebook.error(variable, Code.TWICE, f"{variable} occurs twice in `history`")
    elif known.attribute.kind is Kind.STRING:
        notebook.error(variable, Code.TYPE, f"{variable} is a string, and has no mean")
    elif any(len(each) > _NAME_LIMIT for each in names):
        message = f"the names of the history of {variable} have more than {_NAME_LIMIT} characters"
        notebook.error(variable, Code.LIMIT, message)
    elif taken:
        hint = "remove its declaration"
        notebook.error(variable, Code.TWICE, f"the history of {variable} has ${taken[0]}, which is declared", hint=hint)
    elif len(draft.histories) == HISTORY_LIMIT:
        notebook.error(variable, Code.LIMIT, f"a history is kept of at most {HISTORY_LIMIT} attributes")
    else:
        draft.histories.append(Kept(name, length_ns, *range_of(known.attribute)))
        vocabulary.in_history.update({each.name: each for each in told})
