"""Attributes stated to try out a policy: `mem = 4GiB`, `name = "cs"`, written as in policy files."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from lark import Token

from messiahs.core.model.attributes import Attribute, Kind, Value
from messiahs.errors import PolicyError
from messiahs.language.compiler.vocabulary import Vocabulary
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.syntax.literals import check_dimension, check_range, in_unit, read_literal
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.scanning import BAD, tokens_in

_LITERALS: Final = ("TEXT", "INTEGER", "QUANTITY")


def attributes_of(scope: str, policy: CompiledPolicy) -> dict[str, Attribute]:
    """Return every attribute that can be stated in a scope: of the catalogue, and of the policy and its histories."""
    vocabulary = Vocabulary(
        declared={each.name: each for each in policy.declared},
        in_history={each.name: each for each in policy.in_history},
    )
    return {name: each for name, each in vocabulary.names_in(scope).items() if each is not None}


def stated(name: Token, word: Token, known: Mapping[str, Attribute], /, *, notebook: Notebook) -> Value | None:
    """Return the value of a literal for an attribute; None, with a problem, if it does not fit."""
    attribute = known.get(name)
    if attribute is None:
        near = get_close_matches(name, sorted(known), n=1)
        hint = f"did you mean {near[0]}?" if near else "state attributes of the schema, or declared by the policy"
        notebook.error(name, Code.UNKNOWN_ATTRIBUTE, f"`{name}` is not known here", hint=hint)
        return None
    literal = in_unit(read_literal(word), attribute.unit)
    if literal.kind is not attribute.kind:
        message = f"`{name}` is {'a string' if attribute.kind is Kind.STRING else 'an integer'}"
        notebook.error(word, Code.TYPE, message, hint='strings are written in "quotes"')
        return None
    check_dimension(literal, name, attribute, notebook=notebook)
    check_range(literal, attribute, order=None, notebook=notebook)
    return literal.value


def read_statement(text: str, known: Mapping[str, Attribute], /, *, file: str) -> dict[str, Value]:
    """Return the value of one `name=value`; a string needs no quotes. Raises PolicyError."""
    name, _, value = text.partition("=")
    attribute = known.get(name.strip())
    is_bare = attribute is not None and attribute.kind is Kind.STRING and not value.strip().startswith('"')
    shown = f'{name}="{value.strip()}"' if is_bare else text
    return read_statements(shown, known, file=file)


def read_statements(text: str, known: Mapping[str, Attribute], /, *, file: str) -> dict[str, Value]:
    """Return the values in a text, one `name=value` per line; raises PolicyError with every mistake."""
    notebook = Notebook(file=file, text=text)
    lines: dict[int, list[Token]] = {}
    for token in tokens_in(notebook):
        lines.setdefault(text.count("\n", 0, token.start_pos), []).append(token)
    found: dict[str, Value] = {}
    for words in lines.values():
        name, *rest = words
        if any(word.type == BAD for word in words):
            continue
        if len(rest) != 2 or rest[0] != "=" or rest[1].type not in _LITERALS:  # noqa: PLR2004 - a name, `=` and a value
            notebook.error(
                name, Code.SYNTAX, "this is not a statement", hint='write mem=4GiB or name="cs", one in a line'
            )
            continue
        value = stated(name, rest[1], known, notebook=notebook)
        if value is not None:
            found[str(name)] = value
    if notebook.errors:
        raise PolicyError(tuple(problem for problem in notebook.in_order() if not problem.is_warning))
    return found
