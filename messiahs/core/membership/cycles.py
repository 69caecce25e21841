"""Cycles of parents are found by a random number that climbs (MESSIAHS 5: no cycles; DESIGN: membership).

Names are hidden behind borders, so nobody can check the graph. A module sends each parent a number of its own, when the
link opens or it becomes a parent, and again every few minutes. Every system passes it on to all its parents. If it
comes back from a child, the link with the parent that got it is part of a cycle: the module reports that, and leaves
the parent if people have added it at run time within the last minutes. All other relations are only reported, since any
system above sees a number, and could have it sent back from below to part two that are in no cycle.

Each number is passed on once, for a bounded number of hops within one border. A border begins to count them anew, so
that they do not show how deep the tree behind it is; a number that comes to it again is known there. Of many numbers
that come from one child within a minute, some are drawn at random, always fewer of more, so that one system below that
sends very many neither keeps the systems above busy nor takes the place of the numbers of others: these arrive more
seldom, and are sent again.
"""

from typing import Final

from messiahs.core.interface.actions import Action, Decision, Report, ReportCode, SendControl
from messiahs.core.interface.limits import HOPS
from messiahs.core.interface.membership_messages import CycleProbe
from messiahs.core.interface.membership_rows import RemovalCause
from messiahs.core.interface.timers import TimerKind
from messiahs.core.membership.leaving import leave
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, Instant, after
from messiahs.core.state.module import ModuleState
from messiahs.core.update.counting import parents_in_order

_NUMBER_BITS: Final = 62
_PERIOD_NS: Final = 4 * MINUTE
_JITTER_NS: Final = 2 * MINUTE
_REMEMBERED_NS: Final = MINUTE
"""How long a number takes at most to climb, and how long a child's allowance lasts."""
_PER_CHILD: Final = 128
"""How many numbers of one child are all passed on within that time; of later ones, the k-th is with chance 128/k."""
_NEW_NS: Final = 10 * MINUTE
"""How long after its addition a parent is left: the cycle that it closed is found at once, or by the next round."""


def on_link_open(state: ModuleState, parent: SystemId, now: Instant) -> tuple[Action, ...]:
    """Send a new parent that is connected, or one that is connected again, a number."""
    if parent not in parents_in_order(state):
        return ()
    if not state.timers.is_set(TimerKind.CYCLE, state.system):
        _watch(state, now)
    return (_probe(state, parent),)


def on_cycle_timeout(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Send all parents new numbers; a cycle that is not found again by the next time has ended."""
    cycles, parents = state.membership.cycles, parents_in_order(state)
    cycles.own.clear()
    cycles.found = {parent: at for parent, at in cycles.found.items() if after(at, _PERIOD_NS + _JITTER_NS) > now}
    if not parents:
        return ()
    _watch(state, now)
    return tuple(_probe(state, parent) for parent in parents if state.updates.links.get(parent))


def on_cycle_probe(state: ModuleState, message: CycleProbe, *, sender: SystemId, now: Instant) -> tuple[Action, ...]:
    """Recognise an own number, or pass another one on; if a child sends many, some of them."""
    neighbor = state.neighbors.get(sender)
    if neighbor is None or not neighbor.is_child:
        return (Report(neighbor=sender, code=ReportCode.OUT_OF_RANGE, text="cycle_probe, but it is no child"),)
    cycles, parents = state.membership.cycles, parents_in_order(state)
    parent = cycles.own.pop(message.number, None)
    if parent is not None:
        return _found(state, parent, sender, now) if parent in parents else ()
    if cycles.since is None or after(cycles.since, _REMEMBERED_NS) <= now:
        cycles.since, cycles.passed_before, cycles.passed, cycles.of_child = now, cycles.passed, {}, {}
    is_known = message.number in cycles.passed or message.number in cycles.passed_before
    if not parents or is_known or not message.hops_left:
        return ()
    cycles.of_child[sender] = count = cycles.of_child.get(sender, 0) + 1
    if count > _PER_CHILD and state.randomness.bits(_NUMBER_BITS) % count >= _PER_CHILD:
        return ()
    cycles.passed[message.number] = None
    passed = CycleProbe(number=message.number, hops_left=min(message.hops_left, HOPS) - 1)
    return tuple(SendControl(to=each, message=passed) for each in parents if state.updates.links.get(each))


def _watch(state: ModuleState, now: Instant) -> None:
    jitter_ns = state.randomness.bits(_NUMBER_BITS) % _JITTER_NS
    state.timers.set(TimerKind.CYCLE, state.system, after(now, _PERIOD_NS + jitter_ns))


def _probe(state: ModuleState, parent: SystemId) -> SendControl:
    number = state.randomness.bits(_NUMBER_BITS)
    state.membership.cycles.own[number] = parent
    return SendControl(to=parent, message=CycleProbe(number=number, hops_left=HOPS))


def _found(state: ModuleState, parent: SystemId, child: SystemId, now: Instant) -> tuple[Action, ...]:
    """Leave a parent that was added a short time ago; any other one stays, and people learn of it."""
    membership = state.membership
    member = membership.members.get(parent)
    text = f"{parent} is above {state.system}, and below it by its child {child}"
    if membership.is_parent_of_file(parent) or member is None or after(member.since, _NEW_NS) <= now:
        membership.cycles.found[parent] = now
        advice = f"{text}: {membership.cycle_advice(state.system, parent)}"
        return (Decision(what="cycle", task=parent, text=advice),)
    left = leave(state, parent, now, text=f"a cycle of parents: {text}", cause=RemovalCause.CONSEQUENCE)
    return (Decision(what="cycle", task=parent, text=f"{text}: {parent} is left, it was added at run time"), *left)
