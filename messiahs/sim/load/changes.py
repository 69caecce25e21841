"""Changes of a living federation: systems join and leave, are removed by force or not, are drained, and change parents.

In the end all are as in the topology again, except for the `guests`: systems that have no neighbors in it. Some of them
have joined, and some of those are drained. Some systems have a second parent, and some another primary parent. Primary
parents have assigned siblings to them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from random import Random

from messiahs.config.topology.reach import dials
from messiahs.core import queries
from messiahs.core.interface.events import (
    AnswerTo,
    DrainRequested,
    Event,
    LeaveRequested,
    MemberAdded,
    MemberRemoved,
    PrimaryParentChanged,
)
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
    PARENT = "second parent added"
    PRIMARY = "primary parent changed"
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
        self.second: dict[SystemId, SystemId] = {}
        """The systems with a parent that was added to those which they had; final after `settle`."""
        self.primary: dict[SystemId, SystemId] = {}
        """The systems with another primary parent than at first, in the end."""
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
        self._choose_parents()
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
            and not _is_handing_over(host)
            for name, host in self._federation.members.items()
            for assigned in [self._assigned(name)]
        )

    def kinship(self, before: Kinship) -> Kinship:
        """Return the relations of all systems in the end, for a topology with these relations."""
        wanted = {name: self._wanted(name) for name in self._federation.members}
        links = {(name, each.system) for name, those in wanted.items() for each in those.values() if each.is_sibling}
        links |= {(name, other) for name in wanted for other in self._assigned(name)}
        return replace(
            before,
            parents={name: _parents_of(those) for name, those in wanted.items()},
            with_machine=frozenset((before.with_machine | set(self._guests)) - set(self.drained)),
            sibling_links=frozenset((one, other) for one, other in links if one < other),
        )

    def _assigned(self, name: SystemId) -> frozenset[SystemId]:
        """Return the siblings that the primary parent of a module has assigned."""
        members = queries.members_of(self._federation.members[name].module.state).values()
        return frozenset(row.system for row in members if row.assigned_by is not None)

    def _has_children_beside(self, guest: SystemId) -> bool:
        """Return whether the primary parent of a guest has other primary children, which people have not removed."""
        removed = {name: queries.removed_from(host.module.state) for name, host in self._federation.members.items()}
        return any(
            self._primary_of(each) == self._primary_of(guest) and each not in removed[guest] and guest not in those
            for each, those in removed.items()
            if each != guest
        )

    def _primary_of(self, name: SystemId) -> SystemId | None:
        """Return the primary parent of a system in the end."""
        of_topology = _primary(self._federation.members[name].system.neighbors)
        return self.primary.get(name, self.joined.get(name, of_topology))

    def _choose_parents(self) -> None:
        """Choose which second parents stay, and which of several parents is the primary one in the end."""
        for name in tuple(self.second):
            is_guest_alone = name in self._guests and self.joined.get(name) in (None, self.second[name])
            if is_guest_alone or self._random.randrange(2):
                del self.second[name]
        for name in (*self._hosting, *self._guests):
            primary, *others = _parents_of(self._wanted(name)) or (None,)
            if primary is not None and others and self._random.randrange(3) == 0:
                self.primary[name] = self._random.choice(others)

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
            case Change.PARENT:
                return self._add_parent(name)
            case Change.PRIMARY:
                parents = [each for each in neighbors if queries.neighbors_of(host.module.state)[each].is_parent]
                return name in (*self._hosting, *self._guests) and self._post(host, parents, _handed_over)
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

    def _add_parent(self, name: SystemId) -> bool:
        """Add a second parent; only those earlier in the federation are parents, so that there is no cycle."""
        earlier = [*self._hosting, *self._guests] if name in (*self._hosting, *self._guests) else []
        known = {each.system for each in self._federation.members[name].system.neighbors}
        present = queries.neighbors_of(self._federation.members[name].module.state)
        possible = [
            each
            for each in earlier[: earlier.index(name) if earlier else 0]
            if each in self._hosting and each not in known and each not in present and each != self.joined.get(name)
        ]
        if name in self.second or not possible or not any(each.is_parent for each in present.values()):
            return False
        self.second[name] = parent = self._random.choice(possible)
        self._add(name, Neighbor(system=parent, is_parent=True))
        self._add(parent, Neighbor(system=name, is_child=True))
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
        """Return the neighbors that a system is to have in the end; siblings have the same primary parent."""
        wanted = {each.system: each for each in self._federation.members[name].system.neighbors}
        if name in self.joined:
            wanted[self.joined[name]] = _parent(self.joined[name])
        wanted |= {guest: _child(guest) for guest, parent in self.joined.items() if parent == name}
        if name in self.second:
            wanted[self.second[name]] = Neighbor(system=self.second[name], is_parent=True)
        wanted |= {child: Neighbor(system=child, is_child=True) for child, at in self.second.items() if at == name}
        primary = self._primary_of(name)
        wanted = {
            each.system: replace(
                each,
                is_primary_parent=each.system == primary,
                is_sibling=each.is_sibling and self._primary_of(each.system) == primary,
            )
            for each in wanted.values()
        }
        return {each.system: each for each in wanted.values() if each.is_parent or each.is_child or each.is_sibling}

    def _restore(self, name: SystemId) -> None:
        """Let an administrator make the neighbors and the drain of a module what they are to be, and look again."""
        host, wanted = self._federation.members[name], self._wanted(name)
        now, removed = queries.neighbors_of(host.module.state), queries.removed_from(host.module.state)
        before, primary = _primary(now.values()), _primary(wanted.values())
        kept = set(wanted) | self._assigned(name)
        if primary is not None and before is not None and before != primary and before not in removed:
            # Entered as a parent, it is made the primary one; the one of before stays until then.
            wanted = {each.system: replace(each, is_primary_parent=each.system == before) for each in wanted.values()}
            kept.add(before)
            if primary in now and primary not in removed and not _is_handing_over(host):
                host.post(_handed_over(primary))
        for system, neighbor in wanted.items():
            if now.get(system) != neighbor:
                self._add(name, neighbor)
        for system in sorted(set(now) - kept):
            if system not in removed:
                host.post(_removed(system, is_forced=bool(self._random.randrange(2))))
        if (queries.drain_of(host.module.state) is not None) != (name in self.drained):
            host.post(DrainRequested(answer_to=_NOBODY, is_on=name in self.drained))
        if not self.is_settled():
            self._federation.later(_AGAIN_NS, partial(self._restore, name))


def _parents_of(neighbors: Mapping[SystemId, Neighbor]) -> tuple[SystemId, ...]:
    """Return the parents, the primary one first."""
    parents = (each for each in neighbors.values() if each.is_parent)
    return tuple(each.system for each in sorted(parents, key=lambda each: not each.is_primary_parent))


def _primary(neighbors: Iterable[Neighbor]) -> SystemId | None:
    return next((each.system for each in neighbors if each.is_primary_parent), None)


def _is_handing_over(host: SimulatedHost) -> bool:
    handover = queries.handover_of(host.module.state)
    return handover is not None and not handover.is_done


def _handed_over(parent: SystemId) -> PrimaryParentChanged:
    return PrimaryParentChanged(answer_to=_NOBODY, parent=parent, text=f"{parent} is nearer")


def _removed(system: SystemId, *, is_forced: bool) -> MemberRemoved:
    return MemberRemoved(answer_to=_NOBODY, system=system, is_forced=is_forced, text=f"{system} is not needed")


def _parent(system: SystemId) -> Neighbor:
    return Neighbor(system=system, is_parent=True, is_primary_parent=True)


def _child(system: SystemId) -> Neighbor:
    return Neighbor(system=system, is_child=True, is_primary_child=True)
