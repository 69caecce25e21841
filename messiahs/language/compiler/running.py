"""The block `running`: acts on tasks that run on the own machine. A file may have several such blocks."""

from typing import Final

from lark import Token, Tree

from messiahs.core.interface.policies import Act
from messiahs.language.compiler.draft import Draft
from messiahs.language.compiler.durations import read_duration_ns
from messiahs.language.compiler.predicates import read_condition
from messiahs.language.compiler.vocabulary import View
from messiahs.language.predicate.parsing import unescaped
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.readings import HERE, NOW, TASK
from messiahs.language.runtime.running_rules import CompiledRule
from messiahs.language.syntax.parsing import first_token, on_one_line, parse_statement, tokens_in_tree, trees_in
from messiahs.language.syntax.problems import Code
from messiahs.language.syntax.statements import Item, Statement

RUNNING: Final = View(block="running", subject=TASK, scopes=(TASK, HERE, NOW))

_WITH_GRACE: Final = (Act.VACATE, Act.KILL, Act.MOVE)
_AFTER: Final = {Act.VACATE: (Act.KILL,), Act.MOVE: (Act.KILL, Act.VACATE, Act.SUSPEND)}
"""Acts that may follow at the end of an act's grace."""


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
