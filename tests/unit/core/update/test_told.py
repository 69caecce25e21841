"""What the owner of a machine is shown of what neighbors are told of it."""

from messiahs.core import queries
from messiahs.core.interface.events import AnswerTo, DrainRequested, LendRequested, LinkDown, PolicyChanged
from messiahs.core.interface.lending import Lent
from messiahs.core.interface.messages import VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.vector_queries import Disclosed
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import CHILD, OTHER_CHILD, PARENT, SIBLING, Rig

POLICY = """
policy "told" version 1;
reveal to parent { only $slots, $free_slots; }
reveal to siblings nothing;
"""


def told(rig: Rig) -> dict[SystemId, Disclosed]:
    return {each.neighbor.system: each for each in queries.disclosed(rig.state)}


def test_each_neighbor_has_what_it_was_sent_and_when(rig: Rig) -> None:
    rig.measure()
    at = rig.now
    rig.wait(20 * SECOND)
    found = told(rig)
    (parent,) = found[PARENT].sent
    assert (parent.kind, parent.machines) == (VectorKind.FOR_PARENTS, 1)
    assert parent.at is not None
    assert at < parent.at <= rig.now
    assert found[OTHER_CHILD].sent == ()
    assert {system: each.is_linked for system, each in found.items()} == {
        CHILD: True, OTHER_CHILD: False, PARENT: True, SIBLING: True,
    }  # fmt: skip
    rig.handle(LinkDown(neighbor=PARENT))
    assert (told(rig)[PARENT].is_linked, told(rig)[PARENT].sent) == (False, ())


def test_what_the_policy_withholds_is_named(module: ModuleFactory) -> None:
    rig = module(policy=parse_policy(POLICY, file="told"))
    rig.greet(PARENT, SIBLING, CHILD)
    rig.measure()
    rig.wait(20 * SECOND)
    found = told(rig)
    assert (found[SIBLING].is_revealed, found[SIBLING].hidden) == (False, ())
    assert {each.machines for each in found[SIBLING].sent} == {0}
    assert {"arch", "speed"} <= {*found[PARENT].hidden}
    assert "slots" not in found[PARENT].hidden


def test_extensions_that_are_not_sent_are_kept(rig: Rig) -> None:
    rig.handle(PolicyChanged(policy=parse_policy('policy "kept" version 1;', file="kept")))
    rig.measure(rack=7)
    machine = queries.advertised(rig.state, rig.now)
    assert machine is not None
    assert machine.kept == ("rack",)


def test_a_machine_that_is_lent_off_shows_no_free_slot_and_a_drained_one_nothing(rig: Rig) -> None:
    assert queries.advertised(rig.state, rig.now) is None
    rig.measure()
    rig.handle(LendRequested(answer_to=AnswerTo(9), lent=Lent.OFF, by="alice"))
    machine = queries.advertised(rig.state, rig.now)
    assert machine is not None
    assert (machine.here["free_slots"], machine.told["free_slots"]) == (4, 0)
    rig.handle(DrainRequested(answer_to=AnswerTo(9)))
    drained = queries.advertised(rig.state, rig.now)
    assert drained is not None
    assert drained.told == {}
