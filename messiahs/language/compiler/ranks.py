"""The orders of a policy file: `rank candidates`, `rank neighbors` (which to ask) and `rank tasks` (which first)."""

from typing import Final

from lark import Token, Tree

from messiahs.core.interface.parts import PartKind
from messiahs.core.model.attributes import KNOWN_ONCE_HERE
from messiahs.language.compiler.amounts import read_amount
from messiahs.language.compiler.draft import Draft
from messiahs.language.compiler.parts import read_part
from messiahs.language.compiler.predicates import read_condition
from messiahs.language.compiler.vocabulary import View
from messiahs.language.predicate.source_places import quoted
from messiahs.language.runtime.candidate_ranking import First, Most, Ranking, RankKey, Turn, WrittenOrder
from messiahs.language.runtime.part_keys import ByPart
from messiahs.language.runtime.readings import CANDIDATE, HERE, MACHINE, NOW, TASK
from messiahs.language.runtime.task_ranking import TaskRanking
from messiahs.language.syntax.parsing import first_token, on_one_line, parse_statement, tokens_in_tree, trees_in
from messiahs.language.syntax.problems import Code, Notebook, nearest
from messiahs.language.syntax.statements import Item
from messiahs.policy.parts import NamedPart

RANK: Final = View(
    block="rank candidates",
    subject=MACHINE,
    scopes=(CANDIDATE, TASK, HERE, NOW),
    unavailable=KNOWN_ONCE_HERE | {"from"},
)
RANK_TASKS: Final = View(block="rank tasks", subject=TASK, scopes=(TASK, HERE, NOW))

_RANKED: Final = {"candidates": PartKind.LOCATION, "neighbors": PartKind.SOURCES, "tasks": PartKind.SELECTION}


def read_rank(item: Item, draft: Draft) -> None:
    """Record the keys by which candidates, neighbors or tasks are ordered."""
    notebook = draft.reader.notebook
    tree = parse_statement(item.head, "rank", notebook)
    if tree is None:
        return
    (what,) = tokens_in_tree(tree, "NAME", "TASKS")
    if what not in _RANKED:
        hint = nearest(what, _RANKED) or "write rank candidates by ...; or rank tasks by ...;"
        notebook.error(what, Code.UNKNOWN_NAME, f"{quoted(what)} cannot be ranked", hint=hint)
    draft.begin(first_token(tree), str(what))
    kind = _RANKED.get(what, PartKind.LOCATION)
    text = on_one_line(item.head.words)
    keys = tuple(key for part in trees_in(tree) if (key := _rank_key(part, kind, draft, text=text)) is not None)
    _check_parts(tree, kind, notebook)
    draft.orders.append(_written(item.head.words, str(what)))
    alone = _only_part(keys)
    match kind:
        case PartKind.SELECTION:
            draft.parts["selection"] = TaskRanking(keys=keys) if alone is None else alone
        case PartKind.SOURCES if alone is not None:
            draft.parts["sources"] = alone
        case _:
            draft.parts["location"] = Ranking(keys=keys) if alone is None else alone


def _only_part(keys: tuple[RankKey, ...]) -> NamedPart | None:
    """Return the part that decides alone; None if there are keys beside it."""
    part = keys[0].part if len(keys) == 1 and isinstance(keys[0], ByPart) else None
    return part if isinstance(part, NamedPart) else None


def _check_parts(tree: Tree[Token], kind: PartKind, notebook: Notebook) -> None:
    """Check that at most one key is a part, and that `rank neighbors` has exactly one part and no keys."""
    keys = trees_in(tree)
    for more in [key for key in keys if key.data == "by_part"][1:]:
        notebook.error(first_token(more), Code.TWICE, "an order has at most one part", hint="remove the other parts")
    for key in keys if kind is PartKind.SOURCES else ():
        if key.data != "by_part" or len(keys) > 1:
            hint = "write rank neighbors by most_waiting();"
            notebook.error(first_token(key), Code.MEANING, "`rank neighbors` takes one part, and no keys", hint=hint)


def _written(words: tuple[Token, ...], what: str) -> WrittenOrder:
    """Return the keys as written: the words after `by`, split at commas outside of parentheses."""
    keys: list[list[Token]] = [[]]
    depth = 0
    for word in words[3:]:
        depth += (word.type == "LPAR") - (word.type == "RPAR")
        if word.type == "COMMA" and depth == 0:
            keys.append([])
        else:
            keys[-1].append(word)
    written = tuple((on_one_line(tuple(key)), key[0].start_pos or 0) for key in keys)
    return WrittenOrder(head=f"rank {what}", start=words[0].start_pos or 0, keys=written)


def _rank_key(tree: Tree[Token], kind: PartKind, draft: Draft, *, text: str) -> RankKey | None:
    view = RANK_TASKS if kind is PartKind.SELECTION else RANK
    match tree.data:
        case "first":
            return First(read_condition(trees_in(tree)[0], view, draft.reader, text=text))
        case "most" | "least":
            amount = read_amount(trees_in(tree)[0], view, draft.reader)
            return Most(amount=amount, is_least=tree.data == "least")
        case "by_part":
            part = read_part(trees_in(tree)[0], kind, draft)
            return ByPart(part) if part is not None else None
        case "random":
            return Turn.RANDOM
        case _:
            return Turn.ROUND_ROBIN
