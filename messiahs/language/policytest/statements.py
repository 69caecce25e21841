"""The statements of a `*.policytest` file: the time, waits, and attributes of a scope."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, time
from typing import Final

from lark import Lark, Token

from messiahs.core.model.attributes import Attribute, Unit, Value
from messiahs.core.model.dates import date_of
from messiahs.core.model.instants import MILLISECOND, Duration
from messiahs.core.model.neighbors import Relation
from messiahs.language.compiler.durations import read_duration_ns
from messiahs.language.compiler.stated_facts import attributes_of, stated
from messiahs.language.policytest.phrases import Phrase
from messiahs.language.policytest.stated_values import (
    Below,
    Members,
    NamedTask,
    Place,
    Rival,
    SetClock,
    State,
    Statement,
    Use,
    Values,
    Wait,
    Wanted,
)
from messiahs.language.predicate.parsing import unescaped
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.readings import CANDIDATE, HERE, MACHINE, PEER, TASK
from messiahs.language.syntax.literals import quantity_of
from messiahs.language.syntax.parsing import parse_statement, tokens_in_tree
from messiahs.language.syntax.problems import Code, Notebook

_MINUTES_PER_HOUR: Final = 60
_LAST_HOUR: Final = 23
_STATEMENT_WORDS: Final = 3
_LONGEST_WAIT_STEPS: Final = 366 * 86_400_000
_YEARS: Final = range(1970, 3000)
NAMED_TASK: Final = "named task"
NAMED_TASK_RULE: Final = "rival_task"
_SCOPES: Final = {"HERE": HERE, "PEER": PEER, "TASK": TASK}


@dataclass(slots=True, kw_only=True)
class Scene:
    """State while a test is read (mutable): `stated` are the kinds of statements so far."""

    notebook: Notebook
    grammar: Callable[[], Lark]
    policy: CompiledPolicy
    stated: set[str] = field(default_factory=set)

    def copy(self) -> "Scene":
        """Return a copy for one test, whose statements do not apply outside of it."""
        return replace(self, stated=set(self.stated))

    def tokens(self, phrase: Phrase, start: str) -> list[Token] | None:
        """Return the words of a phrase after its first; None, with a problem, if it is invalid."""
        tree = parse_statement(phrase.head, start, self.notebook, grammar=self.grammar)
        return None if tree is None else tokens_in_tree(tree)[1:]

    def known(self, scope: str) -> Mapping[str, Attribute]:
        """Return the attributes that can be stated in a scope."""
        return attributes_of(scope, self.policy)


def read_values(body: Iterable[Phrase], known: Mapping[str, Attribute], notebook: Notebook, /) -> Wanted:
    """Return the names in a block with their values, None for `nothing`."""
    found: dict[str, Value | None] = {}
    for phrase in body:
        words = phrase.head.words
        if any(word.type == "BAD" for word in words):
            continue
        name = words[0]
        if phrase.body is not None or len(words) != _STATEMENT_WORDS or words[1].type != "EQUAL":
            notebook.error(name, Code.SYNTAX, "this states nothing", hint='write mem = 4GiB; or name = "cs";')
            continue
        plain = name.update(value=name.removeprefix("$"))
        if plain in found:
            notebook.error(name, Code.TWICE, f"`{plain}` occurs twice")
        value = _value(plain, words[2], known, notebook=notebook)
        if value is not None or words[2].type == "NOTHING":
            found[str(plain)] = value
    return tuple(found.items())


def set_only(wanted: Wanted) -> Values:
    """Return the values without those that are `nothing`."""
    return tuple((name, value) for name, value in wanted if value is not None)


def _value(name: Token, word: Token, known: Mapping[str, Attribute], *, notebook: Notebook) -> Value | None:
    if word.type in {"TEXT", "INTEGER", "QUANTITY", "NOTHING"}:
        if word.type == "NOTHING":
            word = Token("NOTHING", "0", start_pos=word.start_pos, end_pos=word.end_pos)
            return None if name in known else stated(name, word, known, notebook=notebook)
        return stated(name, word, known, notebook=notebook)
    notebook.error(word, Code.SYNTAX, f"`{word}` is not a value", hint=f'write "{word}" for a string')
    return None


def _read_clock(phrase: Phrase, scene: Scene) -> Statement | None:
    words = scene.tokens(phrase, "at")
    if phrase.body is not None:
        scene.notebook.error(phrase.head.end, Code.SYNTAX, "`at` takes no block", hint="end it with `;`")
    if words is None:
        return None
    day, clock = (quantity_of(word) for word in words)
    if (day.unit, clock.unit) == (Unit.DATE, Unit.CLOCK) and date_of(day.steps).year in _YEARS:
        hour, minute = divmod(clock.steps, _MINUTES_PER_HOUR)
        if hour <= _LAST_HOUR:
            return SetClock(datetime.combine(date_of(day.steps), time(hour, minute)))
    scene.notebook.error(words[0], Code.RANGE, "no such day or time", hint="write at 2026-11-21 22:30;")
    return None


def _read_wait(phrase: Phrase, scene: Scene) -> Statement | None:
    words = scene.tokens(phrase, "after")
    if words is None:
        return None
    quantity = quantity_of(words[0])
    if quantity.unit is Unit.SECONDS and quantity.steps > _LONGEST_WAIT_STEPS:
        scene.notebook.error(words[0], Code.RANGE, "no test lasts longer than a year", hint="write after 365d;")
        return None
    if quantity.unit is not Unit.SECONDS or quantity.steps < 0:
        scene.notebook.error(
            words[0], Code.DIMENSION, f"`{words[0]}` is not a duration", hint="write after 30s { ... }"
        )
        return None
    return Wait(Duration(quantity.steps * MILLISECOND))


def _read_task(phrase: Phrase, scene: Scene) -> Statement | None:
    if len(phrase.head.words) == 1:
        return _read_state(phrase, scene)
    words = scene.tokens(phrase, NAMED_TASK_RULE)
    values = set_only(read_values(body_of(phrase, scene), scene.known(TASK), scene.notebook))
    scene.stated.add(NAMED_TASK)
    return None if words is None else NamedTask(unescaped(words[0]), values)


def _read_members(phrase: Phrase, scene: Scene) -> Statement | None:
    words = scene.tokens(phrase, "members")
    if phrase.body is not None:
        scene.notebook.error(phrase.head.end, Code.SYNTAX, "`members` takes no block", hint="end it with `;`")
    return None if words is None else Members(_count(words[0], scene.notebook))


def _read_state(phrase: Phrase, scene: Scene) -> Statement | None:
    if parse_statement(phrase.head, "state", scene.notebook, grammar=scene.grammar) is None:
        return None
    scope = _SCOPES[phrase.word.type]
    said = read_values(body_of(phrase, scene), scene.known(scope), scene.notebook)
    scene.stated.add(scope)
    if scope == PEER:
        _check_relation(phrase, said, scene.notebook)
    return State(scope, set_only(said), tuple(name for name, value in said if value is None))


def _check_relation(phrase: Phrase, said: Wanted, notebook: Notebook) -> None:
    relation = dict(said).get("relation")
    if relation is not None and relation not in list(Relation):
        hint = f"relations are {', '.join(Relation)}"
        notebook.error(phrase.word, Code.UNKNOWN_NAME, f"`{relation}` is not a relation", hint=hint)


def _read_placed(phrase: Phrase, scene: Scene) -> Statement | None:
    words = scene.tokens(phrase, "placed")
    values = read_values(phrase.body or (), scene.known(TASK), scene.notebook)
    return None if words is None else Place(_count(words[0], scene.notebook), set_only(values))


def _read_used(phrase: Phrase, scene: Scene) -> Statement | None:
    words = scene.tokens(phrase, "used")
    values = read_values(phrase.body or (), scene.known(TASK), scene.notebook)
    used_ns = None if words is None else read_duration_ns(words[0], scene.notebook, example="used 5h")
    return None if used_ns is None else Use(Duration(used_ns), set_only(values))


def read_below(phrase: Phrase, scene: Scene) -> Below | None:
    """Read `machines N { ... }`."""
    words = scene.tokens(phrase, "machines")
    values = read_values(body_of(phrase, scene), scene.known(MACHINE), scene.notebook)
    return None if words is None else Below(_count(words[0], scene.notebook), set_only(values))


def _read_machines(phrase: Phrase, scene: Scene) -> Statement | None:
    scene.stated.add(MACHINE)
    return read_below(phrase, scene)


def _read_candidate(phrase: Phrase, scene: Scene) -> Statement | None:
    words = scene.tokens(phrase, "candidate")
    scene.stated.add(CANDIDATE)
    names = ("relation", "age", "balance", "round_trip", "throughput", *(each.name for each in scene.policy.in_history))
    link = {name: scene.known(CANDIDATE)[name] for name in names}
    own: list[Phrase] = []
    machines: list[Below] = []
    for each in body_of(phrase, scene):
        if each.word.type == "MACHINES":
            below = read_below(each, scene)
            machines += [] if below is None else [below]
        else:
            own.append(each)
    said = set_only(read_values(own, {**scene.known(MACHINE), **link}, scene.notebook))
    _check_relation(phrase, said, scene.notebook)
    alone = tuple(pair for pair in said if pair[0] not in link)
    if words is None:
        return None
    return Rival(
        name=unescaped(words[0]),
        link=tuple(pair for pair in said if pair[0] in link),
        machines=(*machines, Below(1, alone)) if alone or not machines else tuple(machines),
    )


def body_of(phrase: Phrase, scene: Scene) -> tuple[Phrase, ...]:
    """Return the phrases in the braces of a phrase, which must have some."""
    if phrase.body is None:
        hint = "write { ... }"
        scene.notebook.error(phrase.head.end, Code.SYNTAX, f"`{phrase.word}` needs a block", hint=hint)
    return phrase.body or ()


def _count(token: Token, notebook: Notebook) -> int:
    if token.startswith("-"):
        notebook.error(token, Code.RANGE, "a count is 0 or more")
    return int(token)


@dataclass(frozen=True, slots=True)
class StatementKind:
    """A statement of tests: its rule in the grammar, and the function that reads it."""

    rule: str
    read: Callable[[Phrase, Scene], Statement | None]


STATEMENTS: Final = {
    "AT": StatementKind("at", _read_clock),
    "AFTER": StatementKind("after", _read_wait),
    "HERE": StatementKind("state", _read_state),
    "PEER": StatementKind("state", _read_state),
    "TASK": StatementKind("state", _read_task),
    "PLACED": StatementKind("placed", _read_placed),
    "USED": StatementKind("used", _read_used),
    "MACHINES": StatementKind("machines", _read_machines),
    "CANDIDATE": StatementKind("candidate", _read_candidate),
    "MEMBERS": StatementKind("members", _read_members),
}
"""Every statement by its first word, in the order in which they are listed for users."""
