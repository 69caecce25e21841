"""What each sum must hold (equations 19 to 21, which are 10 to 12 with the primary parent), and what arrived (22).

A sum is compared with the vectors from which the module says that it was computed, so a change that is on its way is no
deviation. That these are the vectors that were received, and that those are the ones that the neighbor sent, are checks
of their own. They compare with every version that was seen, since the ends are read at different times.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from messiahs.core.model.counts import counted
from messiahs.recount.checks import Check, Deviation, Place, What
from messiahs.recount.facts import NOTHING, Key, Kind, Machines, Module, Modules, Neighbor, Sent, Vector, size_of
from messiahs.recount.matching import Difference, Part, difference
from messiahs.recount.relations import (
    machines_sent,
    primary_children,
    primary_parent,
    primary_siblings,
    unheard_children,
)

_EQUATIONS = {Kind.UP: 19, Kind.DOWN: 20, Kind.SIDE: 21}
_ARRIVAL = 22
_NAMED = 8
_Said = tuple[Vector, bool | None]


@dataclass(slots=True)
class Seen:
    """The versions of vectors that were seen in all reads (mutable), by module, neighbor and kind."""

    own: dict[str, set[Vector]] = field(default_factory=dict)
    received: dict[tuple[str, str, Kind], set[_Said]] = field(default_factory=dict)
    sent: dict[tuple[str, str, Kind], set[_Said]] = field(default_factory=dict)

    def add(self, modules: Modules) -> None:
        """Remember what the modules had received and sent."""
        for module in modules.values():
            self.own.setdefault(module.name, set()).add(module.own)
            for neighbor in module.neighbors.values():
                for kind, received in neighbor.received.items():
                    place = module.name, neighbor.name, kind
                    self.received.setdefault(place, set()).add((received.vector, received.counted))
                for kind, sent in neighbor.sent.items():
                    place = module.name, neighbor.name, kind
                    self.sent.setdefault(place, set()).add((sent.vector, sent.counted))


def sum_checks(modules: Modules, seen: Seen, *, held: Collection[Place]) -> Iterator[Check]:
    """Check all sums that the modules sent, and all vectors that they received from each other.

    Sums that have held before are not computed again, since that takes long where there are many neighbors.
    """
    for module in modules.values():
        yield _has_one_machine(module)
        for neighbor in module.neighbors.values():
            if neighbor.is_linked and not neighbor.is_leaving:
                for kind, sent in neighbor.sent.items():
                    yield _sum_check(modules, module, neighbor, kind, held=held)
                    keys = _summed(modules, module, neighbor.name, kind)
                    yield _is_from_what_was_received(module, neighbor.name, kind, keys=keys, sent=sent, seen=seen)
                if neighbor.name in modules:
                    yield from _arrival_checks(modules, module, neighbor, seen)


def _has_one_machine(module: Module) -> Check:
    """Check that {x} has at most one machine."""
    place = Place(module=module.name, neighbor=module.name, equation=_EQUATIONS[Kind.UP], about="the own machine")
    size = size_of(module.own)
    if size <= 1:
        return Check(place=place)
    text = f"its own machine counts as {size}"
    found = Deviation(what=What.TWICE, count=size - 1, machines=(module.name,), text=text)
    return Check(place=place, deviations=(found,))


def _sum_check(
    modules: Modules, module: Module, neighbor: Neighbor, kind: Kind, /, *, held: Collection[Place]
) -> Check:
    place = Place(module=module.name, neighbor=neighbor.name, equation=_EQUATIONS[kind], about=kind.value)
    sent = neighbor.sent[kind]
    if place in held or (sent.is_withheld and not sent.vector):
        return Check(place=place)
    keys = _summed(modules, module, neighbor.name, kind)
    parts = (
        Part(source=module.name, vector=sent.own),
        *(Part(source=key[0], vector=sent.heard[key]) for key in keys if key in sent.heard),
    )
    of_source = {name: machines_sent(modules, name, module.name, of) for name, of in keys}
    found = difference(parts, sent.vector)
    of_source[module.name] = (module.name,)
    return Check(place=place, deviations=tuple(_deviations(found, modules, of_source)))


def _summed(modules: Modules, module: Module, receiver: str, kind: Kind) -> tuple[Key, ...]:
    """Return the vectors that belong into a sum beside the own machine."""
    children = primary_children(modules, module)
    if kind is not Kind.DOWN:
        return tuple((name, Kind.UP) for name in children)
    parent = primary_parent(modules, module)
    return (
        *(((parent, Kind.DOWN),) if parent is not None else ()),
        *((name, Kind.SIDE) for name in primary_siblings(modules, module)),
        *((name, Kind.UP) for name in unheard_children(module, receiver, children)),
    )


def _is_from_what_was_received(
    module: Module, receiver: str, kind: Kind, *, keys: tuple[Key, ...], sent: Sent, seen: Seen
) -> Check:
    """Check that a sum was computed from vectors that were seen as received, and from that of the own machine."""
    place = Place(
        module=module.name, neighbor=receiver, equation=_EQUATIONS[kind], about=f"{kind.value}, from what was received"
    )
    found = []
    if sent.own not in seen.own.get(module.name, ()):
        text = "the sum has another description of its own machine"
        found.append(Deviation(what=What.OUTDATED, count=size_of(sent.own), machines=(module.name,), text=text))
    for name, of in keys:
        versions = {vector for vector, _ in seen.received.get((module.name, name, of), ())} or {NOTHING}
        used = sent.heard.get((name, of), NOTHING)
        if used not in versions:
            text = f"the sum has another vector of {name} than was received from it"
            found.append(Deviation(what=What.OUTDATED, count=size_of(used), machines=(), text=text))
    return Check(place=place, deviations=tuple(found))


def _arrival_checks(modules: Modules, module: Module, neighbor: Neighbor, seen: Seen) -> Iterator[Check]:
    """Check that a module has received what its neighbor sent it (equation 22), neither more nor less."""
    sender = modules[neighbor.name]
    back = sender.neighbors.get(module.name)
    sent = back.sent if back is not None and back.is_linked and not back.is_leaving else {}
    for kind in Kind:
        if kind not in neighbor.received and kind not in sent:
            continue
        place = Place(module=module.name, neighbor=sender.name, equation=_ARRIVAL, about=kind.value)
        got, went = neighbor.received.get(kind), sent.get(kind)
        arrived = (got.vector, got.counted) if got is not None else (NOTHING, None)
        left = (went.vector, went.counted) if went is not None else (NOTHING, None)
        if arrived in seen.sent.get((sender.name, module.name, kind), ()) or left in seen.received.get(
            (module.name, sender.name, kind), ()
        ):
            yield Check(place=place)
            continue
        names = machines_sent(modules, sender.name, module.name, kind)
        found = difference((Part(source=sender.name, vector=left[0]),), arrived[0])
        unlike = tuple(_deviations(found, modules, {sender.name: names}, verb="received"))
        got_text, sent_text = counted(size_of(arrived[0]), "machine"), size_of(left[0])
        text = f"it received {got_text}, and {sender.name} sent {sent_text} in other classes"
        if arrived[0] == left[0]:
            text = f"{sender.name} sent it another word about where it is counted"
        other = Deviation(what=What.ALTERED, count=size_of(arrived[0]), machines=(), text=text)
        yield Check(place=place, deviations=unlike or (other,))


def _deviations(
    found: Difference, modules: Modules, of_source: Mapping[str, tuple[str, ...]], *, verb: str = "sent"
) -> Iterator[Deviation]:
    """Describe machines in no class, and places without a machine; where both are, the machines are outside."""
    outside = min(found.lost_count, found.extra_count)
    named = tuple(
        dict.fromkeys(name for source, one, _ in found.lost for name in _alike(modules, of_source[source], one))
    )
    from_where = ", ".join(dict.fromkeys(source for source, _, _ in found.lost))
    if outside:
        text = f"{counted(outside, 'machine')} from {from_where} {_are(outside)} in a class that holds no such machine"
        yield Deviation(what=What.OUTSIDE, count=outside, machines=named[:_NAMED], text=text)
    if found.lost_count > outside:
        count = found.lost_count - outside
        text = f"{counted(count, 'machine')} from {from_where} {_are(count)} in no class that was {verb}"
        yield Deviation(what=What.LOST, count=count, machines=named[:_NAMED], text=text)
    if found.extra_count > outside:
        count = found.extra_count - outside
        everyone = tuple(name for names in of_source.values() for name in names)
        like = tuple(dict.fromkeys(name for one, _ in found.extra for name in _within(modules, everyone, one)))
        are = _are(count)
        text = f"{counted(count, 'machine')} {are} {verb} that nobody reported, or that {are} counted already"
        yield Deviation(what=What.TWICE, count=count, machines=like[:_NAMED], text=text)


def _alike(modules: Modules, names: tuple[str, ...], wanted: Machines) -> tuple[str, ...]:
    """Return those systems whose own machine is in a class; all of them if their machines have changed since."""
    return _within(modules, names, wanted) or names


def _within(modules: Modules, names: tuple[str, ...], wanted: Machines) -> tuple[str, ...]:
    return tuple(name for name in names if any(wanted.holds(one) for one, _ in modules[name].own))


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
