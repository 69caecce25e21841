"""When the rules of a policy's `running` block act on a task: pure counting of time (MESSIAHS 2: owners keep control).

`decide` is called repeatedly about one task that runs here, each time with the memory that the last call returned. The
caller performs the act that is due, reports it with `acted`, and calls again until nothing is due:

    memory, due = decide(rules, memory, query, now)
    while due is not None:
        ...  # perform it; an act that is impossible now is simply not reported with `acted`
        memory, due = decide(rules, acted(memory, due, now), query, now)

The most severe of the acts that are due comes first: kill, vacate, move, suspend, resume. This file has no processes
and no messages, so `policy test` evaluates rules with the same code as a machine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from messiahs.core.interface.policies import Act, RunningQuery, RunningRule
from messiahs.core.model.instants import Instant, after

_SEVEREST_FIRST = tuple(Act)


class Standing(StrEnum):
    """The state of a task with respect to the rules of the machine's owner."""

    RUNNING = "running"
    SUSPENDED = "suspended"
    VACATING = "vacating"
    """It was asked to end, and has a grace period to do so."""
    GONE = "gone"
    """It was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The timing of the rules for one task between two evaluations; the default is a task that has just started.

    `since` has for each rule since when it has been due without a break. `parting` is the position, among the rules, of
    the one that lets the task vacate, or kills it with a grace, and `moving` of the one for which its origin searches
    another place meanwhile; `parting_until` and `moving_until` are the ends of their graces (None: unlimited).
    """

    standing: Standing = Standing.RUNNING
    since: tuple[Instant | None, ...] = ()
    parting: int | None = None
    parting_until: Instant | None = None
    moving: int | None = None
    moving_until: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """An act that is due now, with the rule that requires it and the position of the rule.

    `grace_ns` is the time that the task has to end (None: the policy's `kill_grace`), or the time in which another
    place is searched (None: until there is one, or the rule is no longer due).
    """

    act: Act
    rule: RunningRule
    place: int
    grace_ns: int | None = None


def decide(
    rules: Sequence[RunningRule], memory: Memory, query: RunningQuery, now: Instant, /
) -> tuple[Memory, Due | None]:
    """Evaluate the rules: return the new memory, and the most severe act that is due and not yet done.

    A move whose rule is no longer due is cancelled: the returned memory has no `moving`.
    """
    if memory.standing is Standing.GONE:
        return memory, None
    if len(memory.since) != len(rules):
        # A new policy restarts all durations.
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
    """Return the memory after an act has been performed."""
    until = None if due.grace_ns is None else after(now, due.grace_ns)
    match due.act:
        case Act.KILL if due.grace_ns == 0:
            return Memory(standing=Standing.GONE, since=memory.since)
        case Act.KILL | Act.VACATE:
            return Memory(standing=Standing.VACATING, since=memory.since, parting=due.place, parting_until=until)
        case Act.MOVE:
            return replace(memory, moving=due.place, moving_until=until)
        case Act.SUSPEND if due.place == memory.moving:
            # No place was found in time; the rule may require another search later.
            return replace(memory, standing=Standing.SUSPENDED, moving=None, moving_until=None)
        case Act.SUSPEND:
            return replace(memory, standing=Standing.SUSPENDED)
        case Act.RESUME:
            # A move that began while the task was suspended had no grace: it is dropped, and starts again with one.
            moving = memory.moving if memory.moving_until is not None else None
            return replace(memory, standing=Standing.RUNNING, moving=moving)


def next_evaluation(rules: Sequence[RunningRule], memory: Memory, now: Instant, /) -> Instant | None:
    """Return when the next `for` or grace ends; None if only new facts can make an act due."""
    ends = [after(began, rule.for_ns) for rule, began in zip(rules, memory.since, strict=False) if began is not None]
    ends += [until for until in (memory.parting_until, memory.moving_until) if until is not None]
    return min((end for end in ends if end > now), default=None)


def _overdue(rules: Sequence[RunningRule], memory: Memory, now: Instant) -> Iterator[Due]:
    """Yield the acts that follow an expired grace."""
    if memory.parting is not None and memory.parting_until is not None and memory.parting_until <= now:
        yield Due(act=Act.KILL, rule=rules[memory.parting], place=memory.parting, grace_ns=0)
    if memory.moving is not None and memory.moving_until is not None and memory.moving_until <= now:
        rule = rules[memory.moving]
        yield Due(act=rule.then, rule=rule, place=memory.moving, grace_ns=0 if rule.then is Act.KILL else None)


def _wanted(rules: Sequence[RunningRule], memory: Memory, ripe: Sequence[int]) -> Iterator[Due]:
    """Yield the acts of rules that are due, except those already done or held back by a more severe one."""
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
    # A suspended task that would only be suspended after the grace has nothing to wait for.
    is_done = rule.act is Act.MOVE and rule.then is Act.SUSPEND and standing is Standing.SUSPENDED
    return None if is_done else rule.grace_ns


def _severest(dues: Sequence[Due]) -> Due | None:
    return min(dues, key=lambda due: _SEVEREST_FIRST.index(due.act), default=None)
