"""The vectors of simulated modules, counted again by the equations of MESSIAHS 7.3 as an audit of live ones does."""

from collections import Counter
from collections.abc import Iterable, Iterator

from messiahs.core.interface.messages import VectorKind
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.update import exchanged
from messiahs.core.vectors import vectors
from messiahs.recount.facts import Kind, Machines, Module, Received, Relations, Sent, Value, Vector
from messiahs.recount.facts import Neighbor as ReadNeighbor
from messiahs.recount.rounds import Recount
from messiahs.sim.hosts.host import SimulatedHost


def wrong_sums(recount: Recount) -> Iterator[str]:
    """Describe each check that has not held."""
    for check in (*recount.deviating(), *recount.unsettled()):
        place = check.place
        for each in check.deviations:
            yield f"equation {place.equation} at {place.module} for {place.neighbor} ({place.about}): {each.text}"


def read_hosts(recount: Recount, hosts: Iterable[SimulatedHost], /, now_ns: int) -> None:
    """Let an audit read the facts of all modules."""
    facts = (exchanged.exchanged(host.module.state) for host in hosts)
    recount.read({each.system: _module(each) for each in facts}, now_ns)


def _module(facts: exchanged.Exchanged) -> Module:
    return Module(
        name=facts.system,
        own=_vector(facts.own),
        counted_at=facts.counted_at,
        is_in_place=facts.is_in_place,
        period_ns=facts.period_ns,
        neighbors={each.neighbor.system: _neighbor(each) for each in facts.neighbors},
    )


def _neighbor(each: exchanged.ExchangedWith) -> ReadNeighbor:
    return ReadNeighbor(
        name=each.neighbor.system,
        relations=_relations(each.neighbor),
        counted=_relations(each.counted),
        is_linked=each.is_linked,
        is_leaving=each.is_leaving,
        received={
            _kind(kind): Received(vector=_vector(message.vector), counted=message.counted, hears=message.hears)
            for kind, message in each.received.items()
        },
        sent={
            _kind(kind): Sent(
                vector=_vector(sent.message.vector),
                counted=sent.message.counted,
                own=_vector(sent.own),
                heard={(name, _kind(of)): _vector(vector) for (name, of), vector in sent.heard.items()},
                is_withheld=sent.is_withheld,
            )
            for kind, sent in each.sent.items()
        },
    )


def _relations(neighbor: Neighbor) -> Relations:
    return Relations(
        is_parent=neighbor.is_parent,
        is_primary_parent=neighbor.is_primary_parent,
        is_child=neighbor.is_child,
        is_primary_child=neighbor.is_primary_child,
        is_sibling=neighbor.is_sibling,
    )


def _kind(kind: VectorKind) -> Kind:
    return Kind(kind.name.lower())


def _vector(vector: vectors.Vector) -> Vector:
    """Return a vector in terms of buckets, whose order is that of their numbers."""
    classes = (
        Machines(each.count, tuple((name, _value(value)) for name, value in each.attributes), each.some_lack)
        for each in vector.classes
    )
    return frozenset(Counter(classes).items())


def _value(value: vectors.ClassValue) -> Value:
    match value:
        case vectors.Interval(low, high):
            return (low, high)
        case str():
            return value
        case vectors.Strings():
            return None
