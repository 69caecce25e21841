"""Theorems 1 and 2 and corollary 5 (MESSIAHS 7.4), and their consequences, on random federations.

Every system tells its neighbors its vectors, as a running module computes them (`vector_for`), until nobody has
anything new to say. Each machine carries its own name as an extension attribute that classes split on, so that a vector
can be read as the multiset of machines that it is.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.interface.messages import VectorKind
from messiahs.core.model.descriptions import SDV
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.queries import own_sums
from messiahs.core.state.module import ModuleState
from messiahs.core.state.views import View
from messiahs.core.update.advertising import vectors_for
from messiahs.core.update.sums import vector_for_children, vector_for_parents, view_of
from messiahs.core.vectors.vectors import EMPTY, Vector, vector_of
from tests.property.budget import examples
from tests.unit.core.rig import START
from tests.unit.core.sent_vectors import hear, state_with, vector_sent

KEYS = ("is",)
Views = dict[tuple[SystemId, VectorKind], Vector]
Links = frozenset[tuple[int, int]]
"""Links of children with parents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Federation:
    """Systems in an order in which parents come first; the first parent of a system is its primary parent."""

    parents: tuple[tuple[int, ...], ...]
    has_machine: tuple[bool, ...]
    sibling_links: frozenset[tuple[int, int]]

    def primary(self, system: int) -> int | None:
        """Return the primary parent, None at a root."""
        return self.parents[system][0] if self.parents[system] else None

    def siblings(self, system: int) -> list[int]:
        """Return the siblings with which a system has a link."""
        return [other for other in self.systems() if (min(system, other), max(system, other)) in self.sibling_links]

    def systems(self) -> range:
        """Return all systems, parents first."""
        return range(len(self.parents))

    def primary_tree(self, root: int) -> list[int]:
        """Return a system and its primary descendants."""
        tree = [root]
        for system in tree:
            tree += [child for child in self.systems() if self.primary(child) == system]
        return tree

    def root_of(self, system: int) -> int:
        """Return the topmost primary ancestor, or the system itself."""
        while (parent := self.primary(system)) is not None:
            system = parent
        return system

    def counting(self, system: int, down: Links) -> int | None:
        """Return the parent that counts a system while some links are down; None if it has no parent with a link."""
        ordered = (*self.parents[system][:1], *sorted(self.parents[system][1:], key=_name))
        return next((parent for parent in ordered if (system, parent) not in down), None)

    def counted_tree(self, root: int, down: Links) -> list[int]:
        """Return a system and all that are counted below it."""
        tree = [root]
        for system in tree:
            tree += [child for child in self.systems() if self.counting(child, down) == system]
        return tree

    def machines(self, systems: list[int]) -> Counter[str]:
        """Return the machines that systems have."""
        return Counter(_name(system) for system in systems if self.has_machine[system])

    def neighbors(self, system: int) -> tuple[Neighbor, ...]:
        """Return all systems with which a system has a link."""
        siblings = self.siblings(system)
        return tuple(
            Neighbor(
                system=_name(other),
                is_parent=other in self.parents[system],
                is_primary_parent=other == self.primary(system),
                is_child=system in self.parents[other],
                is_primary_child=system == self.primary(other),
                is_sibling=other in siblings,
            )
            for other in self.systems()
            if other in self.parents[system] or system in self.parents[other] or other in siblings
        )

    def own(self, system: int) -> Vector:
        """Give {x}, or the empty vector for a system that has no machine."""
        return vector_of(SDV((("is", _name(system)),))) if self.has_machine[system] else EMPTY


def _name(system: int) -> SystemId:
    return SystemId(f"s{system}")


@st.composite
def federations(draw: st.DrawFn) -> Federation:
    size = draw(st.integers(1, 40))
    # How many systems at most are parents: few make wide trees with many siblings.
    width = draw(st.integers(1, size))
    parents: list[tuple[int, ...]] = []
    for system in range(size):
        above = st.integers(0, min(system, width) - 1) if system else st.nothing()
        drawn: tuple[int, ...] = tuple(draw(st.lists(above, max_size=3, unique=True))) if system else ()
        is_twin_wanted = draw(st.booleans())
        if drawn and is_twin_wanted:
            # A second parent that shares the primary parent: it is parent and sibling at once.
            twins = [other for other in range(system) if parents[other][:1] == drawn[:1] and other not in drawn]
            drawn += tuple(draw(st.lists(st.sampled_from(twins), max_size=1))) if twins else ()
        parents.append(drawn)
    pairs = [
        pair
        for pair in combinations(range(size), 2)
        if parents[pair[0]] and parents[pair[0]][:1] == parents[pair[1]][:1]
    ]
    share = draw(st.integers(0, 4))
    random = draw(st.randoms(use_true_random=False))
    return Federation(
        parents=tuple(parents),
        has_machine=tuple(draw(st.lists(st.booleans() | st.just(value=True), min_size=size, max_size=size))),
        sibling_links=frozenset(pair for pair in pairs if random.randrange(4) < share),
    )


@st.composite
def federations_with_links_down(draw: st.DrawFn) -> tuple[Federation, Links]:
    federation = draw(federations())
    links = [(system, parent) for system in federation.systems() for parent in federation.parents[system]]
    share, random = draw(st.integers(1, 3)), draw(st.randoms(use_true_random=False))
    return federation, frozenset(link for link in links if random.randrange(4) < share)


def _talked_out_without(federation: Federation, down: Links) -> list[ModuleState]:
    """Return the states of all systems once nothing changes any more, while some links are down."""
    states = [
        state_with(federation.own(system), federation.neighbors(system), keys=KEYS, views={}, hears={})
        for system in federation.systems()
    ]
    for system, parent in down:
        states[system].updates.silent[_name(parent)] = None
    changed = True
    while changed:
        changed = False
        for system in federation.systems():
            for neighbor in federation.neighbors(system):
                other = int(neighbor.system[1:])
                if {(system, other), (other, system)} & down:
                    continue
                for message in vectors_for(states[system], neighbor.system, START):
                    view = states[other].updates.views.get((_name(system), message.kind))
                    if view is None or view.message != message:
                        states[other].updates.views[_name(system), message.kind] = View(
                            message=message, received_at=START
                        )
                        states[other].updates.counting = None
                        changed = True
    return states


def _talked_out(federation: Federation) -> list[Views]:
    """Return each system's views of its neighbors once nothing changes any more."""
    heard: list[Views] = [{} for _ in federation.systems()]
    states = [
        state_with(federation.own(system), federation.neighbors(system), keys=KEYS, views={}, hears={})
        for system in federation.systems()
    ]
    changed = True
    while changed:
        changed = False
        for system in federation.systems():
            hears = [_name(sibling) for sibling in federation.siblings(system)]
            for other, kind, vector in _said_by(states[system]):
                if heard[other].get((_name(system), kind)) != vector:
                    heard[other][_name(system), kind] = vector
                    hear(states[other], _name(system), kind=kind, vector=vector, hears=hears)
                    changed = True
    return heard


def _said_by(state: ModuleState) -> Iterator[tuple[int, VectorKind, Vector]]:
    for neighbor in state.neighbors.values():
        kinds = {
            VectorKind.FOR_PARENTS: neighbor.is_parent,
            VectorKind.FOR_SIBLINGS: neighbor.is_sibling,
            VectorKind.FOR_CHILDREN: neighbor.is_child,
        }
        for kind, is_sent in kinds.items():
            if is_sent:
                yield int(neighbor.system[1:]), kind, vector_sent(state, neighbor.system, kind)


def _bag(vector: Vector) -> Counter[str]:
    return Counter({str(dict(each.attributes)["is"]): each.count for each in vector.classes})


@given(federations())
@examples(60)
def test_u_and_s_contain_the_primary_tree_below_exactly_once_and_nothing_from_above(federation: Federation) -> None:
    heard = _talked_out(federation)
    for system in federation.systems():
        own, neighbors = federation.own(system), federation.neighbors(system)
        expected = federation.machines(federation.primary_tree(system))
        assert _bag(vector_for_parents(own, neighbors, views=heard[system], keys=KEYS)) == expected
        for neighbor in neighbors:
            views = heard[int(neighbor.system[1:])]
            if neighbor.is_parent:
                assert _bag(views[_name(system), VectorKind.FOR_PARENTS]) == expected
            if neighbor.is_sibling:
                assert _bag(views[_name(system), VectorKind.FOR_SIBLINGS]) == expected


@given(federations())
@examples(60)
def test_d_contains_nothing_twice_and_no_primary_descendant(federation: Federation) -> None:
    heard = _talked_out(federation)
    for system in federation.systems():
        own, neighbors = federation.own(system), federation.neighbors(system)
        bag = _bag(vector_for_children(own, neighbors, views=heard[system], keys=KEYS))
        below = federation.machines(federation.primary_tree(system)) - federation.machines([system])
        assert max(bag.values(), default=1) == 1
        assert not bag & below
        assert bag[_name(system)] == federation.has_machine[system]
        assert bag == federation.machines(federation.primary_tree(federation.root_of(system))) - below


@given(federations())
@examples(60)
def test_a_vector_from_a_parent_contains_nothing_twice(federation: Federation) -> None:
    heard = _talked_out(federation)
    for system in federation.systems():
        for neighbor in federation.neighbors(system):
            if neighbor.is_parent:
                bag = _bag(heard[system][neighbor.system, VectorKind.FOR_CHILDREN])
                assert max(bag.values(), default=1) == 1
            if neighbor.is_primary_parent:
                assert not bag & federation.machines(federation.primary_tree(system))


@given(federations())
@examples(60)
def test_a_system_knows_every_machine_of_its_primary_tree_exactly_once(federation: Federation) -> None:
    heard = _talked_out(federation)
    for system in federation.systems():
        own, neighbors = federation.own(system), federation.neighbors(system)
        known = _bag(vector_for_parents(own, neighbors, views=heard[system], keys=KEYS))
        for neighbor in neighbors:
            if neighbor.is_sibling:
                known += _bag(heard[system][neighbor.system, VectorKind.FOR_SIBLINGS])
            if neighbor.is_primary_parent:
                known += _bag(heard[system][neighbor.system, VectorKind.FOR_CHILDREN])
        assert known == federation.machines(federation.primary_tree(federation.root_of(system)))


@given(federations())
@examples(30)
def test_every_view_of_a_neighbor_contains_nothing_twice(federation: Federation) -> None:
    heard = _talked_out(federation)
    for system in federation.systems():
        for neighbor in federation.neighbors(system):
            bag = _bag(view_of(neighbor, heard[system]))
            below = federation.machines(federation.primary_tree(int(neighbor.system[1:])))
            assert max(bag.values(), default=1) == 1
            if neighbor.is_parent:
                assert bag[neighbor.system] == federation.has_machine[int(neighbor.system[1:])]
            else:
                assert bag == below


@given(federations_with_links_down())
@examples(60)
def test_while_links_with_parents_are_down_another_parent_counts_every_machine_below_once(
    drawn: tuple[Federation, Links],
) -> None:
    federation, down = drawn
    states = _talked_out_without(federation, down)
    for system, state in enumerate(states):
        below = federation.machines(federation.counted_tree(system, down))
        assert _bag(own_sums(state).up) == below
        for parent in federation.parents[system]:
            view = states[parent].updates.views.get((_name(system), VectorKind.FOR_PARENTS))
            assert (view is None) == ((system, parent) in down)
            assert view is None or _bag(view.message.vector) == below


@given(federations_with_links_down())
@examples(60)
def test_while_links_with_parents_are_down_nothing_is_counted_twice(drawn: tuple[Federation, Links]) -> None:
    federation, down = drawn
    for system, state in enumerate(_talked_out_without(federation, down)):
        sums = own_sums(state)
        above = _bag(sums.down) - federation.machines([system])
        assert max((_bag(sums.up) + above).values(), default=1) == 1
        assert all(max(_bag(view.message.vector).values(), default=1) == 1 for view in state.updates.views.values())
