"""A removed neighbor is brought back by `neighbor on`, as the topology file lists it."""

from messiahs.core import queries
from messiahs.core.interface.events import MemberAdded, MemberRemoved
from messiahs.core.interface.membership_messages import Leave
from messiahs.core.model.neighbors import Neighbor
from tests.unit.core.membership.test_relations import ASKED, FILE, NEW, add, apply
from tests.unit.core.rig import CHILD, PARENT, Rig


def test_a_neighbor_that_was_brought_back_as_the_file_lists_it_changes_with_the_file(rig: Rig) -> None:
    apply(rig, *FILE)
    rig.handle(MemberRemoved(answer_to=ASKED, system=CHILD, is_forced=True))
    rig.hear(CHILD, Leave(is_done=True))
    ((child, address),) = (each for each in FILE if each[0].system == CHILD)
    rig.handle(MemberAdded(answer_to=ASKED, neighbor=child, address=address, is_by_file=True))
    assert rig.state.neighbors[CHILD] == child
    sibling = Neighbor(system=CHILD, is_sibling=True)
    apply(rig, *(each for each in FILE if each[0].system != CHILD), (sibling, address))
    assert rig.state.neighbors[CHILD] == sibling
    assert CHILD not in queries.members_of(rig.state)


def test_a_primary_parent_that_was_brought_back_beside_another_one_stays_an_ordinary_one(rig: Rig) -> None:
    apply(rig, *FILE)
    rig.handle(MemberRemoved(answer_to=ASKED, system=PARENT, is_forced=True))
    rig.hear(PARENT, Leave(is_done=True))
    add(rig, Neighbor(system=NEW, is_parent=True, is_primary_parent=True))
    ((parent, address),) = (each for each in FILE if each[0].system == PARENT)
    rig.handle(MemberAdded(answer_to=ASKED, neighbor=parent, address=address, is_by_file=True))
    apply(rig, *FILE)
    assert [each.system for each in rig.state.neighbors.values() if each.is_primary_parent] == [NEW]
