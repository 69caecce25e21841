"""The update channel: when which vectors go to whom, and neighbors that fall silent."""

import pytest

from messiahs.core.interface.actions import Action, Decision, SendControl, SendVector
from messiahs.core.interface.events import LinkDown, Measured, PolicyChanged, VectorReceived
from messiahs.core.interface.messages import StatusVector, SystemStatusQuery, VectorKind
from messiahs.core.interface.policies import Timeouts
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import HOUR, MILLISECOND, SECOND
from messiahs.core.model.neighbors import Neighbor
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import CHILD, GIB, OTHER_CHILD, PARENT, SIBLING, STRANGER, Rig, only, reported, sdv, view
from tests.unit.core.scripted_policy import ScriptedPolicy


def advertised(actions: tuple[Action, ...]) -> list[tuple[SystemId, VectorKind, int]]:
    return [(action.to, action.message.kind, action.message.vector.machines) for action in only(actions, SendVector)]


def heard(sender: SystemId, kind: VectorKind, **said: int) -> VectorReceived:
    given = {"period_ns": 2 * SECOND, "age_ns": 0, **said}
    return VectorReceived(
        sender=sender,
        message=StatusVector(kind=kind, vector=view(), period_ns=given["period_ns"], age_ns=given["age_ns"]),
    )


def next_advertisement(rig: Rig) -> tuple[Action, ...]:
    """Wait for the next output timeout."""
    while True:
        deadline = rig.module.next_deadline()
        assert deadline is not None
        if len(actions := only(rig.wait(max(0, deadline - rig.now)), SendVector)) == 3:
            return actions


def test_every_neighbor_gets_its_kind_of_vector_at_every_period(rig: Rig) -> None:
    rig.measure()
    next_advertisement(rig)
    at = rig.now
    assert advertised(next_advertisement(rig)) == [
        (CHILD, VectorKind.FOR_CHILDREN, 3),
        (PARENT, VectorKind.FOR_PARENTS, 2),
        (SIBLING, VectorKind.FOR_SIBLINGS, 2),
    ]
    assert rig.now - at == 2 * SECOND


def test_a_change_of_no_key_waits_for_the_period(module: ModuleFactory) -> None:
    rig = module()
    rig.wait(0)
    rig.greet(PARENT)
    rig.handle(Measured(sdv=sdv(load=1)))
    rig.wait(SECOND // 2)
    rig.handle(Measured(sdv=sdv(load=9_000)))
    assert advertised(rig.wait(SECOND)) == []
    assert len(advertised(rig.wait(SECOND))) == 1


def test_what_changes_is_advertised_after_ten_milliseconds_and_then_at_most_every_fifty_milliseconds(
    module: ModuleFactory,
) -> None:
    rig = module()
    rig.wait(0)
    rig.greet(PARENT)
    rig.wait(SECOND)
    rig.handle(Measured(sdv=sdv(avail_mem=8 * GIB)))
    assert advertised(rig.wait(10 * MILLISECOND - 1)) == []
    assert len(advertised(rig.wait(1))) == 1
    rig.wait(10 * MILLISECOND)
    rig.handle(Measured(sdv=sdv(avail_mem=4 * GIB)))
    rig.handle(Measured(sdv=sdv(avail_mem=2 * GIB)))
    assert advertised(rig.wait(40 * MILLISECOND - 1)) == []
    assert len(advertised(rig.wait(1))) == 1


def test_what_changes_back_at_once_is_not_advertised(module: ModuleFactory) -> None:
    rig = module()
    rig.greet(PARENT)
    rig.measure(avail_mem=8 * GIB)
    rig.wait(SECOND)
    for gigabytes in (4, 8):
        rig.handle(Measured(sdv=sdv(avail_mem=gigabytes * GIB)))
        rig.wait(4 * MILLISECOND)
    assert advertised(rig.wait(SECOND // 2)) == []


def test_on_change_only_vectors_that_say_something_new_are_sent(rig: Rig) -> None:
    next_advertisement(rig)
    rig.see(PARENT, view(speed=2_000))
    assert [to for to, _, _ in advertised(rig.wait(100 * MILLISECOND))] == [CHILD]


def test_a_query_of_one_neighbor_keeps_no_news_from_the_others(rig: Rig) -> None:
    next_advertisement(rig)
    rig.see(CHILD, view(speed=2_000))
    rig.hear(SIBLING, SystemStatusQuery())
    assert [to for to, _, _ in advertised(rig.wait(100 * MILLISECOND))] == [PARENT]


def test_what_is_advertised_does_not_depend_on_sums_that_were_kept(module: ModuleFactory) -> None:
    said = []
    for keeps in (True, False):
        rig = module()
        rig.greet(CHILD, SIBLING, PARENT)
        for speed in (1_000, 2_000, 2_000, 4_000):
            for system in (CHILD, SIBLING, PARENT):
                rig.see(system, view(speed=speed))
                said.append((keeps, rig.wait(60 * MILLISECOND)))
                if not keeps:
                    rig.state.updates.sums = None
            rig.measure(speed=speed)
            said.append((keeps, rig.wait(2 * SECOND)))
    with_sums, without = ([each for keeps, each in said if keeps is wanted] for wanted in (True, False))
    assert with_sums == without
    assert sum(len(advertised(actions)) for actions in without) > len(without)


def test_what_was_found_of_a_vector_is_kept_when_the_same_comes_again(rig: Rig) -> None:
    rig.see(CHILD, view(speed=2_000))
    (seen,) = [each for (system, _), each in rig.state.updates.views.items() if system == CHILD]
    rig.wait(SECOND)
    rig.see(CHILD, view(speed=2_000))
    (again,) = [each for (system, _), each in rig.state.updates.views.items() if system == CHILD]
    assert again.message.vector is seen.message.vector
    assert again.received_at == seen.received_at + SECOND


def test_a_measurement_that_says_the_same_changes_nothing(rig: Rig) -> None:
    rig.measure()
    next_advertisement(rig)
    rig.handle(Measured(sdv=sdv()))
    assert advertised(rig.wait(100 * MILLISECOND)) == []


def test_a_vector_carries_the_period_and_the_age_of_its_oldest_part(rig: Rig) -> None:
    rig.handle(heard(CHILD, VectorKind.FOR_PARENTS, age_ns=7 * SECOND))
    rig.wait(SECOND)
    (action,) = [each for each in only(rig.hear(PARENT, SystemStatusQuery()), SendVector)]  # noqa: C416 - one
    assert (action.message.period_ns, action.message.age_ns) == (2 * SECOND, 8 * SECOND)


def test_what_came_from_above_makes_no_vector_older_that_holds_nothing_of_it(rig: Rig) -> None:
    rig.handle(heard(PARENT, VectorKind.FOR_CHILDREN, age_ns=100 * SECOND))
    rig.handle(heard(SIBLING, VectorKind.FOR_SIBLINGS, age_ns=50 * SECOND))
    rig.handle(heard(CHILD, VectorKind.FOR_PARENTS, age_ns=7 * SECOND))
    ages = {each.message.kind: each.message.age_ns for each in only(rig.wait(3 * SECOND), SendVector)}
    assert ages[VectorKind.FOR_PARENTS] == ages[VectorKind.FOR_SIBLINGS] < 10 * SECOND
    assert ages[VectorKind.FOR_CHILDREN] > 100 * SECOND


def test_what_a_child_said_itself_makes_its_own_vector_no_older(module: ModuleFactory) -> None:
    rig = module()
    rig.greet(CHILD, OTHER_CHILD)
    rig.handle(heard(CHILD, VectorKind.FOR_PARENTS, age_ns=100 * SECOND))
    ages = {each.to: each.message.age_ns for each in only(rig.wait(3 * SECOND), SendVector)}
    assert ages[CHILD] == 0
    assert ages[OTHER_CHILD] >= 100 * SECOND


def test_a_machine_that_nobody_else_knows_of_has_no_age(module: ModuleFactory) -> None:
    rig = module()
    rig.measure()
    rig.greet(PARENT)
    rig.handle(heard(PARENT, VectorKind.FOR_CHILDREN, age_ns=100 * SECOND))
    (action,) = only(rig.hear(PARENT, SystemStatusQuery()), SendVector)
    assert action.message.age_ns == 0


def test_no_age_grows_out_of_its_field(rig: Rig) -> None:
    rig.handle(heard(CHILD, VectorKind.FOR_PARENTS, age_ns=(1 << 63) - 1, period_ns=(1 << 63) - 1))
    (action,) = only(rig.hear(PARENT, SystemStatusQuery()), SendVector)
    assert action.message.age_ns == 24 * HOUR


def test_a_system_status_query_is_answered_with_the_neighbors_own_vector(rig: Rig) -> None:
    rig.measure()
    assert advertised(rig.hear(PARENT, SystemStatusQuery())) == [(PARENT, VectorKind.FOR_PARENTS, 2)]


def test_a_neighbor_that_is_both_sibling_and_child_gets_and_sends_both_vectors(module: ModuleFactory) -> None:
    rig = module(neighbors=(Neighbor(system=CHILD, is_child=True, is_sibling=True),))
    kinds = [kind for _, kind, _ in advertised(rig.greet(CHILD))]
    assert kinds == [VectorKind.FOR_CHILDREN, VectorKind.FOR_SIBLINGS]
    for kind in (VectorKind.FOR_PARENTS, VectorKind.FOR_SIBLINGS):
        rig.see(CHILD, kind=kind)
    assert len(rig.state.updates.views) == 2


@pytest.mark.parametrize(
    ("sender", "kind", "code"),
    [
        (CHILD, VectorKind.FOR_CHILDREN, "wrong_vector"),
        (CHILD, VectorKind.FOR_SIBLINGS, "wrong_vector"),
        (PARENT, VectorKind.FOR_PARENTS, "wrong_vector"),
        (SIBLING, VectorKind.FOR_PARENTS, "wrong_vector"),
        (STRANGER, VectorKind.FOR_PARENTS, "not_a_neighbor"),
    ],
)
def test_a_vector_that_its_sender_has_no_business_to_send_is_reported(
    rig: Rig, sender: SystemId, kind: VectorKind, code: str
) -> None:
    before = dict(rig.state.updates.views)
    assert reported(rig.handle(heard(sender, kind))) == code
    assert rig.state.updates.views == before


def test_a_silent_neighbor_is_queried_once_and_then_it_is_down(rig: Rig) -> None:
    query = SendControl(to=CHILD, message=SystemStatusQuery())
    for _ in range(2):
        rig.see(CHILD)
        actions = rig.wait(6 * SECOND - 1)
        assert query not in actions
        assert query in rig.wait(1)
    actions = rig.wait(2 * SECOND)
    assert query not in actions
    assert Decision(what="neighbor_down", task=CHILD, text="input timeout") in actions
    assert (CHILD, VectorKind.FOR_PARENTS) not in rig.state.updates.views
    assert not any(machines for to, _, machines in advertised(rig.wait(SECOND)) if to == PARENT)


def test_a_neighbor_that_speaks_again_is_not_down(rig: Rig) -> None:
    rig.wait(7 * SECOND)
    rig.see(CHILD)
    rig.wait(5 * SECOND)
    assert (CHILD, VectorKind.FOR_PARENTS) in rig.state.updates.views


def test_a_neighbor_that_never_says_anything_after_its_hello_is_queried_too(module: ModuleFactory) -> None:
    rig = module()
    rig.greet(CHILD)
    assert SendControl(to=CHILD, message=SystemStatusQuery()) in rig.wait(6 * SECOND)


def test_the_policy_may_say_how_long_silence_is_borne(module: ModuleFactory) -> None:
    rig = module(policy=ScriptedPolicy(timeouts=Timeouts(input_ns=20 * SECOND)))
    rig.greet(CHILD)
    rig.see(CHILD)
    query = SendControl(to=CHILD, message=SystemStatusQuery())
    assert query not in rig.wait(20 * SECOND - 1)
    assert query in rig.wait(1)


def test_the_policy_may_declare_a_silent_neighbor_down_without_a_query(module: ModuleFactory) -> None:
    rig = module(policy=ScriptedPolicy(timeouts=Timeouts(input_ns=20 * SECOND, queries_silent=False)))
    rig.greet(CHILD)
    rig.see(CHILD)
    actions = rig.wait(20 * SECOND)
    assert Decision(what="neighbor_down", task=CHILD, text="input timeout") in actions
    assert SendControl(to=CHILD, message=SystemStatusQuery()) not in actions


def test_a_neighbor_is_polled_when_its_last_vector_is_as_old_as_the_policy_says(module: ModuleFactory) -> None:
    rig = module(policy=ScriptedPolicy(timeouts=Timeouts(poll_ns=5 * SECOND, input_ns=HOUR)))
    rig.greet(CHILD)
    poll = SendControl(to=CHILD, message=SystemStatusQuery())
    assert poll not in rig.wait(5 * SECOND - 1)
    assert only(rig.wait(1), SendControl) == (poll,)
    rig.wait(SECOND)
    rig.see(CHILD)
    assert poll not in rig.wait(5 * SECOND - 1)
    assert only(rig.wait(1), SendControl) == (poll,)
    assert only(rig.wait(50 * SECOND), SendControl) == (poll,) * 10


def test_only_a_linked_neighbor_is_polled_also_after_it_was_declared_down(module: ModuleFactory) -> None:
    rig = module(policy=ScriptedPolicy(timeouts=Timeouts(poll_ns=5 * SECOND, input_ns=7 * SECOND)))
    rig.greet(CHILD)
    rig.see(CHILD)
    assert Decision(what="neighbor_down", task=CHILD, text="input timeout") in rig.wait(20 * SECOND)
    poll = SendControl(to=CHILD, message=SystemStatusQuery())
    assert poll in rig.wait(5 * SECOND)
    rig.handle(LinkDown(neighbor=CHILD))
    assert poll not in rig.wait(60 * SECOND)
    rig.greet(CHILD)
    assert poll in rig.wait(5 * SECOND)


def test_the_input_timeout_of_a_polled_neighbor_is_three_polls(module: ModuleFactory) -> None:
    rig = module(policy=ScriptedPolicy(timeouts=Timeouts(poll_ns=SECOND, queries_silent=False)))
    rig.greet(CHILD)
    rig.handle(heard(CHILD, VectorKind.FOR_PARENTS, period_ns=HOUR))
    down = Decision(what="neighbor_down", task=CHILD, text="input timeout")
    assert down not in rig.wait(3 * SECOND - 1)
    assert down in rig.wait(1)


def test_a_policy_that_no_longer_polls_ends_the_polls_and_one_that_does_begins_them(module: ModuleFactory) -> None:
    rig = module(policy=ScriptedPolicy(timeouts=Timeouts(poll_ns=SECOND, input_ns=HOUR)))
    rig.greet(CHILD)
    poll = SendControl(to=CHILD, message=SystemStatusQuery())
    rig.handle(PolicyChanged(policy=ScriptedPolicy(timeouts=Timeouts(input_ns=HOUR))))
    assert poll not in rig.wait(60 * SECOND)
    rig.handle(PolicyChanged(policy=ScriptedPolicy(timeouts=Timeouts(poll_ns=SECOND, input_ns=HOUR))))
    assert poll in rig.wait(SECOND)


def test_a_parent_receives_the_list_of_heard_siblings(rig: Rig) -> None:
    (action,) = only(rig.hear(PARENT, SystemStatusQuery()), SendVector)
    assert action.message.hears == (SIBLING,)
    (action,) = only(rig.hear(SIBLING, SystemStatusQuery()), SendVector)
    assert action.message.hears == ()


def test_another_parent_than_the_primary_one_is_told_no_sibling(module: ModuleFactory) -> None:
    neighbors = (
        Neighbor(system=PARENT, is_parent=True, is_primary_parent=True),
        Neighbor(system=STRANGER, is_parent=True),
        Neighbor(system=SIBLING, is_sibling=True),
    )
    rig = module(neighbors=neighbors)
    rig.greet(PARENT, STRANGER, SIBLING)
    rig.handle(heard(SIBLING, VectorKind.FOR_SIBLINGS))
    told = [only(rig.hear(parent, SystemStatusQuery()), SendVector)[0] for parent in (PARENT, STRANGER)]
    assert [action.message.hears for action in told] == [(SIBLING,), ()]


def test_neighbors_with_equal_rules_share_one_vector_and_others_do_not(module: ModuleFactory) -> None:
    rules = parse_policy('reveal to any { all except $speed; } reveal to "child" { only $arch; }', file="x.policy")
    rig = module(policy=rules)
    for each in (CHILD, OTHER_CHILD, PARENT, SIBLING):
        rig.greet(each)
    rig.measure()
    sent = rig.state.updates.sent
    assert sent[PARENT, VectorKind.FOR_PARENTS].vector is sent[SIBLING, VectorKind.FOR_SIBLINGS].vector
    (more,) = sent[PARENT, VectorKind.FOR_PARENTS].vector.classes
    (only_arch,) = sent[CHILD, VectorKind.FOR_CHILDREN].vector.classes
    assert [name for name, _ in only_arch.attributes] == ["arch"]
    assert "speed" not in dict(more.attributes)
