"""Marks of handovers in vectors for parents: there is room for few, and each child has its share (MESSIAHS 7.3)."""

from messiahs.core.interface.events import VectorReceived
from messiahs.core.interface.limits import SETTLING_LIMIT
from messiahs.core.interface.membership_messages import Handover
from messiahs.core.interface.messages import StatusVector, VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.update.counting import settling_in
from tests.unit.core.rig import PARENT, Rig, make_module, view

MANY, FEW, LEFT = (SystemId(name) for name in ("many", "few", "left"))
MOST = 1 << 62


def _marked(rig: Rig, child: SystemId, marks: tuple[int, ...]) -> None:
    message = StatusVector(
        kind=VectorKind.FOR_PARENTS, vector=view(), period_ns=2 * SECOND, age_ns=0, counted=True, settling=marks
    )
    rig.handle(VectorReceived(sender=child, message=message))


def test_a_child_with_many_marks_keeps_no_mark_of_others_out() -> None:
    children = tuple(Neighbor(system=each, is_child=True, is_primary_child=True) for each in (MANY, FEW, LEFT))
    rig = Rig(make_module(neighbors=(Neighbor(system=PARENT, is_parent=True, is_primary_parent=True), *children)))
    rig.resume()
    for child in (PARENT, MANY, FEW, LEFT):
        rig.greet(child)
    crowd = tuple(range(1, SETTLING_LIMIT + 1))
    _marked(rig, MANY, crowd)
    assert settling_in(rig.state) == crowd
    _marked(rig, FEW, (MOST - 2, MOST - 1))
    rig.hear(LEFT, Handover(number=1))
    own = rig.state.membership.released[LEFT].mark
    found = settling_in(rig.state)
    assert found == tuple(sorted({own, MOST - 2, MOST - 1, *crowd[: SETTLING_LIMIT - 3]}))
