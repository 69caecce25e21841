"""The block `advertise` of a policy file: the vectors that neighbors get, and when they are sent (MESSIAHS 7.1)."""

from typing import Final

from lark import Token, Tree

from messiahs.core.interface.limits import LONGEST_PERIOD_NS
from messiahs.core.interface.parts import PartKind
from messiahs.core.model.attributes import EXTENSION_LIMIT, MACHINE_ATTRIBUTES, Attribute, Kind, Unit
from messiahs.core.model.instants import SECOND
from messiahs.language.compiler.amounts import read_amount
from messiahs.language.compiler.draft import Draft
from messiahs.language.compiler.durations import read_duration_ns
from messiahs.language.compiler.parts import read_part
from messiahs.language.compiler.predicates import read_condition
from messiahs.language.compiler.provability import Certainty
from messiahs.language.compiler.reader import Reader
from messiahs.language.compiler.shadowed_rules import follows, place_of
from messiahs.language.compiler.vocabulary import View
from messiahs.language.runtime.amounts import Amount
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.disclosing import Setting
from messiahs.language.runtime.readings import HERE, NOW
from messiahs.language.syntax.literals import (
    DIMENSIONS,
    EXAMPLES,
    bounds_text,
    check_dimension,
    quantity_of,
    range_of,
    read_literal,
)
from messiahs.language.syntax.parsing import (
    first_token,
    last_token,
    on_one_line,
    parse_statement,
    tokens_in_tree,
    trees_in,
)
from messiahs.language.syntax.problems import Code
from messiahs.language.syntax.statements import Item, Statement
from messiahs.policy.update import key_changes

ADVERTISE: Final = View(block="advertise", subject=HERE, scopes=(HERE, NOW))

_LARGEST_CHANGE: Final = 10_000


def read_advertise(item: Item, draft: Draft) -> None:
    """Record the period, the change that is sent at once, and the attributes that the own machine advertises."""
    notebook = draft.reader.notebook
    tree = parse_statement(item.head, "advertise", notebook)
    if tree is not None:
        draft.begin(first_token(tree))
        *quantities, last = trees_in(tree)
        _read_head(quantities if last.data == "part" else [*quantities, last], draft)
        if last.data == "part":
            part = read_part(last, PartKind.UPDATE, draft)
            if part is not None:
                draft.parts["update"] = part
    for statement in item.body or ():
        entry = parse_statement(statement, "advertise_entry", notebook)
        match entry.data if entry is not None else "":
            case "send_all":
                draft.sends_all = True
            case "send":
                assert entry is not None
                _read_send(tokens_in_tree(entry, "VARIABLE"), draft)
            case "set":
                assert entry is not None
                _read_set(entry, statement, draft)


def _read_head(quantities: list[Tree[Token]], draft: Draft) -> None:
    """Record the period, and the share of a change."""
    for quantity, enter_it in zip(quantities, (_read_period, _read_change), strict=False):
        enter_it(first_token(quantity), draft)


def _read_change(token: Token, draft: Draft) -> None:
    quantity = quantity_of(token)
    if quantity.unit is not Unit.SHARE or not 0 <= quantity.steps <= _LARGEST_CHANGE:
        draft.reader.notebook.error(token, Code.DIMENSION, f"`{token}` is not a share", hint="write 0% to 100%")
    draft.parts["update"] = key_changes(quantity.steps)


def _read_period(token: Token, draft: Draft) -> None:
    notebook, wrong = draft.reader.notebook, "the period is one second or more, in whole seconds"
    period_ns = read_duration_ns(
        token, notebook, example="2s or 1min", least_ns=SECOND, too_short=wrong, most_ns=LONGEST_PERIOD_NS
    )
    if period_ns is not None and period_ns % SECOND:
        notebook.error(token, Code.RANGE, wrong)
    elif period_ns is not None:
        draft.set_timeout("update_period_ns", period_ns)


def _read_send(variables: list[Token], draft: Draft) -> None:
    for token in variables:
        if _own_attribute(token, draft) is not None and token[1:] not in (*draft.sent, *MACHINE_ATTRIBUTES):
            draft.sent.append(token[1:])
            if len(draft.sent) > EXTENSION_LIMIT:
                draft.reader.notebook.error(token, Code.LIMIT, f"at most {EXTENSION_LIMIT} extensions are sent")


def _own_attribute(token: Token, draft: Draft) -> Attribute | None:
    """Return an attribute that the own machine may advertise; None, with a problem, for any other."""
    known = draft.reader.vocabulary.look_up(token, ADVERTISE, draft.reader.notebook)
    if known is None or known.attribute is None:
        return None
    vocabulary = draft.reader.vocabulary
    if token[1:] in {*MACHINE_ATTRIBUTES, *vocabulary.declared, *vocabulary.in_history}:
        return known.attribute
    draft.reader.notebook.error(token, Code.MEANING, f"{token} is never sent to others")
    return None


def _read_set(tree: Tree[Token], statement: Statement, draft: Draft) -> None:
    notebook = draft.reader.notebook
    (target,) = tokens_in_tree(tree, "VARIABLE")
    attribute = _own_attribute(target, draft)
    *others, last = trees_in(tree)
    amounts = [read_amount(part, ADVERTISE, draft.reader) for part in others[::2]]
    text = on_one_line(statement.words)
    conditions = [read_condition(part, ADVERTISE, draft.reader, text=text) for part in others[1::2]]
    otherwise = read_amount(last, ADVERTISE, draft.reader)
    if attribute is None:
        return
    if attribute.supplier != "policy" or attribute.kind is Kind.STRING:
        hint = "a policy sets $willingness, $comm_cost and the numbers that it declares"
        notebook.error(target, Code.MEANING, f"{target} cannot be set by a policy", hint=hint)
    elif any(setting.name == attribute.name for setting in draft.settings):
        notebook.error(target, Code.TWICE, f"{target} is set twice")
    else:
        for part, amount in zip((*others[::2], last), (*amounts, otherwise), strict=True):
            _check_amount(part, amount, target, attribute, reader=draft.reader)
    low, high = range_of(attribute)
    choices = tuple(zip(amounts, conditions, strict=True))
    draft.settings.append(
        Setting(
            name=attribute.name,
            choices=choices,
            otherwise=otherwise,
            low=low,
            high=high,
            unit=attribute.unit,
            start=statement.words[0].start_pos or 0,
        )
    )


def _check_amount(tree: Tree[Token], amount: Amount, target: Token, attribute: Attribute, /, *, reader: Reader) -> None:
    """Note a constant whose unit differs from its attribute's, or that is out of the attribute's range."""
    token, notebook = first_token(tree), reader.notebook
    if amount.readings:
        return
    if amount.unit is not None and amount.unit is not attribute.unit:
        message = f"{DIMENSIONS[attribute.unit]} set to a {DIMENSIONS[amount.unit]}"
        notebook.error(token, Code.DIMENSION, message, hint=EXAMPLES[attribute.unit])
        return
    if token.type == "INTEGER" and token is last_token(tree):
        check_dimension(read_literal(token), target, attribute, notebook=notebook)
    value = amount.value_in({})
    low, high = range_of(attribute)
    if value is not None and not low <= value <= high:
        notebook.error(token, Code.RANGE, f"${attribute.name} cannot be {value}", hint=bounds_text(attribute))


def check_advertise(draft: Draft, certainty: Certainty) -> None:
    """Warn of amounts that are never chosen, since the first choice that is true decides."""
    for setting in draft.settings:
        earlier: list[Condition] = []
        for _, condition in setting.choices:
            if follows((condition,), earlier, certainty):
                message = f"${setting.name} is never set by this: an earlier choice is true whenever this is"
                draft.reader.notebook.warning(
                    place_of(condition), Code.UNREACHABLE, message, hint="put it first, or remove it"
                )
            earlier.append(condition)
