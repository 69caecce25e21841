"""When the rules of a policy's `running` block act on a task: pure counting of time (MESSIAHS 2: owners keep control).

`decide` is asked again and again, about one task that runs here, with what the last call gave. Whoever performs the act
that it names says so by `acted`, and asks again until nothing is due:

    memory, due = decide(rules, memory, query, now)
    while due is not None:
        ...  # do it; an act that cannot be done now is simply not followed by `acted`
        memory, due = decide(rules, acted(memory, due, now), query, now)

The severest of the acts that are due wins: kill, vacate, move, suspend, resume. Nothing here knows of processes or
messages, so `policy test` judges by the same code as a machine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from messiahs.core.interface.policies import Act, RunningQuery, RunningRule
from messiahs.core.model.instants import Instant, after

_SEVEREST_FIRST = tuple(Act)


class Standing(StrEnum):
    """How a task stands with the owner of its machine."""

    RUNNING = "running"
    SUSPENDED = "suspended"
    VACATING = "vacating"
    """It was told to end, and has a while for that."""
    GONE = "gone"
    """It was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What is remembered of one task between two looks at the rules; the default is a task that has just begun.

    `since` says for each rule since when it has been due without break. `parting` is the place, among the rules, of the
    one that let the task vacate, or be killed with a grace, and `moving` of the one for which its origin looks for
    another place meanwhile; `parting_until` and `moving_until` are when their graces end (None: nothing is counted).
    """

    standing: Standing = Standing.RUNNING
    since: tuple[Instant | None, ...] = ()
    parting: int | None = None
    parting_until: Instant | None = None
    moving: int | None = None
    moving_until: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """An act that is due now, and the rule that wants it, with its place among the rules.

    `grace_ns` is how long a task that is told to end has for that (None: as long as the policy's `kill_grace` says), or
    how long another place is looked for (None: until there is one, or the rule is not due any more).
    """

    act: Act
    rule: RunningRule
    place: int
    grace_ns: int | None = None


def decide(
    rules: Sequence[RunningRule], memory: Memory, query: RunningQuery, now: Instant, /
) -> tuple[Memory, Due | None]:
    """Look at the rules: give what is to be remembered, and the severest act that is due and not yet done.

    A move whose rule is not due any more is called off: the memory that is given has no `moving`.
    """
    if memory.standing is Standing.GONE:
        return memory, None
    if len(memory.since) != len(rules):
        # A policy that was loaded anew begins to count anew.
        memory = Memory(standing=memory.standing, since=(None,) * len(rules))
    since = tuple(
        (now if began is None else began) if rule.is_due(query) else None
        for rule, began in zip(rules, memory.since, strict=True)
    )
    if since != memory.since:
        memory = replace(memory, since=since)
    ripe = [
        place
        for place, (rule, began) in enumerate(zip(rules, since, strict=True))
        if began is not None and after(began, rule.for_ns) <= now
    ]
    if memory.moving is not None and memory.moving not in ripe:
        memory = replace(memory, moving=None, moving_until=None)
    return memory, _severest([*_overdue(rules, memory, now), *_wanted(rules, memory, ripe)])


def acted(memory: Memory, due: Due, now: Instant, /) -> Memory:
    """Give what is to be remembered once an act has been done."""
    until = None if due.grace_ns is None else after(now, due.grace_ns)
    match due.act:
        case Act.KILL if due.grace_ns == 0:
            return Memory(standing=Standing.GONE, since=memory.since)
        case Act.KILL | Act.VACATE:
            return Memory(standing=Standing.VACATING, since=memory.since, parting=due.place, parting_until=until)
        case Act.MOVE:
            return replace(memory, moving=due.place, moving_until=until)
        case Act.SUSPEND if due.place == memory.moving:
            # Nobody took it in time; its rule may ask for another place again.
            return replace(memory, standing=Standing.SUSPENDED, moving=None, moving_until=None)
        case Act.SUSPEND:
            return replace(memory, standing=Standing.SUSPENDED)
        case Act.RESUME:
            # A move that was to go on without end, as nothing was left to do after it, has its grace from now on.
            moving = memory.moving if memory.moving_until is not None else None
            return replace(memory, standing=Standing.RUNNING, moving=moving)


def next_evaluation(rules: Sequence[RunningRule], memory: Memory, now: Instant, /) -> Instant | None:
    """Give when the next `for` or grace ends; None if only news can make anything due."""
    ends = [after(began, rule.for_ns) for rule, began in zip(rules, memory.since, strict=False) if began is not None]
    ends += [until for until in (memory.parting_until, memory.moving_until) if until is not None]
    return min((end for end in ends if end > now), default=None)


def _overdue(rules: Sequence[RunningRule], memory: Memory, now: Instant) -> Iterator[Due]:
    """Name what follows when a grace is over."""
    if memory.parting is not None and memory.parting_until is not None and memory.parting_until <= now:
        yield Due(act=Act.KILL, rule=rules[memory.parting], place=memory.parting, grace_ns=0)
    if memory.moving is not None and memory.moving_until is not None and memory.moving_until <= now:
        rule = rules[memory.moving]
        yield Due(act=rule.then, rule=rule, place=memory.moving, grace_ns=0 if rule.then is Act.KILL else None)


def _wanted(rules: Sequence[RunningRule], memory: Memory, ripe: Sequence[int]) -> Iterator[Due]:
    """Name the acts of rules that are due, but for those that are done already or are held back by a severer one."""
    standing = memory.standing
    is_held = any(rules[place].act is Act.SUSPEND for place in ripe)
    for place in ripe:
        rule = rules[place]
        if standing is Standing.VACATING:
            is_new = rule.act is Act.KILL and not rule.grace_ns
        else:
            is_new = {
                Act.KILL: True,
                Act.VACATE: True,
                Act.MOVE: memory.moving is None,
                Act.SUSPEND: standing is Standing.RUNNING,
                Act.RESUME: standing is Standing.SUSPENDED and not is_held,
            }[rule.act]
        if is_new:
            yield Due(act=rule.act, rule=rule, place=place, grace_ns=_grace_ns(rule, standing))


def _grace_ns(rule: RunningRule, standing: Standing) -> int | None:
    if rule.act is Act.KILL:
        return rule.grace_ns or 0
    # What is suspended already, and would be when the grace is over, has no end of it to wait for.
    is_done = rule.act is Act.MOVE and rule.then is Act.SUSPEND and standing is Standing.SUSPENDED
    return None if is_done else rule.grace_ns


def _severest(dues: Sequence[Due]) -> Due | None:
    return min(dues, key=lambda due: _SEVEREST_FIRST.index(due.act), default=None)
