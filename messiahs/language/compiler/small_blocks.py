"""The blocks of a policy file without rules: header, `attribute`, `let`, `combine`."""

from typing import Final

from lark import Token, Tree

from messiahs.core.model.attributes import (
    KEY_ATTRIBUTES,
    MACHINE_ATTRIBUTES,
    SEEN_BY_THE_OWNER,
    TASK_ATTRIBUTES,
    Attribute,
    Kind,
    Scope,
    Unit,
)
from messiahs.language.compiler.draft import DEFAULT, Draft
from messiahs.language.compiler.predicates import define_let
from messiahs.language.compiler.vocabulary import View
from messiahs.language.predicate.parsing import unescaped
from messiahs.language.runtime.readings import MACHINE, Group
from messiahs.language.syntax.literals import quantity_of
from messiahs.language.syntax.parsing import first_token, parse_statement, tokens_in_tree, trees_in
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.statements import Item

COMBINE: Final = View(block="combine", subject=MACHINE, scopes=())

_VERSION: Final = "1"
_UNITS: Final = {"size": Unit.BYTES, "duration": Unit.SECONDS, "percent": Unit.SHARE}


def read_header(item: Item, draft: Draft) -> None:
    """Record the name of the policy."""
    tree = parse_statement(item.head, "header", draft.reader.notebook)
    if tree is None:
        return
    draft.begin(first_token(tree))
    draft.name = unescaped(tokens_in_tree(tree, "TEXT")[0])
    for version in tokens_in_tree(tree, "INTEGER"):
        if version != _VERSION:
            message = f"unknown version {version} of the language"
            draft.reader.notebook.error(version, Code.MEANING, message, hint=f"this release reads version {_VERSION}")


def read_attribute(item: Item, draft: Draft) -> None:
    """Declare an attribute; after an invalid declaration the name is still known, so that its uses are no mistakes."""
    notebook, declared = draft.reader.notebook, draft.reader.vocabulary.declared
    variables = [word for word in item.head.words if word.type == "VARIABLE"]
    tree = parse_statement(item.head, "attribute", notebook)
    if not variables:
        return
    token, name = variables[0], variables[0][1:]
    fixed = {*MACHINE_ATTRIBUTES, *TASK_ATTRIBUTES}
    fixed |= {each.name for each in SEEN_BY_THE_OWNER if each.scope in {Scope.HERE, Scope.PRESENT_TASK}}
    if "." in name:
        notebook.error(token, Code.SCOPE, "an attribute is declared without a scope")
    elif name in fixed:
        notebook.error(token, Code.TWICE, f"{token} is already known", hint="only extensions are declared")
    elif name in declared:
        notebook.error(token, Code.TWICE, f"{token} is already declared")
    else:
        declared[name] = None if tree is None else _attribute(name, tree, notebook)


def _attribute(name: str, tree: Tree[Token], notebook: Notebook) -> Attribute:
    (said,) = trees_in(tree)
    word = first_token(said)
    kind = Kind.STRING if word == "string" else Kind.INTEGER
    ends = [quantity_of(first_token(part)).steps for part in trees_in(said)]
    for part in trees_in(said):
        if quantity_of(first_token(part)).unit is not Unit.NONE:
            notebook.error(first_token(part), Code.DIMENSION, "the bounds of an int are plain numbers")
    low, high = ends or (None, None)
    if low is not None and high is not None and low > high:
        notebook.error(word, Code.RANGE, f"nothing is between {low} and {high}")
        low, high = None, None
    return Attribute(
        name=name,
        kind=kind,
        unit=_UNITS.get(word, Unit.NONE),
        scope=Scope.MACHINE,
        supplier="policy",
        meaning="declared by the policy",
        is_optional=bool(tokens_in_tree(tree, "OPTIONAL")),
        low=low,
        high=high,
    )


def read_group(item: Item, draft: Draft) -> None:
    """Define a group; after an invalid definition the name is still known, so that its uses are no mistakes."""
    notebook, groups = draft.reader.notebook, draft.reader.groups
    names = [word for word in item.head.words[1:2] if word.type == "NAME"]
    tree = parse_statement(item.head, "members", notebook)
    if not names:
        return
    name = names[0]
    if name in groups:
        notebook.error(name, Code.TWICE, f"`group {name}` occurs twice", hint="join the two lists")
        return
    members = [] if tree is None else tokens_in_tree(tree, "TEXT")
    groups[str(name)] = Group(str(name), frozenset(map(unescaped, members))) if members else None


def read_let(item: Item, draft: Draft) -> None:
    """Define a named predicate."""
    notebook = draft.reader.notebook
    tree = parse_statement(item.head, "let", notebook)
    names = [word for word in item.head.words if word.type == "NAME"]
    if not names:
        return
    if names[0] in draft.reader.lets:
        notebook.error(names[0], Code.TWICE, f"`let {names[0]}` occurs twice")
    else:
        define_let(str(names[0]), None if tree is None else trees_in(tree)[0], draft.reader)


def read_combine(item: Item, draft: Draft) -> None:
    """Record the keys, and the attributes that are carried and dropped."""
    notebook = draft.reader.notebook
    if parse_statement(item.head, "combine", notebook) is not None:
        draft.begin(item.head.words[0])
    for statement in item.body or ():
        tree = parse_statement(statement, "combine_entry", notebook)
        if tree is None:
            continue
        subject, _, rule = tokens_in_tree(tree)
        name = DEFAULT if subject.type == "DEFAULT" else subject[1:]
        if name != DEFAULT and draft.reader.vocabulary.look_up(subject, COMBINE, notebook) is None:
            continue
        if name in draft.combined:
            notebook.error(subject, Code.TWICE, f"{subject} occurs twice in `combine`")
        elif name == DEFAULT and rule == "key":
            notebook.error(rule, Code.MEANING, "`default` cannot be a key", hint="write carry or drop")
        elif name in KEY_ATTRIBUTES and rule != "key":
            notebook.error(rule, Code.MEANING, f"{subject} is always a key")
        draft.combined[name] = str(rule)
