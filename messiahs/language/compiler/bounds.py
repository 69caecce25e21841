"""The blocks `timeouts` and `limits`: durations and numbers that bound what a module does (MESSIAHS 6.1)."""

from typing import Final

from lark import Token

from messiahs.core.interface.limits import LONGEST_LEASE_NS, LONGEST_PERIOD_NS, LONGEST_SEARCH_NS
from messiahs.core.model.instants import MILLISECOND
from messiahs.language.compiler.draft import Draft
from messiahs.language.compiler.durations import LONGEST_NS, read_duration_ns
from messiahs.language.predicate.source_places import quoted
from messiahs.language.syntax.parsing import first_token, parse_statement, tokens_in_tree, trees_in
from messiahs.language.syntax.problems import Code, Notebook, nearest
from messiahs.language.syntax.statements import Item

_TIMEOUTS: Final = ("bar", "half_life", "input", "kill_grace", "lease", "poll", "request", "retention", "status")
_MAY_BE_ZERO: Final = ("bar", "kill_grace")
_LEAST_NS: Final = {"poll": 100 * MILLISECOND}
_LONGEST_NS: Final = {"lease": LONGEST_LEASE_NS, "poll": LONGEST_PERIOD_NS, "request": LONGEST_SEARCH_NS}
_THEN: Final = {"query": True, "down": False}
"""What follows an input timeout, and whether the neighbor is queried first."""
_LIMITS: Final = {
    "asks": (1, 4096),
    "hops": (1, 255),
    "moves": (0, 1000),
    "usage_days": (1, 4000),
    "audit_days": (1, 4000),
}
"""The least and the greatest value of each limit."""


def read_timeouts(item: Item, draft: Draft) -> None:
    """Record the durations, and what follows an input timeout."""
    notebook = draft.reader.notebook
    if parse_statement(item.head, "timeouts", notebook) is not None:
        draft.begin(item.head.words[0])
    seen: set[str] = set()
    for statement in item.body or ():
        tree = parse_statement(statement, "timeouts_entry", notebook)
        if tree is None:
            continue
        name, *then = tokens_in_tree(tree, "NAME")
        if _is_new(name, _TIMEOUTS, seen, notebook, what="timeout"):
            for number in trees_in(tree):
                _read_timeout(name, first_token(number), draft)
            for word in then:
                _read_then(name, word, draft)
            for word in tokens_in_tree(tree, "FOREVER"):
                _read_forever(name, word, draft)


def read_limits(item: Item, draft: Draft) -> None:
    """Record the numbers."""
    notebook = draft.reader.notebook
    if parse_statement(item.head, "limits", notebook) is not None:
        draft.begin(item.head.words[0])
    seen: set[str] = set()
    for statement in item.body or ():
        tree = parse_statement(statement, "limits_entry", notebook)
        if tree is None:
            continue
        name, number = tokens_in_tree(tree)
        if not _is_new(name, tuple(_LIMITS), seen, notebook, what="limit"):
            continue
        least, most = _LIMITS[name]
        if least <= int(number) <= most:
            draft.set_limit(str(name), int(number))
        else:
            notebook.error(number, Code.RANGE, f"`{name}` is from {least} to {most}")


def _is_new(name: Token, known: tuple[str, ...], seen: set[str], notebook: Notebook, /, *, what: str) -> bool:
    """Return whether a name is known and occurs for the first time; else record the problem."""
    is_known, is_first = name in known, name not in seen
    seen.add(str(name))
    if not is_known:
        hint = nearest(name, known) or f"the {what}s are {', '.join(known)}"
        notebook.error(name, Code.UNKNOWN_NAME, f"{quoted(name)} is not a {what}", hint=hint)
    elif not is_first:
        notebook.error(name, Code.TWICE, f"`{name}` occurs twice")
    return is_known and is_first


def _read_timeout(name: Token, number: Token, draft: Draft) -> None:
    least_ns = 0 if name in _MAY_BE_ZERO else _LEAST_NS.get(name, MILLISECOND)
    least = f"{name} is at least {least_ns // MILLISECOND}ms" if name in _LEAST_NS else "a timeout is greater than 0"
    duration_ns = read_duration_ns(
        number,
        draft.reader.notebook,
        example="500ms, 10s or 5min",
        least_ns=least_ns,
        too_short=least,
        most_ns=_LONGEST_NS.get(name, LONGEST_NS),
    )
    if duration_ns is not None:
        draft.set_timeout(f"{name}_ns", duration_ns)


def _read_forever(name: Token, word: Token, draft: Draft) -> None:
    if name == "retention":
        draft.set_timeout("retention_ns", None)
    else:
        draft.reader.notebook.error(
            word, Code.MEANING, f"`{name}` cannot be forever", hint="`forever` is for `retention` only"
        )


def _read_then(name: Token, word: Token, draft: Draft) -> None:
    notebook = draft.reader.notebook
    if name != "input":
        notebook.error(word, Code.MEANING, f"nothing follows `{name}`", hint="`then` is for `input` only")
    elif word not in _THEN:
        hint = nearest(word, _THEN) or "write `then query` or `then down`"
        notebook.error(word, Code.UNKNOWN_NAME, f"{quoted(word)} cannot follow `input`", hint=hint)
    else:
        draft.set_query(queries_silent=_THEN[word])
