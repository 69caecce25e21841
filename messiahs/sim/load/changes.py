"""Changes of a living federation: systems join and leave, are removed by force or not, and are drained.

In the end all are as in the topology again, except for the `guests`: systems that have no neighbors in it. Some of them
have joined, and some of those are drained. Their parents have assigned siblings to them.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from random import Random

from messiahs.config.topology.reach import dials
from messiahs.core import queries
from messiahs.core.interface.events import AnswerTo, DrainRequested, Event, LeaveRequested, MemberAdded, MemberRemoved
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.neighbors import Neighbor
from messiahs.sim.checks.oracle import Kinship
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.sim.hosts.host import SimulatedHost

_NOBODY = AnswerTo(0)
_AGAIN_NS = 1 * SECOND


class Change(StrEnum):
    """The kinds of changes."""

    JOIN = "system joins"
    LEAVE = "system leaves"
    REMOVE = "neighbor removed"
    REMOVE_NOW = "neighbor removed at once"
    RETURN = "neighbor returns"
    DRAIN = "module drained"
    DRAIN_UNTIL = "module drained until a deadline"
    UNDRAIN = "module undrained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What may change: `guests` are systems without neighbors at first, which may join the `hosting` ones."""

    guests: tuple[SystemId, ...]
    hosting: tuple[SystemId, ...]
    every_ns: int
    """Mean interval between changes; 0 is never."""


class Changes:
    """Makes changes until the federation is to become quiet (mutable)."""

    def __init__(
        self,
        federation: SimulatedFederation,
        random: Random,
        plan: Plan,
    ) -> None:
        self.counts: Counter[Change] = Counter()
        self.joined: dict[SystemId, SystemId] = {}
        """The guests that have joined, each with its parent; final after `settle`."""
        self.drained: dict[SystemId, None] = {}
        """The guests that are drained in the end."""
        self._federation, self._random = federation, random
        self._guests, self._hosting, self._every_ns = plan.guests, plan.hosting, plan.every_ns
        self._note: Callable[[SystemId, str], None] = lambda _system, _text: None
        self._is_over = False

    def begin(self, *, note: Callable[[SystemId, str], None]) -> None:
        """Make changes at about the planned interval."""
        self._note = note
        if self._every_ns:
            self._next()

    def settle(self) -> None:
        """Make no more changes at random, and restore the topology, with some guests."""
        self._is_over = True
        for guest in self._guests:
            if self._random.randrange(2):
                self.joined.setdefault(guest, self._random.choice(self._hosting))
                if self._random.randrange(2):
                    self.drained[guest] = None
            else:
                self.joined.pop(guest, None)
        for name in self._federation.members:
            self._restore(name)

    def is_settled(self) -> bool:
        """Return whether every module has the neighbors of the end, and is drained if it is to be."""
        return all(
            {each: known for each, known in queries.neighbors_of(host.module.state).items() if each not in assigned}
            == self._wanted(name)
            and all(name in self._assigned(each) for each in assigned)
            and (bool(assigned) or name not in self.joined or not self._has_children_beside(name))
            and not any(map(queries.removed_from(host.module.state).__contains__, self._wanted(name)))
            and (queries.drain_of(host.module.state) is not None) == (name in self.drained)
            for name, host in self._federation.members.items()
            for assigned in [self._assigned(name)]
        )

    def kinship(self, before: Kinship) -> Kinship:
        """Return the relations of all systems in the end, for a topology with these relations."""
        parents = dict(before.parents) | dict.fromkeys(self._guests, ())
        parents |= {guest: (parent,) for guest, parent in self.joined.items()}
        with_machine = (before.with_machine | set(self._guests)) - set(self.drained)
        assigned = {(one, other) for one in self._federation.members for other in self._assigned(one) if one < other}
        links = before.sibling_links | assigned
        return replace(before, parents=parents, with_machine=frozenset(with_machine), sibling_links=links)

    def _assigned(self, name: SystemId) -> frozenset[SystemId]:
        """Return the siblings that the primary parent of a module has assigned."""
        members = queries.members_of(self._federation.members[name].module.state).values()
        return frozenset(row.system for row in members if row.assigned_by is not None)

    def _has_children_beside(self, guest: SystemId) -> bool:
        """Return whether the parent of a guest has other primary children."""
        return any(each.is_primary_child for each in self._wanted(self.joined[guest]).values() if each.system != guest)

    def _next(self) -> None:
        def happen() -> None:
            if not self._is_over:
                change = self._random.choice(tuple(Change))
                if self._make(change):
                    self.counts[change] += 1
                self._next()

        self._federation.later(1 + int(self._random.expovariate(1) * self._every_ns), happen)

    def _make(self, change: Change) -> bool:
        """Make a change at a random system; return whether it was possible."""
        name = self._random.choice(sorted(self._federation.members))
        host = self._federation.members[name]
        # Nobody adds an assigned sibling again that people have removed.
        neighbors = sorted(set(queries.neighbors_of(host.module.state)) - self._assigned(name))
        match change:
            case Change.JOIN:
                return self._join()
            case Change.LEAVE:
                parents = [each for each in neighbors if queries.neighbors_of(host.module.state)[each].is_parent]
                return self._post(host, parents, lambda parent: LeaveRequested(answer_to=_NOBODY, parent=parent))
            case Change.REMOVE | Change.REMOVE_NOW:
                return self._post(host, neighbors, partial(_removed, is_forced=change is Change.REMOVE_NOW))
            case Change.RETURN:
                return self._return(name, host)
            case Change.DRAIN | Change.DRAIN_UNTIL | Change.UNDRAIN:
                deadline_ns = self._random.randrange(60) * SECOND if change is Change.DRAIN_UNTIL else None
                is_on = change is not Change.UNDRAIN
                text = f"maintenance of {name}"
                host.post(DrainRequested(answer_to=_NOBODY, is_on=is_on, deadline_ns=deadline_ns, text=text))
                self._note(name, f"change: {change}")
                return True

    def _post(self, host: SimulatedHost, systems: list[SystemId], make: Callable[[SystemId], Event]) -> bool:
        if not systems:
            return False
        event = make(self._random.choice(systems))
        host.post(event)
        return True

    def _join(self) -> bool:
        """Let a guest join that has no neighbor."""
        members = self._federation.members
        free = [each for each in self._guests if not queries.neighbors_of(members[each].module.state)]
        if not free:
            return False
        guest, parent = self._random.choice(free), self._random.choice(self._hosting)
        self.joined[guest] = parent
        self._add(guest, _parent(parent))
        self._add(parent, _child(guest))
        return True

    def _return(self, name: SystemId, host: SimulatedHost) -> bool:
        """Let a neighbor of the topology that is none now be one again, on both sides."""
        now = queries.neighbors_of(host.module.state)
        missing = [each for each in host.system.neighbors if each.system not in now]
        if not missing:
            return False
        neighbor = self._random.choice(missing)
        self._add(name, neighbor)
        others = self._federation.members[neighbor.system].system.neighbors
        self._add(neighbor.system, next(each for each in others if each.system == name))
        return True

    def _add(self, name: SystemId, neighbor: Neighbor) -> None:
        members = self._federation.members
        is_dialed = dials(members[name].system, members[neighbor.system].system, neighbor=neighbor)
        address = f"{neighbor.system}:1" if is_dialed else ""
        members[name].post(MemberAdded(answer_to=_NOBODY, neighbor=neighbor, address=address))

    def _wanted(self, name: SystemId) -> Mapping[SystemId, Neighbor]:
        """Return the neighbors that a system is to have in the end."""
        wanted = {each.system: each for each in self._federation.members[name].system.neighbors}
        if name in self.joined:
            wanted[self.joined[name]] = _parent(self.joined[name])
        return wanted | {guest: _child(guest) for guest, parent in self.joined.items() if parent == name}

    def _restore(self, name: SystemId) -> None:
        """Let an administrator make the neighbors and the drain of a module what they are to be, and look again."""
        host, wanted = self._federation.members[name], self._wanted(name)
        now, removed = queries.neighbors_of(host.module.state), queries.removed_from(host.module.state)
        for system, neighbor in wanted.items():
            if now.get(system) != neighbor:
                self._add(name, neighbor)
        for system in sorted(set(now) - self._assigned(name)):
            if system not in wanted and system not in removed:
                host.post(_removed(system, is_forced=bool(self._random.randrange(2))))
        if (queries.drain_of(host.module.state) is not None) != (name in self.drained):
            host.post(DrainRequested(answer_to=_NOBODY, is_on=name in self.drained))
        if not self.is_settled():
            self._federation.later(_AGAIN_NS, partial(self._restore, name))


def _removed(system: SystemId, *, is_forced: bool) -> MemberRemoved:
    return MemberRemoved(answer_to=_NOBODY, system=system, is_forced=is_forced, text=f"{system} is not needed")


def _parent(system: SystemId) -> Neighbor:
    return Neighbor(system=system, is_parent=True, is_primary_parent=True)


def _child(system: SystemId) -> Neighbor:
    return Neighbor(system=system, is_child=True, is_primary_child=True)
