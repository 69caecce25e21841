"""Whom a module asks for places, and what it knows of them."""

import pytest

from messiahs.core.interface.actions import Action
from messiahs.core.interface.events import LinkDown
from messiahs.core.interface.ledger_rows import NeighborAccountRow
from messiahs.core.interface.messages import SchedDeny, SchedRequest
from messiahs.core.model.decay import Decaying
from messiahs.core.model.ids import SearchId, SystemId
from messiahs.core.model.instants import HOUR, SECOND
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import CHILD, PARENT, SIBLING, Rig, deny, message_in, request, sent, tdv, view


def asked(actions: tuple[Action, ...]) -> tuple[SystemId, SchedRequest]:
    ((to, message),) = sent(actions, SchedRequest)
    return to, message


def test_neighbors_that_could_not_hold_the_task_are_not_asked(rig: Rig) -> None:
    rig.see(CHILD, view(avail_mem=1 << 20))
    assert asked(rig.hear(PARENT, request()))[0] == CHILD
    actions = rig.hear(SIBLING, request(2, search=SearchId(b"o" * 16), tdv=tdv(mem=1 << 30)))
    assert [reason.code for reason in message_in(actions, SchedDeny).reasons] == ["no_capacity"]


@pytest.mark.parametrize(("later", "first"), [(PARENT, SIBLING), (SIBLING, PARENT)])
def test_a_policy_knows_how_old_is_what_its_candidates_have_said(
    module: ModuleFactory, later: SystemId, first: SystemId
) -> None:
    rules = "accept from any { limit 9 tasks; } rank candidates by most $cand.age;"
    rig = module(policy=parse_policy(rules, file="oldest.policy"))
    for each in (CHILD, PARENT, SIBLING):
        rig.greet(each)
        rig.see(each)
    rig.wait(2 * SECOND)
    rig.see(later)
    assert asked(rig.hear(CHILD, request()))[0] == first


@pytest.mark.parametrize(("debtor", "other"), [(PARENT, SIBLING), (SIBLING, PARENT)])
def test_a_policy_knows_the_balance_with_its_candidates(
    module: ModuleFactory, debtor: SystemId, other: SystemId
) -> None:
    rules = "accept from any { limit 9 tasks; } rank candidates by most $cand.balance;"
    rig = module(policy=parse_policy(rules, file="balance.policy"))
    for each in (CHILD, PARENT, SIBLING):
        rig.greet(each)
        rig.see(each)
    for each, given_ns in ((debtor, 2 * HOUR), (other, HOUR)):
        nothing = Decaying(amount=0, at=rig.now)
        rig.state.ledger.neighbors[each] = NeighborAccountRow(
            system=each, since=rig.now, usage=nothing, given_ns=given_ns
        )
    assert asked(rig.hear(CHILD, request()))[0] == debtor


def test_a_candidate_whose_link_went_down_meanwhile_is_passed_over(rig: Rig) -> None:
    to, ask = asked(rig.hear(CHILD, request()))
    rig.handle(LinkDown(neighbor=PARENT))
    assert sent(rig.hear(to, deny(ask.id)), SchedDeny)[0][0] == CHILD
