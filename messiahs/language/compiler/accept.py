"""The block `accept` of a policy file: who may place which tasks here, and how many (MESSIAHS 5: task acceptance)."""

import re
from typing import Final

from lark import Token, Tree

from messiahs.core.model.attributes import KNOWN_ONCE_HERE, TASK_ATTRIBUTES
from messiahs.core.model.terms import NETWORKS
from messiahs.language.compiler.draft import Draft
from messiahs.language.compiler.durations import read_duration_ns
from messiahs.language.compiler.peers import enter, read_peers
from messiahs.language.compiler.predicates import read_condition
from messiahs.language.compiler.provability import Certainty
from messiahs.language.compiler.shadowed_rules import warn_of_superfluous
from messiahs.language.compiler.vocabulary import View
from messiahs.language.predicate.parsing import unescaped
from messiahs.language.predicate.source_places import quoted
from messiahs.language.predicate.syntax import comparisons_of
from messiahs.language.runtime.accept_rules import (
    AcceptBlock,
    Limit,
    Mapping,
    NetworkLimit,
    Requirement,
    UsageLimit,
)
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.readings import HERE, NOW, PEER, TASK
from messiahs.language.syntax.parsing import first_token, on_one_line, parse_statement, tokens_in_tree, trees_in
from messiahs.language.syntax.problems import Code, Notebook, nearest
from messiahs.language.syntax.statements import Item, Statement

_ACCOUNT: Final = re.compile(r"(?![-0-9])[A-Za-z0-9_.@\\+-]{1,255}")
"""Names of accounts, also those of directories (`SITE\\ann`, `ann@site`), and no numbers."""
ACCEPT: Final = View(block="accept", subject=TASK, scopes=(TASK, HERE, PEER, NOW), unavailable=KNOWN_ONCE_HERE)


def read_accept(item: Item, draft: Draft) -> None:
    """Record the rules for some senders; without senders, requirements that every such block of the file has."""
    notebook = draft.reader.notebook
    tree = parse_statement(item.head, "accept", notebook)
    is_whole = item.body is not None
    requirements: list[Requirement] = []
    occasions: list[Requirement] = []
    limits: list[Limit] = []
    usage_limits: list[UsageLimit] = []
    mappings: list[Mapping] = []
    networks: list[NetworkLimit] = []
    for statement in item.body or ():
        entry = parse_statement(statement, "accept_entry", notebook)
        if entry is None:
            is_whole = False
            continue
        match entry.data:
            case "require":
                requirements.append(_requirement(entry, statement, draft))
            case "when":
                occasions.append(_requirement(entry, statement, draft))
            case "limit":
                limits.append(_limit(entry, statement, draft))
            case "usage_limit":
                usage_limits.append(_usage_limit(entry, statement, draft))
            case "network_limit":
                networks.append(_network_limit(entry, statement, notebook, has_other=bool(networks)))
            case "as_account":
                mappings.append(_mapping(entry, statement, notebook, has_other=bool(mappings)))
    if tree is None:
        return
    if not trees_in(tree):
        _require_of_all(item, requirements, draft)
        return
    peers = read_peers(tree, notebook)
    block = AcceptBlock(
        head=on_one_line(item.head.words),
        start=first_token(tree).start_pos or 0,
        requirements=tuple(requirements),
        occasions=tuple(occasions),
        limits=tuple(limits),
        usage_limits=tuple(usage_limits),
        mapping=mappings[0] if mappings else None,
        network=networks[0] if networks else None,
    )
    enter(peers, block, draft.accepted, notebook=notebook)
    if not limits and is_whole and any(peer != "users" for peer in peers):
        notebook.warning(
            first_token(tree), Code.NO_LIMIT, "these senders may use every slot", hint="add: limit 100 tasks;"
        )


def _require_of_all(item: Item, requirements: list[Requirement], draft: Draft) -> None:
    draft.begin(item.head.words[0])
    draft.required += requirements
    for statement in item.body or ():
        word = statement.words[0]
        if word.type != "REQUIRE":
            hint = "write it in a block such as `accept from children { }`; here is what all of these require"
            draft.reader.notebook.error(word, Code.MEANING, f"{quoted(word)} needs senders", hint=hint)


def _requirement(tree: Tree[Token], statement: Statement, draft: Draft) -> Requirement:
    words = statement.words
    ends = [place for place, word in enumerate(words) if word.type == "ELSE"]
    rule = on_one_line(words[: ends[0]] if ends else words)
    texts = tokens_in_tree(tree, "TEXT")
    return Requirement(
        condition=read_condition(trees_in(tree)[0], ACCEPT, draft.reader, text=rule),
        rule=rule,
        text=unescaped(texts[0]) if texts else "",
    )


def _limit(tree: Tree[Token], statement: Statement, draft: Draft) -> Limit:
    notebook = draft.reader.notebook
    (number,) = tokens_in_tree(tree, "INTEGER")
    if number.startswith("-"):
        notebook.error(number, Code.RANGE, "a limit is 0 or more")
    _expect(tree, ("slots",), notebook)
    stated = {*TASK_ATTRIBUTES, *draft.reader.vocabulary.declared}
    per = _per(tree, stated, "count per $origin, $user or another attribute that tasks state", draft)
    start = statement.words[0].start_pos or 0
    return Limit(slots=int(number), per=per, rule=on_one_line(statement.words), start=start)


def _usage_limit(tree: Tree[Token], statement: Statement, draft: Draft) -> UsageLimit:
    """Return a limit on slot time, of which the ledger knows the user, the origin and the account."""
    notebook = draft.reader.notebook
    (quantity,) = tokens_in_tree(tree, "QUANTITY")
    most_ns = read_duration_ns(quantity, notebook, example="limit 24h cpu per $user per day")
    _expect(tree, ("cpu", "day"), notebook)
    per = _per(tree, {"user", "origin", "account"}, "count per $user, $origin or $account", draft)
    start = statement.words[0].start_pos or 0
    return UsageLimit(most_ns=most_ns or 0, per=per, rule=on_one_line(statement.words), start=start)


def _network_limit(tree: Tree[Token], statement: Statement, notebook: Notebook, *, has_other: bool) -> NetworkLimit:
    (word,), (network,) = tokens_in_tree(tree, "NETWORK"), tokens_in_tree(tree, "NAME")
    if has_other:
        message = "the network of these senders' tasks is limited already"
        notebook.error(word, Code.TWICE, message, hint="remove one of them")
    if network not in NETWORKS:
        hint = nearest(network, NETWORKS) or f"one of {', '.join(NETWORKS)}"
        notebook.error(network, Code.UNKNOWN_NAME, f"`{network}` is not a network", hint=hint)
    return NetworkLimit(
        network=str(network), rule=on_one_line(statement.words), start=statement.words[0].start_pos or 0
    )


def _mapping(tree: Tree[Token], statement: Statement, notebook: Notebook, *, has_other: bool) -> Mapping:
    (word,), (text,) = tokens_in_tree(tree, "NAME"), tokens_in_tree(tree, "TEXT")
    account = unescaped(text)
    if word != "account":
        notebook.error(word, Code.SYNTAX, f"`{word}` stands where `account` is expected", hint='as account "physics";')
    if has_other:
        notebook.error(
            word, Code.TWICE, "the tasks of these senders have an account already", hint="remove one of them"
        )
    if account == "root":
        notebook.error(text, Code.MEANING, "tasks never run as root", hint="name an account that has few rights")
    elif not _ACCOUNT.fullmatch(account):
        notebook.error(text, Code.MEANING, f"{quoted(account)} cannot be an account", hint="name one of this host")
    return Mapping(account=account, rule=on_one_line(statement.words), start=statement.words[0].start_pos or 0)


def _per(tree: Tree[Token], countable: set[str], hint: str, draft: Draft) -> str | None:
    """Return the attribute of tasks by which a limit counts; None without one."""
    notebook = draft.reader.notebook
    per = None
    for token in tokens_in_tree(tree, "VARIABLE"):
        per = token[1:].rpartition(".")[2]
        known = draft.reader.vocabulary.look_up(token, ACCEPT, notebook)
        if known is not None and (known.scope != TASK or per not in countable):
            notebook.error(token, Code.MEANING, f"limits cannot be counted per {token}", hint=hint)
    return per


def _expect(tree: Tree[Token], words: tuple[str, ...], notebook: Notebook) -> None:
    """Report other words where these are meant: they are no keywords, since parameters of parts have such names."""
    for found, word in zip(tokens_in_tree(tree, "NAME"), words, strict=False):
        if found != word:
            hint = "write limit 8 slots per $user; or limit 24h cpu per $user per day;"
            meant = (word, "tasks") if word == "slots" else (word,)
            expected = " or ".join(f"`{each}`" for each in meant)
            text = f"`{found}` stands where {expected} is expected"
            notebook.error(found, Code.SYNTAX, text, hint=nearest(found, meant) or hint)


def check_accept(draft: Draft, certainty: Certainty) -> None:
    """Warn of occasions that others imply."""
    for block in {block.start: block for block in draft.accepted.values()}.values():
        # A system without a machine evaluates classes, part by part, and accepts what could be true: little is certain.
        conditions = [each.condition for each in block.occasions]
        warn_of_superfluous(conditions, certainty, draft.reader.notebook, is_candidate=_is_exact_over_classes)


def _is_exact_over_classes(condition: Condition) -> bool:
    here = [reading for reading in condition.readings if reading.scope == HERE]
    is_plain = all(reading.default is None and reading.pattern is None and not reading.is_presence for reading in here)
    return not here or (
        condition.operands == condition.readings and is_plain and len(tuple(comparisons_of(condition.expression))) == 1
    )
