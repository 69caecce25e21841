"""The block `migrate`: when other systems are asked for tasks, and which tasks are offered to systems that ask.

`wanting` leaves the host, so it is translated to the paper's language (MESSIAHS 5.4): quantities and `in` are written
out, and constructs that only the owner's own policy can evaluate are mistakes.
"""

from collections.abc import Mapping
from typing import Final

from lark import Token, Tree

from messiahs.core.interface.parts import PartKind
from messiahs.core.model.instants import SECOND
from messiahs.errors import PredicateError
from messiahs.language.compiler.draft import Draft
from messiahs.language.compiler.durations import read_duration_ns
from messiahs.language.compiler.parts import read_part
from messiahs.language.compiler.predicates import read_condition, read_expression
from messiahs.language.compiler.provability import Certainty
from messiahs.language.compiler.reader import Reader
from messiahs.language.compiler.shadowed_rules import warn_of_superfluous
from messiahs.language.compiler.vocabulary import STATED, View
from messiahs.language.predicate.formatting import format_predicate
from messiahs.language.predicate.predicates import parse_predicate
from messiahs.language.predicate.syntax import Chain, Comparison, Expression, Not, Operand, Variable
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.migrate_rules import CompiledAsk, CompiledMigration
from messiahs.language.runtime.readings import HERE, NOW, TASK
from messiahs.language.syntax.parsing import first_token, on_one_line, parse_statement, tokens_in_tree, trees_in
from messiahs.language.syntax.problems import Code
from messiahs.language.syntax.statements import Item, Statement

OFFER: Final = View(block="offer", subject=TASK, scopes=(TASK, HERE, NOW))
ASK: Final = View(block="ask", subject=HERE, scopes=(HERE, NOW))
WANTING: Final = View(block="wanting", subject=STATED, scopes=())

_OWNERS_WORDS: Final = {
    "let_use": "a `let`",
    "presence": "`has`",
    "likeness": "`like`",
    "in_group": "a `group`",
    **dict.fromkeys(("sum", "product"), "arithmetic"),
}


def read_migrate(item: Item, draft: Draft) -> None:
    """Record when to ask, what is offered, and how many tasks are kept."""
    notebook = draft.reader.notebook
    head = parse_statement(item.head, "migrate", notebook)
    if head is not None:
        draft.begin(item.head.words[0])
        for part in (read_part(tree, PartKind.MIGRATION, draft) for tree in trees_in(head)):
            if part is not None:
                draft.parts["migration"] = part
    asks: list[CompiledAsk] = []
    offered: list[Condition] = []
    keep_at_least = 0
    for statement in item.body or ():
        entry = parse_statement(statement, "migrate_entry", notebook)
        match entry.data if entry is not None else "":
            case "offer":
                assert entry is not None
                text = on_one_line(statement.words)
                offered.append(read_condition(trees_in(entry)[0], OFFER, draft.reader, text=text))
            case "keep":
                assert entry is not None
                keep_at_least = _keep(entry, draft)
            case "ask":
                assert entry is not None
                asks.append(_ask(entry, statement, draft))
    draft.parts["transfer"] = CompiledMigration(asks=tuple(asks), keep_at_least=keep_at_least, offered=tuple(offered))


def check_migrate(draft: Draft, certainty: Certainty) -> None:
    """Warn of offers that others imply."""
    rules = draft.parts.get("transfer")
    if isinstance(rules, CompiledMigration):
        warn_of_superfluous(rules.offered, certainty, draft.reader.notebook)


def _keep(tree: Tree[Token], draft: Draft) -> int:
    (number,) = tokens_in_tree(tree, "INTEGER")
    if "keep" in draft.blocks:
        draft.reader.notebook.error(first_token(tree), Code.TWICE, "`keep` occurs twice", hint="keep the greater one")
    if number.startswith("-"):
        draft.reader.notebook.error(number, Code.RANGE, "how many are kept is 0 or more")
    draft.blocks.add("keep")
    return int(number)


def _ask(tree: Tree[Token], statement: Statement, draft: Draft) -> CompiledAsk:
    notebook = draft.reader.notebook
    period, condition, *wanting = trees_in(tree)
    too_short = "others are asked at most once a second: write 1s or more"
    every_ns = read_duration_ns(
        first_token(period), notebook, example="30s or 1min", least_ns=SECOND, too_short=too_short
    )
    return CompiledAsk(
        every_ns=every_ns or 0,
        condition=read_condition(condition, ASK, draft.reader, text=on_one_line(statement.words)),
        wanting=_in_the_papers_words(wanting[0], draft.reader) if wanting else "",
    )


def _in_the_papers_words(tree: Tree[Token], reader: Reader) -> str:
    """Return a predicate as sent to other systems, within the limits that they accept."""
    errors = reader.notebook.errors
    for part in tree.iter_subtrees():
        _check_word(part, reader)
    if reader.notebook.errors > errors:
        return ""
    expression, readings = read_expression(tree, WANTING, reader)
    text = format_predicate(_renamed(expression, {reading.key: reading.name for reading in readings}))
    try:
        parse_predicate(text)
    except PredicateError as error:
        reader.notebook.error(first_token(tree), Code.LIMIT, f"written out for others, {error.message}")
    return text


def _check_word(part: Tree[Token], reader: Reader) -> None:
    owners = _OWNERS_WORDS.get(part.data, "")
    if part.data == "variable" and tokens_in_tree(part, "DEFAULT"):
        owners = "`default`"
    if owners:
        message = f"{owners} is not part of the paper's language, and `wanting` is sent to other systems"
        hint = "write comparisons of what a task states: $mem <= 4GiB and $est_time >= 10min"
        reader.notebook.error(first_token(part), Code.NOT_OF_THE_PAPER, message, hint=hint)


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    match expression:
        case Comparison(kind=kind, left=left, order=order, right=right):
            return Comparison(kind=kind, left=_operand(left, names), order=order, right=_operand(right, names))
        case Not(operand):
            return Not(_renamed(operand, names))
        case Chain(connective, terms):
            return Chain(connective, tuple(_renamed(term, names) for term in terms))


def _operand(operand: Operand, names: Mapping[str, str]) -> Operand:
    return Variable(names[operand.name]) if isinstance(operand, Variable) else operand
