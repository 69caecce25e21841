"""Outgoing vectors, each computed once: U, D for each child, and the revealed part of them (MESSIAHS 7.2, 7.3)."""

from collections.abc import Mapping

from messiahs.core.interface.messages import VectorKind
from messiahs.core.interface.parts import Policy
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.state.module import ModuleState
from messiahs.core.state.views import Snapshot, Sums, View
from messiahs.core.update.annotations import kept_from
from messiahs.core.update.counting import counting_of
from messiahs.core.update.sums import VectorKey, Views, in_down, in_up
from messiahs.core.vectors.division import Division
from messiahs.core.vectors.vectors import EMPTY, Vector


def sum_up(state: ModuleState) -> Sums:
    """Return the sums of the present views; results for unchanged parts are reused."""
    heard, neighbors = _heard(state.updates.views), counting_of(state).neighbors
    known = state.updates.sums
    if known is not None and (known.policy is not state.policy or known.neighbors != neighbors):
        known = None
    if known is None or known.own != state.updates.own or known.heard != heard:
        known = state.updates.sums = _new_sums(state, heard, own=state.updates.own, known=known)
    return known


def sums_of(state: ModuleState, snapshot: Snapshot) -> Sums:
    """Return the sums of a snapshot."""
    if snapshot.sums is None:
        snapshot.sums = _new_sums(state, _heard(snapshot.views), own=snapshot.own)
    return snapshot.sums


def up(sums: Sums) -> Division:
    """Return U (equation 19), which is S (equation 21)."""
    return _done(begun_up(sums))


def begun_up(sums: Sums) -> Division:
    """Return U, whose computation may not have ended."""
    if sums.up is None:
        sums.up = Division(
            (sums.own,), _received(sums, in_up(sums.neighbors.values())), keys=sums.policy.keys, memory=sums.memory_up
        )
    return sums.up


def everything(sums: Sums) -> Division:
    """Return D together with U of all primary children, from which the parts that a child receives are removed."""
    return _done(begun_everything(sums))


def begun_everything(sums: Sums) -> Division:
    """Return `everything`, whose computation may not have ended."""
    if sums.everything is None:
        above = tuple(sums.passed_on.get(key, EMPTY) for key in in_down(sums.neighbors.values()))
        if not any(above):
            sums.everything = begun_up(sums)
        else:
            below = _received(sums, in_up(sums.neighbors.values()))
            sums.everything = Division((sums.own, *above), below, keys=sums.policy.keys, memory=sums.memory_everything)
    return sums.everything


def classes_in(sums: Sums) -> int:
    """Count the classes in U and D together."""
    return sum(len(vector.classes) for vector in sums.passed_on.values())


def vector_for(state: ModuleState, neighbor: Neighbor, kind: VectorKind, sums: Sums, /) -> Vector:
    """Return the vector for a neighbor; `reveal` is applied last, once for all neighbors of an audience.

    A child is sent D together with the U of those primary children that it does not hear itself: beyond equation 20. In
    that equation a system hears all its siblings. Here it may hear only some of them (`hears`), so its primary parent
    adds exactly the others: each machine is still counted once in what the child knows of its primary tree.

    A child of another primary parent hears none of them as siblings, so it is sent all: a search that it sends here
    descends to them. With equation 20 alone they would be unknown to it. It uses this vector only as a view, not in
    sums; waiting tasks, and whether they may move, are reported to it separately (annotations.py).
    """
    if kind is not VectorKind.FOR_CHILDREN:
        return revealed_up(state, neighbor, up(sums).vector, sums)
    place = kept_from(state, neighbor.system), state.policy.disclosure.audience_of(neighbor)
    if place not in sums.revealed_down:
        if place[0] not in sums.down:
            if len(sums.down) > len(sums.neighbors):
                # Bounded, because a child may report other siblings each time.
                sums.down.clear()
                sums.revealed_down.clear()
            sums.down[place[0]] = everything(sums).without(place[0])
        sums.revealed_down[place] = state.policy.disclosure.reveal(sums.down[place[0]], neighbor)
    return sums.revealed_down[place]


def revealed_up(state: ModuleState, neighbor: Neighbor, vector: Vector, sums: Sums, /) -> Vector:
    """Return the part of U, given as `vector`, that is revealed to a parent or sibling."""
    audience = state.policy.disclosure.audience_of(neighbor)
    known = sums.revealed_up.get(audience)
    if known is None or known[0] is not vector:
        known = sums.revealed_up[audience] = vector, state.policy.disclosure.reveal(vector, neighbor)
    return known[1]


def _new_sums(state: ModuleState, heard: Views, *, own: Vector, known: Sums | None = None) -> Sums:
    """Begin new sums; U is kept from the `known` sums if nothing below has changed."""
    sums = Sums(
        own=own,
        heard=heard,
        neighbors=counting_of(state).neighbors,
        policy=state.policy,
        passed_on=passed_on(heard, state.policy, known=known),
    )
    if known is not None:
        sums.memory_up, sums.memory_everything = known.memory_up, known.memory_everything
    if known is not None and known.own == sums.own and _from_below(known.heard) == _from_below(heard):
        sums.up, sums.revealed_up = known.up, known.revealed_up
    return sums


def passed_on(heard: Views, policy: Policy, *, known: Sums | None = None) -> Views:
    """Return the received vectors, without the parts of children's vectors that the policy does not pass on."""
    passed: dict[VectorKey, Vector] = {}
    for key, vector in heard.items():
        if key[1] is not VectorKind.FOR_PARENTS:
            passed[key] = vector
        elif known is not None and known.heard.get(key) is vector:
            passed[key] = known.passed_on[key]
        else:
            passed[key] = policy.disclosure.pass_on(vector)
    return passed


def _done(division: Division) -> Division:
    division.work()
    return division


def _received(sums: Sums, keys: tuple[VectorKey, ...]) -> Mapping[SystemId, Vector]:
    return {key[0]: sums.passed_on[key] for key in keys if key in sums.passed_on}


def _heard(views: Mapping[VectorKey, View]) -> Views:
    return {key: view.message.vector for key, view in views.items()}


def _from_below(heard: Views) -> Views:
    return {key: vector for key, vector in heard.items() if key[1] is VectorKind.FOR_PARENTS}
