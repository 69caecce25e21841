"""Evaluate one row of values by generated code, for predicates that are used repeatedly.

The code is built from nodes of Python's syntax tree, never from text. Literals are inserted as objects, and variables
as positions in the row, so no text of a stranger is ever read as Python.
"""

import ast
from types import CodeType, FunctionType
from typing import Final

from messiahs.core.interface.predicates import Truth
from messiahs.language.predicate.syntax import Chain, Comparison, Connective, Expression, Not, Operand, Order, Variable
from messiahs.language.predicate.truth import Places, truth_of

_ROW: Final = "values"
_OPERATORS: Final[dict[Order, type[ast.cmpop]]] = {
    Order.LESS: ast.Lt,
    Order.LESS_OR_EQUAL: ast.LtE,
    Order.EQUAL: ast.Eq,
    Order.NOT_EQUAL: ast.NotEq,
    Order.GREATER_OR_EQUAL: ast.GtE,
    Order.GREATER: ast.Gt,
}


class Binding:
    """An expression bound to the places of its variables (mutable).

    The first use gets a function that walks the tree; later uses get generated code, which takes as long to make as
    some hundred walks.
    """

    __slots__ = ("_expression", "_places", "_truth", "_uses")

    def __init__(self, expression: Expression, places: Places) -> None:
        self._expression, self._places = expression, places
        self._truth, self._uses = truth_of(expression, places), 0

    def truth(self) -> Truth:
        """Return a function that evaluates a row."""
        self._uses += 1
        if self._uses == 2:  # noqa: PLR2004 - the second time
            self._truth = generated_truth(self._expression, self._places)
        return self._truth


def generated_truth(expression: Expression, places: Places) -> Truth:
    """Return a function equal to that of `truth_of`, as generated code."""
    row = ast.arguments(posonlyargs=[ast.arg(arg=_ROW)], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    tree = ast.Expression(ast.Lambda(args=row, body=_code_of(expression, places)))
    module = compile(ast.fix_missing_locations(tree), "<predicate>", "eval")
    (code,) = (constant for constant in module.co_consts if isinstance(constant, CodeType))
    # The code calls and names nothing, so it needs no globals.
    return FunctionType(code, {})


def _code_of(expression: Expression, places: Places) -> ast.expr:
    match expression:
        case Comparison():
            left, right = _operand(expression.left, places), _operand(expression.right, places)
            return ast.Compare(left=left, ops=[_OPERATORS[expression.order]()], comparators=[right])
        case Not(operand):
            return ast.UnaryOp(op=ast.Not(), operand=_code_of(operand, places))
        case Chain(Connective.XOR, terms):
            return _parity([_code_of(term, places) for term in terms])
        case Chain(connective, ()):
            return ast.Constant(value=connective is Connective.AND)
        case Chain(connective, terms):
            operator = ast.And() if connective is Connective.AND else ast.Or()
            return ast.BoolOp(op=operator, values=[_code_of(term, places) for term in terms])


def _operand(operand: Operand, places: Places) -> ast.expr:
    if isinstance(operand, Variable):
        place = ast.Constant(value=places[operand.name])
        return ast.Subscript(value=ast.Name(id=_ROW, ctx=ast.Load()), slice=place, ctx=ast.Load())
    return ast.Constant(value=operand)


def _parity(terms: list[ast.expr]) -> ast.expr:
    """Join terms by halves, so that a long chain does not become a deep tree."""
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    return ast.BinOp(left=_parity(terms[:middle]), op=ast.BitXor(), right=_parity(terms[middle:]))
