"""The block `join`: which systems may become a child, sibling or parent of this system."""

from typing import Final

from messiahs.core.model.neighbors import Relation
from messiahs.language.compiler.draft import Draft
from messiahs.language.compiler.predicates import read_condition
from messiahs.language.compiler.provability import Certainty
from messiahs.language.compiler.shadowed_rules import follows, note_superfluous
from messiahs.language.compiler.vocabulary import View
from messiahs.language.predicate.source_places import quoted
from messiahs.language.runtime.join_rules import Entry, JoinRules
from messiahs.language.runtime.readings import NOW, PEER
from messiahs.language.syntax.parsing import on_one_line, parse_statement, tokens_in_tree, trees_in
from messiahs.language.syntax.problems import Code, nearest
from messiahs.language.syntax.statements import Item

JOIN: Final = View(block="join", subject=PEER, scopes=(PEER, NOW), knows_history=False)

_ROLES: Final = {"child": Relation.CHILD, "sibling": Relation.SIBLING, "parent": Relation.PARENT}


def read_join(item: Item, draft: Draft) -> None:
    """Record which systems may join, and how many."""
    notebook = draft.reader.notebook
    if parse_statement(item.head, "join", notebook) is not None:
        draft.begin(item.head.words[0])
    entries: list[Entry] = []
    for statement in item.body or ():
        entry = parse_statement(statement, "join_entry", notebook)
        if entry is None:
            continue
        (role,) = tokens_in_tree(entry, "NAME", "PARENT")
        rule = on_one_line(statement.words)
        condition = read_condition(trees_in(entry)[0], JOIN, draft.reader, text=rule)
        limits = tokens_in_tree(entry, "INTEGER")
        if any(limit.startswith("-") for limit in limits):
            notebook.error(limits[0], Code.RANGE, "a limit is 0 or more")
        if role not in _ROLES:
            hint = nearest(role, _ROLES) or f"systems join as {', '.join(_ROLES)}"
            notebook.error(role, Code.UNKNOWN_NAME, f"{quoted(role)} is not a role", hint=hint)
            continue
        limit = int(limits[0]) if limits else None
        entries.append(Entry(role=_ROLES[role], condition=condition, limit=limit, rule=rule))
    draft.parts["admission"] = JoinRules(tuple(entries))


def check_join(draft: Draft, certainty: Certainty) -> None:
    """Warn of rules that others imply."""
    rules = draft.parts.get("admission")
    entries = rules.entries if isinstance(rules, JoinRules) else ()
    kept = list(entries)
    for entry in reversed(entries):
        others = [each for each in kept if each is not entry]
        wider = [each.condition for each in others if each.role is entry.role and _is_as_wide(each, entry)]
        if follows((entry.condition,), wider, certainty):
            kept = others
            note_superfluous(entry.condition, draft.reader.notebook)


def _is_as_wide(one: Entry, other: Entry) -> bool:
    return one.limit is None or (other.limit is not None and one.limit >= other.limit)
