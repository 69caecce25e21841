"""Parts that a policy names: `part(NAME = LITERAL, ...)`, the same in every block."""

from lark import Token, Tree

from messiahs.core.interface.parts import PartKind
from messiahs.core.model.attributes import INTEGER_HIGHEST, Kind, Unit, Value
from messiahs.language.compiler.draft import Draft
from messiahs.language.predicate.source_places import quoted
from messiahs.language.syntax.literals import EXAMPLES, MEANINGS, read_literal
from messiahs.language.syntax.parsing import first_token, last_token, tokens_in_tree, trees_in
from messiahs.language.syntax.problems import Code, Notebook, nearest
from messiahs.language.syntax.quantities import shown
from messiahs.policy.external_parts import failure_text
from messiahs.policy.parts import DeclaredPart, NamedPart, Parameter

_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"})


def read_part(tree: Tree[Token], kind: PartKind, draft: Draft, /) -> NamedPart | None:
    """Return the named part; None, with every problem, if it is unknown or its parameters are wrong."""
    name, notebook = first_token(tree), draft.reader.notebook
    declared = draft.catalogue.of_kind(kind).get(name)
    if declared is None:
        notebook.error(
            name, Code.UNKNOWN_PART, f"{quoted(name)} is not a part of `{kind}`", hint=_hint(name, kind, draft)
        )
        return None
    found = notebook.mistakes
    given = _read_arguments(trees_in(tree), declared, notebook)
    missing = [each.name for each in declared.parameters if each.default is None and each.name not in given]
    if missing:
        notebook.error(name, Code.PARAMETER, f"`{declared.name}` needs {', '.join(missing)}", hint=_listed(declared))
    if notebook.mistakes > found:
        return None
    return _made(declared, given, name, notebook)


def _hint(name: Token, kind: PartKind, draft: Draft) -> str:
    if broken := draft.catalogue.found.broken.get(name):
        return broken
    elsewhere = [other for other in draft.catalogue.kinds_of(name) if other is not kind]
    if elsewhere:
        return f"it is a part of `{elsewhere[0]}`"
    known = draft.catalogue.of_kind(kind)
    return nearest(name, known) or f"the parts of `{kind}` are {', '.join(sorted(known))}; others must be installed"


def _read_arguments(arguments: list[Tree[Token]], declared: DeclaredPart, notebook: Notebook) -> dict[str, Value]:
    parameters = {each.name: each for each in declared.parameters}
    given: dict[str, Value] = {}
    for argument in arguments:
        name, value = tokens_in_tree(argument, "NAME")[0], last_token(argument)
        parameter = parameters.get(name)
        if parameter is None:
            hint = nearest(name, parameters) or _listed(declared)
            notebook.error(name, Code.PARAMETER, f"{quoted(name)} is not a parameter of `{declared.name}`", hint=hint)
        elif name in given:
            notebook.error(name, Code.TWICE, f"`{name}` occurs twice")
        else:
            given[str(name)] = _read_value(value, parameter, notebook)
    return given


def _read_value(token: Token, parameter: Parameter, notebook: Notebook) -> Value:
    literal = read_literal(token)
    problem = ""
    if literal.kind is not parameter.kind:
        problem = "a string" if parameter.kind is Kind.STRING else MEANINGS[parameter.unit]
    elif isinstance(literal.value, str):
        if parameter.choices and literal.value not in parameter.choices:
            problem = f"one of {', '.join(parameter.choices)}"
    elif literal.unit is not parameter.unit and (literal.value or literal.unit is not Unit.NONE):
        problem = MEANINGS[parameter.unit]
    elif not parameter.lowest <= literal.value <= parameter.highest:
        least, most = shown(parameter.lowest, parameter.unit), shown(parameter.highest, parameter.unit)
        problem = f"from {least} to {most}" if parameter.highest < INTEGER_HIGHEST else f"{least} at least"
    if problem:
        hint = 'strings are written in "quotes"' if parameter.kind is Kind.STRING else EXAMPLES[parameter.unit]
        notebook.error(token, Code.PARAMETER_VALUE, f"`{parameter.name}` is {problem}", hint=hint)
    return literal.value


def _listed(declared: DeclaredPart) -> str:
    names = ", ".join(each.name for each in declared.parameters)
    return f"its parameters are {names}" if names else "it has no parameters"


def _made(declared: DeclaredPart, given: dict[str, Value], name: Token, notebook: Notebook, /) -> NamedPart | None:
    values: dict[str, Value] = {}
    for each in declared.parameters:
        value = given.get(each.name, each.default)
        assert value is not None, "every parameter without a default was given"
        values[each.name] = value
    try:
        decider = declared.make(**values)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a part may refuse its parameters with any exception
        message = f"`{declared.name}` cannot be created: {failure_text(error)}"
        notebook.error(name, Code.PARAMETER_VALUE, message)
        return None
    return NamedPart(declared=declared, text=part_text(declared, values), decider=decider)


def part_text(declared: DeclaredPart, values: dict[str, Value], /) -> str:
    """Return a part with all of its parameters as a policy file names it."""
    given = ", ".join(f"{each.name} = {_value_text(values[each.name], each)}" for each in declared.parameters)
    return f"{declared.name}({given})"


def _value_text(value: Value, parameter: Parameter) -> str:
    return f'"{value.translate(_ESCAPES)}"' if isinstance(value, str) else shown(value, parameter.unit)
