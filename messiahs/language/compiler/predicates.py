"""Compile the syntax tree of a predicate in a policy file to a condition, with all checks.

A `let` is expanded where it is used, so its variables are those of the predicate that names it. It is evaluated in the
block of its use, and counts against the limits of that predicate.
"""

from typing import Final

from lark import Token, Tree

from messiahs.core.model.attributes import Kind
from messiahs.language.compiler.amounts import amount_in
from messiahs.language.compiler.constant_predicates import (
    Predicate,
    certainty_in,
    check_presence,
    check_truth,
    span_of,
)
from messiahs.language.compiler.operands import (
    Computed,
    WrittenOperand,
    check_operand,
    check_pair,
    filled_in,
    in_units_of_each_other,
    kinds_of,
    name_in,
    read_filled,
    reading_of,
    unit_of,
)
from messiahs.language.compiler.reader import Let, Reader, Scene
from messiahs.language.compiler.vocabulary import LET, View
from messiahs.language.predicate.limits import COMPARISON_LIMIT, NESTING_LIMIT
from messiahs.language.predicate.parsing import unescaped
from messiahs.language.predicate.syntax import (
    ALWAYS,
    COMPARATORS,
    SPELLINGS,
    Comparison,
    Connective,
    Expression,
    Not,
    Order,
    Variable,
    chain,
)
from messiahs.language.runtime.amounts import attributes_of
from messiahs.language.runtime.conditions import Condition, condition_of
from messiahs.language.runtime.readings import Group, Reading, matches
from messiahs.language.syntax.literals import Literal, in_unit, read_literal
from messiahs.language.syntax.parsing import first_token, tokens_in_tree, trees_in
from messiahs.language.syntax.problems import Code, nearest
from messiahs.language.syntax.written import start_of, written_of

_OPERATORS: Final = ("ADD", "MUL")
_CONNECTIVES: Final = {"disjunction": Connective.OR, "exclusion": Connective.XOR, "conjunction": Connective.AND}


def define_let(name: str, tree: Tree[Token] | None, reader: Reader, /) -> None:
    """Record a named predicate; an invalid or too large one is recorded as such, so that its uses are no mistakes."""
    let = None
    if tree is not None and not _uses_a_bad_let(tree, reader) and _is_within_limits(tree, reader):
        earlier = reader.notebook.mistakes
        _checked(tree, Scene(reader=reader, view=LET))
        let = Let(tree, *_weight(tree, reader)) if reader.notebook.mistakes == earlier else None
    reader.defined_below.discard(name)
    reader.lets[name] = let


def read_condition(tree: Tree[Token], view: View, reader: Reader, /, *, text: str) -> Condition:
    """Return the condition of a predicate; meaningless after a problem."""
    scene = Scene(reader=reader, view=view)
    expression = _checked(tree, scene) if _is_within_limits(tree, reader) else ALWAYS
    operands = tuple(scene.operands.values())
    if reader.notebook.errors:
        return condition_of(expression, operands, text=text)
    written = written_of(tree, reader.lets, lambda part: _expression(part, scene))
    return condition_of(expression, operands, text=text, written=written, start=start_of(tree))


def read_expression(tree: Tree[Token], view: View, reader: Reader, /) -> tuple[Expression, tuple[Reading, ...]]:
    """Return the expression of a predicate, and the readings that its variables name; meaningless after a problem."""
    scene = Scene(reader=reader, view=view)
    expression = _checked(tree, scene) if _is_within_limits(tree, reader) else ALWAYS
    return expression, attributes_of(scene.operands.values())


def _checked(tree: Tree[Token], scene: Scene) -> Expression:
    """Return the expression of a predicate; if it has no problems, also check when it is true."""
    reader = scene.reader
    earlier = reader.notebook.mistakes
    expression = _expression(tree, scene)
    if reader.notebook.mistakes == earlier and not _uses_a_bad_let(tree, reader):
        predicate = Predicate(
            tree=tree, operands=tuple(scene.operands.values()), expression_of=lambda part: _expression(part, scene)
        )
        certainty = certainty_in(reader.vocabulary, reader.effort)
        check_truth(predicate, certainty, reader.notebook)
        check_presence(predicate, certainty, reader.notebook)
    return expression


def _uses_a_bad_let(tree: Tree[Token], reader: Reader) -> bool:
    uses = (first_token(use) for use in tree.find_data("let_use"))
    return any(use in reader.lets and reader.lets[use] is None for use in uses)


def _is_within_limits(tree: Tree[Token], reader: Reader) -> bool:
    comparisons, depth = _weight(tree, reader)
    if comparisons <= COMPARISON_LIMIT and depth <= NESTING_LIMIT:
        return True
    what = (
        f"more than {COMPARISON_LIMIT} comparisons and operations"
        if comparisons > COMPARISON_LIMIT
        else f"deeper than {NESTING_LIMIT}"
    )
    reader.notebook.error(first_token(tree), Code.LIMIT, f"with every `let` expanded, this is {what}")
    return False


def _weight(tree: Tree[Token], reader: Reader) -> tuple[int, int]:
    """Return the number of comparisons and operations in a tree and its depth, with every `let` expanded."""
    if tree.data == "let_use":
        let = reader.lets.get(first_token(tree))
        # Count it as deep as in parentheses: trees are walked recursively, also through a long chain of names.
        return (let.comparisons, let.depth + 1) if let is not None else (1, 0)
    if tree.data == "membership":
        return len(tokens_in_tree(tree, "COMMA")) + 1 + _operations_in(tree), 0
    if tree.data in {"comparison", "likeness", "in_group", "presence"}:
        return 1 + _operations_in(tree), 0
    weights = [_weight(part, reader) for part in trees_in(tree)]
    own_depth = tree.data in {"negation", "group"}
    return sum(comparisons for comparisons, _ in weights), max(depth for _, depth in weights) + own_depth


def _operations_in(tree: Tree[Token]) -> int:
    return sum(1 for _ in tree.scan_values(lambda value: isinstance(value, Token) and value.type in _OPERATORS))


def _expression(tree: Tree[Token], scene: Scene) -> Expression:
    match tree.data:
        case "negation":
            return Not(_expression(trees_in(tree)[0], scene))
        case "group" | "predicate":
            return _expression(trees_in(tree)[0], scene)
        case "let_use":
            return _let_use(first_token(tree), scene)
        case "presence":
            return _presence(tokens_in_tree(tree, "VARIABLE")[0], scene)
        case "comparison":
            return _comparison(tree, scene)
        case "membership":
            return _membership(tree, scene)
        case "likeness":
            return _likeness(tree, scene)
        case "in_group":
            return _in_group(tree, scene)
        case rule:
            return _chain(tree, _CONNECTIVES[rule], scene)


def _chain(tree: Tree[Token], connective: Connective, scene: Scene) -> Expression:
    parts = trees_in(tree)
    for part in parts:
        if connective is Connective.OR and part.data == "exclusion":
            message = "`xor` beside `or` is read differently by others: it binds tighter here"
            place = tokens_in_tree(part, "XOR")[0]
            scene.reader.notebook.warning(place, Code.XOR, message, hint="put parentheses around it")
        elif connective is Connective.XOR and part.data == "conjunction":
            message, hint = "`and` beside `xor` is easily misread: it binds tighter", "put parentheses around it"
            scene.reader.notebook.warning(tokens_in_tree(part, "AND")[0], Code.XOR, message, hint=hint)
    return chain(connective, [_expression(part, scene) for part in parts])


def _let_use(token: Token, scene: Scene) -> Expression:
    reader = scene.reader
    let = reader.lets.get(token)
    if let is not None:
        return _expression(let.tree, scene)
    if token in reader.defined_below:
        hint = "define a `let` before its use"
        reader.notebook.error(token, Code.LET, f"`{token}` is defined below or by itself", hint=hint)
    elif token not in reader.lets:
        hint = nearest(token, reader.lets) or f"write ${token} for an attribute, or define it: let {token} = ...;"
        reader.notebook.error(token, Code.LET, f"unknown `let {token}`", hint=hint)
    return ALWAYS


def _presence(token: Token, scene: Scene) -> Expression:
    known = scene.reader.vocabulary.look_up(token, scene.view, scene.reader.notebook)
    if known is None:
        return ALWAYS
    reading = Reading(scope=known.scope, name=name_in(token), kind=Kind.INTEGER, is_presence=True)
    return _is_one(reading, scene)


def _is_one(reading: Reading, scene: Scene) -> Expression:
    scene.operands[reading.key] = reading
    return Comparison(kind=Kind.INTEGER, left=Variable(reading.key), order=Order.EQUAL, right=1)


def _comparison(tree: Tree[Token], scene: Scene) -> Expression:
    (comparator,) = tokens_in_tree(tree)
    left, right = (_operand(part, scene) for part in trees_in(tree))
    if left is None or right is None:
        return ALWAYS
    left, right = in_units_of_each_other(left, right)
    kind, order = COMPARATORS[comparator]
    if kind not in {*kinds_of(left), *kinds_of(right)}:
        other = Kind.STRING if kind is Kind.INTEGER else Kind.INTEGER
        hint = f"write {SPELLINGS[other, order]} to compare {other}s"
        message = f"`{comparator}` compares {kind}s, and these are {other}s"
        scene.reader.notebook.error(comparator, Code.TYPE, message, hint=hint)
        return ALWAYS
    for operand in (left, right):
        check_operand(operand, kind, scene, comparator=comparator)
    check_pair(left, right, order, notebook=scene.reader.notebook)
    return Comparison(kind=kind, left=filled_in(left, kind, scene), order=order, right=filled_in(right, kind, scene))


def _membership(tree: Tree[Token], scene: Scene) -> Expression:
    subject, *members = trees_in(tree)
    operand = _operand(subject, scene)
    if operand is None:
        return ALWAYS
    literals = [in_unit(read_literal(first_token(member)), unit_of(operand)) for member in members]
    kind = literals[0].kind
    for each in (operand, *literals):
        check_operand(each, kind, scene)
    for literal in literals:
        check_pair(operand, literal, Order.EQUAL, notebook=scene.reader.notebook)
    left = filled_in(operand, kind, scene)
    equal = [Comparison(kind=kind, left=left, order=Order.EQUAL, right=literal.value) for literal in literals]
    return chain(Connective.OR, equal)


def _likeness(tree: Tree[Token], scene: Scene) -> Expression:
    return _matching(tree, unescaped(tokens_in_tree(tree, "TEXT")[0]), scene)


def _in_group(tree: Tree[Token], scene: Scene) -> Expression:
    reader, (name,) = scene.reader, tokens_in_tree(tree, "NAME")
    if name not in reader.groups:
        hint = nearest(name, reader.groups) or f'define it: group {name} = ("ann", "bob");'
        reader.notebook.error(name, Code.UNKNOWN_NAME, f"unknown group `{name}`", hint=hint)
    return _matching(tree, reader.groups.get(name) or Group(str(name), frozenset()), scene)


def _matching(tree: Tree[Token], pattern: str | Group, scene: Scene) -> Expression:
    operand = _operand(trees_in(tree)[0], scene)
    if operand is None:
        return ALWAYS
    check_operand(operand, Kind.STRING, scene)
    if isinstance(operand, Computed):
        return ALWAYS
    if isinstance(operand, Literal):
        is_like = int(matches(pattern, str(operand.value)))
        return Comparison(kind=Kind.INTEGER, left=is_like, order=Order.EQUAL, right=1)
    return _is_one(reading_of(operand, Kind.STRING, pattern=pattern), scene)


def _operand(tree: Tree[Token], scene: Scene) -> WrittenOperand | None:
    """Return an operand; None, with a problem, for a variable without a meaning."""
    match tree.data:
        case "literal" | "quantity":
            return read_literal(first_token(tree))
        case "variable":
            return read_filled(tree, scene)
        case "amount":
            return _operand(trees_in(tree)[0], scene)
        case _:
            return Computed(span_of(tree), amount_in(tree, scene))
