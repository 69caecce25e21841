"""Connections in virtual time end as real ones do."""

import pytest

from messiahs.core.interface.messages import VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, SECOND, after
from tests.unit.sim.two_systems import CHILD, PARENT, two_systems


@pytest.mark.parametrize("order", [(PARENT, CHILD), (CHILD, PARENT)])
def test_an_acceptor_that_restarts_before_it_has_opened_a_connection_is_dialed_again(
    order: tuple[SystemId, SystemId],
) -> None:
    federation = two_systems(hop_spread_ns=1 * SECOND)
    parent, child = federation.members[PARENT], federation.members[CHILD]
    federation.run(lambda: parent.is_up and child.is_up, until=after(federation.now, MINUTE))
    for name in order:
        # In one of the two orders the first one dials, and the second one restarts before it learns of that.
        federation.members[name].crash()
        federation.members[name].start()
    federation.run(lambda: False, until=after(federation.now, 2 * MINUTE))
    assert (PARENT, VectorKind.FOR_CHILDREN) in child.module.state.updates.views
    assert (CHILD, VectorKind.FOR_PARENTS) in parent.module.state.updates.views
