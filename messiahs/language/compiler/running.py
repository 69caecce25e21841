"""The block `running`: acts on tasks that run on the own machine. A file may have several such blocks."""

from collections.abc import Sequence
from typing import Final

from lark import Token, Tree

from messiahs.core.interface.policies import Act
from messiahs.language.compiler.draft import Draft
from messiahs.language.compiler.durations import read_duration_ns
from messiahs.language.compiler.predicates import read_condition
from messiahs.language.compiler.provability import Certainty
from messiahs.language.compiler.shadowed_rules import can_hold, follows
from messiahs.language.compiler.vocabulary import View
from messiahs.language.predicate.parsing import unescaped
from messiahs.language.predicate.syntax import Chain, Connective, Expression, Not
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.readings import HERE, NOW, TASK, reads
from messiahs.language.runtime.running_rules import CompiledRule
from messiahs.language.syntax.parsing import first_token, on_one_line, parse_statement, tokens_in_tree, trees_in
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.statements import Item, Statement

RUNNING: Final = View(block="running", subject=TASK, scopes=(TASK, HERE, NOW))

_WITH_GRACE: Final = (Act.VACATE, Act.KILL, Act.MOVE)
_AFTER: Final = {Act.VACATE: (Act.KILL,), Act.MOVE: (Act.KILL, Act.VACATE, Act.SUSPEND)}
"""Acts that may follow at the end of an act's grace."""
_MASKING: Final = {
    Act.KILL: {Act.KILL, Act.VACATE, Act.MOVE, Act.SUSPEND, Act.RESUME},
    Act.VACATE: {Act.VACATE, Act.MOVE, Act.SUSPEND, Act.RESUME},
    Act.MOVE: {Act.MOVE},
    Act.SUSPEND: {Act.SUSPEND, Act.RESUME},
    Act.RESUME: {Act.RESUME},
}
"""For each act that is due, the acts that it prevents; a task that searches for a place may be suspended meanwhile."""


def read_running(item: Item, draft: Draft) -> None:
    """Record rules about some or all running tasks."""
    notebook = draft.reader.notebook
    tree = parse_statement(item.head, "running", notebook)
    head = None
    for predicate in trees_in(tree) if tree is not None else ():
        head = read_condition(predicate, RUNNING, draft.reader, text=on_one_line(item.head.words))
    for statement in item.body or ():
        entry = parse_statement(statement, "running_entry", notebook)
        if entry is not None:
            draft.running.append((_rule(entry, statement, head, draft=draft), statement))


def _rule(tree: Tree[Token], statement: Statement, head: Condition | None, *, draft: Draft) -> CompiledRule:
    words = statement.words
    ends = [place for place, word in enumerate(words) if word.type == "ELSE"]
    rule = on_one_line(words[: ends[0]] if ends else words)
    act_token, predicate = first_token(tree), trees_in(tree)[1]
    act = Act(act_token)
    parts = _parts(tree)
    grace_ns = _duration_ns(parts["GRACE"], draft) if "GRACE" in parts else None
    then = Act(first_token(parts["THEN"])) if "THEN" in parts else Act.KILL
    if act is Act.MOVE and grace_ns == 0:
        draft.reader.notebook.error(first_token(parts["GRACE"]), Code.RANGE, "a move needs a grace longer than 0")
    _check_order(act, tree, parts, draft=draft)
    texts = tokens_in_tree(tree, "TEXT")
    return CompiledRule(
        act=act,
        condition=read_condition(predicate, RUNNING, draft.reader, text=rule),
        is_unless=bool(tokens_in_tree(tree, "UNLESS")),
        head=head,
        for_ns=_duration_ns(parts["FOR"], draft) if "FOR" in parts else 0,
        grace_ns=grace_ns,
        then=then,
        rule=rule,
        text=unescaped(texts[0]) if texts else "",
    )


def _parts(tree: Tree[Token]) -> dict[str, Tree[Token]]:
    """Return the trees after `for`, `grace` and `then`, by that word."""
    pairs = zip(tree.children, tree.children[1:], strict=False)
    return {
        word.type: part
        for word, part in pairs
        if isinstance(word, Token) and word.type in {"FOR", "GRACE", "THEN"} and isinstance(part, Tree)
    }


def _check_order(act: Act, tree: Tree[Token], parts: dict[str, Tree[Token]], *, draft: Draft) -> None:
    """Note a grace or a `then` that this act does not take."""
    notebook = draft.reader.notebook
    for word in tokens_in_tree(tree, "GRACE", "THEN"):
        if word.type == "GRACE" and act not in _WITH_GRACE:
            notebook.error(word, Code.MEANING, f"`{act}` has no grace", hint="vacate, kill and move have one")
        elif word.type == "THEN" and act not in _AFTER:
            notebook.error(word, Code.MEANING, f"nothing follows `{act}`", hint="vacate and move have a `then`")
        elif word.type == "THEN" and act is Act.MOVE and "GRACE" not in parts:
            hint = "write how long to search for another place: grace 10min then ..."
            notebook.error(word, Code.MEANING, "`then` needs a grace that ends", hint=hint)
    if "THEN" in parts and act in _AFTER:
        follows = first_token(parts["THEN"])
        if follows not in _AFTER[act]:
            hint = f"write then {' or then '.join(_AFTER[act])}"
            notebook.error(follows, Code.MEANING, f"`{follows}` cannot follow `{act}`", hint=hint)


def _duration_ns(tree: Tree[Token], draft: Draft) -> int:
    return read_duration_ns(first_token(tree), draft.reader.notebook, example="30s or 10min") or 0


def check_running(draft: Draft, certainty: Certainty) -> None:
    """Add every warning about these rules."""
    notebook = draft.reader.notebook
    for rule, statement in draft.running:
        _warn_of_lost_sensor(rule, statement, certainty, notebook=notebook)
    _warn_of_opposites(draft.running, certainty, notebook)
    _warn_of_never_resumed(draft.running, notebook)
    _warn_of_rules(draft.running, certainty, notebook)


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
            operands = {each.key: each for condition, _ in parts for each in condition.operands}
            both = Chain(Connective.AND, tuple(expression for _, expression in parts))
            if not certainty.is_never_true(both, tuple(operands.values())):
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
    if other.head is not None and not follows(premises, [other.head], certainty):
        return False
    match rule.is_unless, other.is_unless:
        case False, False:
            return follows(premises, [other.condition], certainty)
        case False, True:
            return not can_hold((*premises, other.condition), (), certainty)
        case True, True:
            return follows((*premises, other.condition), [rule.condition], certainty)
        case _:
            return False
