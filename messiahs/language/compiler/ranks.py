"""The two orders of a policy file: `rank candidates` (whom to ask) and `rank tasks` (whose turn it is)."""

from lark import Token, Tree

from messiahs.language.compiler.amounts import read_amount
from messiahs.language.compiler.draft import Draft
from messiahs.language.compiler.predicates import Reader, read_condition
from messiahs.language.compiler.vocabulary import RANK, RANK_TASKS, View
from messiahs.language.predicate.places import quoted
from messiahs.language.runtime.ranking import First, Most, RankKey, Turn, WrittenOrder
from messiahs.language.syntax.parsing import first_token, on_one_line, parse_statement, tokens_in_tree, trees_in
from messiahs.language.syntax.problems import Code, nearest
from messiahs.language.syntax.structure import Item


def read_rank(item: Item, draft: Draft) -> None:
    """Enter the keys by which candidates, or tasks, are ordered."""
    notebook = draft.reader.notebook
    tree = parse_statement(item.head, "rank", notebook)
    if tree is None:
        return
    (what,) = tokens_in_tree(tree, "NAME", "TASKS")
    is_of_tasks = what.type == "TASKS"
    if not is_of_tasks and what != "candidates":
        hint = nearest(what, ("candidates", "tasks")) or "write rank candidates by ...; or rank tasks by ...;"
        notebook.error(what, Code.UNKNOWN_NAME, f"{quoted(what)} cannot be ranked", hint=hint)
    draft.begin(first_token(tree), str(what))
    view, text = RANK_TASKS if is_of_tasks else RANK, on_one_line(item.head.words)
    keys = tuple(_rank_key(part, view, draft.reader, text=text) for part in trees_in(tree))
    draft.orders.append(_written(item.head.words, str(what)))
    if is_of_tasks:
        draft.task_ranking = keys
    else:
        draft.ranking = keys


def _written(words: tuple[Token, ...], what: str) -> WrittenOrder:
    """Give the keys as they were written: what stands behind `by`, between the commas outside of parentheses."""
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


def _rank_key(tree: Tree[Token], view: View, reader: Reader, *, text: str) -> RankKey:
    match tree.data:
        case "first":
            return First(read_condition(trees_in(tree)[0], view, reader, text=text))
        case "most" | "least":
            amount = read_amount(trees_in(tree)[0], view, reader)
            return Most(amount=amount, is_least=tree.data == "least")
        case "random":
            return Turn.RANDOM
        case _:
            return Turn.ROUND_ROBIN
