"""Alternatives and rules that never decide, because others imply them (MESSIAHS 5.4).

A condition follows from others only if it is also defined wherever they are: it needs no attribute that they do not
need. Every warning here is proved; whatever is too complex to prove gets no warning.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from lark import Token

from messiahs.core.interface.policies import Act
from messiahs.core.model.attributes import Kind
from messiahs.language.compiler.draft import Draft
from messiahs.language.compiler.provability import Certainty
from messiahs.language.predicate.syntax import Chain, Connective, Expression, Not, comparisons_of
from messiahs.language.runtime.accept_rules import AcceptBlock
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.disclosing import Setting
from messiahs.language.runtime.join_rules import Entry
from messiahs.language.runtime.readings import HERE
from messiahs.language.runtime.running_rules import CompiledRule
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.statements import Statement

_MASKING: Final = {
    Act.KILL: {Act.KILL, Act.VACATE, Act.MOVE, Act.SUSPEND, Act.RESUME},
    Act.VACATE: {Act.VACATE, Act.MOVE, Act.SUSPEND, Act.RESUME},
    Act.MOVE: {Act.MOVE},
    Act.SUSPEND: {Act.SUSPEND, Act.RESUME},
    Act.RESUME: {Act.RESUME},
}
"""For each act that is due, the acts that it prevents; a task that searches for a place may be suspended meanwhile."""


def warn_of_masked(draft: Draft, certainty: Certainty) -> None:
    """Warn of every such choice, alternative and rule."""
    notebook = draft.reader.notebook
    for setting in draft.settings:
        _warn_of_choices(setting, certainty, notebook)
    for block in {block.start: block for block in draft.accepted.values()}.values():
        _warn_of_occasions(block, certainty, notebook)
    _warn_of_superfluous(draft.migration.offered, certainty, notebook)
    _warn_of_entries(draft.entries, certainty, notebook)
    _warn_of_rules(draft.running, certainty, notebook)


def _warn_of_choices(setting: Setting, certainty: Certainty, notebook: Notebook, /) -> None:
    """Warn of amounts that are never chosen, since the first choice that is true decides."""
    earlier: list[Condition] = []
    for _, condition in setting.choices:
        if _follows((condition,), earlier, certainty):
            message = f"${setting.name} is never set by this: an earlier choice is true whenever this is"
            notebook.warning(_place(condition), Code.UNREACHABLE, message, hint="put it first, or remove it")
        earlier.append(condition)


def _warn_of_occasions(block: AcceptBlock, certainty: Certainty, notebook: Notebook, /) -> None:
    # A system without a machine evaluates classes, part by part, and accepts what could be true: little is certain.
    conditions = [each.condition for each in block.occasions]
    _warn_of_superfluous(conditions, certainty, notebook, is_candidate=_is_exact_over_classes)


def _is_exact_over_classes(condition: Condition) -> bool:
    here = [reading for reading in condition.readings if reading.scope == HERE]
    is_plain = all(reading.default is None and reading.pattern is None and not reading.is_presence for reading in here)
    return not here or (is_plain and len(tuple(comparisons_of(condition.expression))) == 1)


def _warn_of_superfluous(
    conditions: Sequence[Condition],
    certainty: Certainty,
    notebook: Notebook,
    /,
    *,
    is_candidate: Callable[[Condition], bool] = lambda _: True,
) -> None:
    """Warn of alternatives that the others imply; of two equal ones, of the later one."""
    kept = list(conditions)
    for condition in reversed(conditions):
        others = [each for each in kept if each is not condition]
        if is_candidate(condition) and _follows((condition,), others, certainty):
            kept = others
            _note_superfluous(condition, notebook)


def _warn_of_entries(entries: Sequence[Entry], certainty: Certainty, notebook: Notebook, /) -> None:
    kept = list(entries)
    for entry in reversed(entries):
        others = [each for each in kept if each is not entry]
        wider = [each.condition for each in others if each.role is entry.role and _is_as_wide(each, entry)]
        if _follows((entry.condition,), wider, certainty):
            kept = others
            _note_superfluous(entry.condition, notebook)


def _is_as_wide(one: Entry, other: Entry) -> bool:
    return one.limit is None or (other.limit is not None and one.limit >= other.limit)


def _note_superfluous(condition: Condition, notebook: Notebook) -> None:
    message = "this adds nothing: another alternative is true whenever it is"
    notebook.warning(_place(condition), Code.UNREACHABLE, message, hint="remove it, or correct it")


def _warn_of_rules(
    rules: Sequence[tuple[CompiledRule, Statement]], certainty: Certainty, notebook: Notebook, /
) -> None:
    """Warn of rules that never act."""
    for place, (rule, statement) in enumerate(rules):
        for other_place, (other, _) in enumerate(rules):
            if _outdoes(other, rule, is_earlier=other_place < place) and _is_due_with(rule, other, certainty):
                message = f"this never acts: `{other.rule}` is due whenever it is, and wins"
                notebook.warning(statement.words[0], Code.UNREACHABLE, message, hint="remove it, or correct it")
                break


def _outdoes(one: CompiledRule, other: CompiledRule, *, is_earlier: bool) -> bool:
    """Return whether a rule keeps another from acting if it is due whenever the other is."""
    if other.act not in _MASKING[one.act] or one.for_ns > other.for_ns:
        return False
    if one.act is not other.act:
        return True
    # A task in its grace period may still be killed at once.
    return is_earlier and (one.act is not Act.KILL or not one.grace_ns or bool(other.grace_ns))


def _is_due_with(rule: CompiledRule, other: CompiledRule, certainty: Certainty, /) -> bool:
    """Return whether another rule is certainly due whenever a rule is, also where attributes are undefined."""
    heads = () if rule.head is None else (rule.head,)
    premises = heads if rule.is_unless else (*heads, rule.condition)
    if other.head is not None and not _follows(premises, [other.head], certainty):
        return False
    match rule.is_unless, other.is_unless:
        case False, False:
            return _follows(premises, [other.condition], certainty)
        case False, True:
            return not _can_hold((*premises, other.condition), (), certainty)
        case True, True:
            return _follows((*premises, other.condition), [rule.condition], certainty)
        case _:
            return False


def _follows(premises: Sequence[Condition], conclusions: Iterable[Condition], certainty: Certainty, /) -> bool:
    """Return whether one of the conclusions certainly holds wherever all premises do."""
    needed = {need for premise in premises for need in _needs_of(premise)}
    defined = [conclusion for conclusion in conclusions if _needs_of(conclusion) <= needed]
    return bool(defined) and not _can_hold(premises, defined, certainty)


def _can_hold(true: Sequence[Condition], false: Sequence[Condition], certainty: Certainty, /) -> bool:
    """Return whether some conditions may hold while others are false; also True if the effort is used up."""
    if certainty.effort.left <= 0:
        return True
    terms: list[Expression] = [each.expression for each in true]
    terms += [Not(each.expression) for each in false]
    readings = {reading.key: reading for each in (*true, *false) for reading in each.readings}
    return not certainty.is_never_true(Chain(Connective.AND, tuple(terms)), tuple(readings.values()))


def _needs_of(condition: Condition) -> set[tuple[str, str, Kind]]:
    return {(each.scope, each.name, each.kind) for each in condition.readings if each.is_needed}


def _place(condition: Condition) -> Token:
    text = condition.predicate
    return Token("SPAN", text, start_pos=condition.start, end_pos=condition.start + len(text))
