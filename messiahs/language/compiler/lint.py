"""Warnings about a valid policy file: rules that contradict each other or never apply."""

from collections.abc import Sequence
from typing import Final

from lark import Token

from messiahs.core.interface.policies import Act
from messiahs.core.model.attributes import NOBODY_YET, SCOPES, SEEN_BY_THE_OWNER
from messiahs.language.compiler.constant_predicates import certainty_in
from messiahs.language.compiler.draft import Draft
from messiahs.language.compiler.provability import Certainty
from messiahs.language.compiler.shadowed_rules import warn_of_masked
from messiahs.language.predicate.syntax import Chain, Connective, Expression, Not
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.readings import HERE, TASK, reads
from messiahs.language.runtime.running_rules import CompiledRule
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.statements import Item, Statement

_RELATIONS: Final = {"PARENT", "CHILDREN", "SIBLINGS"}
_BY_PEER: Final = ("ACCEPT", "REVEAL")


def review(items: Sequence[Item], draft: Draft) -> None:
    """Add every warning."""
    notebook = draft.reader.notebook
    if not items:
        start = Token("$START", "", start_pos=0, end_pos=0)
        hint = 'only local users are accepted; admit others with `accept`, or begin with `policy "NAME";`'
        notebook.warning(start, Code.EMPTY, "this file contains no policy", hint=hint)
    certainty = certainty_in(draft.reader.vocabulary, draft.reader.effort)
    for block in _BY_PEER:
        _warn_of_unreachable([item.head for item in items if item.head.words[0].type == block], notebook)
    for rule, statement in draft.running:
        _warn_of_lost_sensor(rule, statement, certainty, notebook=notebook)
    _warn_of_opposites(draft.running, certainty, notebook)
    _warn_of_never_resumed(draft.running, notebook)
    warn_of_masked(draft, certainty)
    _warn_of_unused(items, notebook)
    _warn_of_unset(items, notebook)


def _warn_of_unreachable(heads: Sequence[Statement], notebook: Notebook) -> None:
    """Warn of a block for `any` if every neighbor has a closer one, unless it reveals nothing: that is for safety."""
    is_safe = any({"ANY", "NOTHING"} <= {word.type for word in head.words} for head in heads)
    words: list[Token] = [word for head in heads for word in head.words]
    if {word.type for word in words} >= _RELATIONS:
        for word in words:
            if word.type == "ANY" and not is_safe:
                hint = "parent, children and siblings have blocks of their own"
                notebook.warning(word, Code.UNREACHABLE, "this applies to no neighbor", hint=hint)


def _warn_of_unused(items: Sequence[Item], notebook: Notebook) -> None:
    """Warn of an attribute that is declared and never used in the file."""
    used: set[str] = set()
    declared: list[Token] = []
    for item in items:
        names = [word for each in (item.head, *(item.body or ())) for word in each.words if word.type == "VARIABLE"]
        if item.head.words[0].type == "ATTRIBUTE":
            declared += names
        else:
            used.update(name[1:].rpartition(".")[2] for name in names)
    for token in declared:
        if token[1:] not in used:
            hint = "remove it: a declaration is only needed where the attribute is used"
            notebook.warning(token, Code.UNUSED, f"{token} is declared and never used in this policy", hint=hint)


def _warn_of_unset(items: Sequence[Item], notebook: Notebook) -> None:
    """Warn of attributes that no release sets yet, wherever they are read."""
    unset = {
        f"${scope}.{each.name}"
        for each in SEEN_BY_THE_OWNER
        if each.supplier == NOBODY_YET
        for scope in SCOPES[each.scope]
    }
    for item in items:
        for statement in (item.head, *(item.body or ())):
            for word in statement.words:
                if word in unset:
                    hint = f"with `{word} default 0` the rest of the rule still counts"
                    notebook.warning(word, Code.UNSAID, f"nothing sets {word} yet, so it is always unset", hint=hint)


def _warn_of_lost_sensor(rule: CompiledRule, statement: Statement, certainty: Certainty, *, notebook: Notebook) -> None:
    """Warn of a rule that protects the owner and does not act where a sensor is missing or broken."""
    if rule.is_unless or rule.act is Act.RESUME:
        return
    for reading in rule.condition.readings:
        attribute = certainty.attribute_of(reading)
        if reading.scope == HERE and reading.is_needed and attribute is not None and attribute.is_optional:
            message = f"without {reading} the tasks keep running"
            hint = f"write {rule.act} unless, and the opposite: it also acts where the value is missing"
            notebook.warning(statement.words[1], Code.LOST_SENSOR, message, hint=hint)


def _warn_of_opposites(
    rules: Sequence[tuple[CompiledRule, Statement]], certainty: Certainty, notebook: Notebook, /
) -> None:
    """Warn of a `resume` that can be true together with a `suspend`."""
    suspending = [rule for rule, _ in rules if rule.act is Act.SUSPEND]
    for resuming, statement in rules:
        if resuming.act is not Act.RESUME:
            continue
        for rule in suspending:
            parts = [*_parts_of(rule), *_parts_of(resuming)]
            readings = {each.key: each for condition, _ in parts for each in condition.readings}
            both = Chain(Connective.AND, tuple(expression for _, expression in parts))
            if not certainty.is_never_true(both, tuple(readings.values())):
                message = f"this can be true together with `{rule.rule}`, which wins"
                notebook.warning(statement.words[0], Code.TOGETHER, message, hint="let them exclude each other")
                break


def _warn_of_never_resumed(rules: Sequence[tuple[CompiledRule, Statement]], notebook: Notebook, /) -> None:
    """Warn of the first rule that suspends tasks if no rule resumes them or ends long-suspended ones."""
    suspending = [statement for rule, statement in rules if Act.SUSPEND in {rule.act, rule.then}]
    has_end = any(rule.act is Act.RESUME or reads(rule.condition, TASK, "suspended") for rule, _ in rules)
    if suspending and not has_end:
        hint = "write when they resume, as in: resume when $here.load < 50%;"
        message = "no rule resumes the tasks that this suspends"
        notebook.warning(suspending[0].words[0], Code.NEVER_RESUMED, message, hint=hint)


def _parts_of(rule: CompiledRule) -> list[tuple[Condition, Expression]]:
    own = rule.condition.expression
    heads = [] if rule.head is None else [(rule.head, rule.head.expression)]
    return [*heads, (rule.condition, Not(own) if rule.is_unless else own)]
