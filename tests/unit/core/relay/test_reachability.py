"""Two sites with a root each: a task of one is not placed where its task stream could not go."""

from dataclasses import replace

import pytest

from messiahs.core.interface.messages import DenyCode, SchedAccept, SchedDeny, SchedRequest, TaskDeny, TaskRequest
from messiahs.core.interface.policies import Refused
from messiahs.core.model.ids import MessageId, SearchId, SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.trust import Trust
from messiahs.core.relay.reachability import AVOIDED_LIMIT, AVOIDED_NS, avoid, avoided_in, digest_of
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    FAR,
    ME,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    Rig,
    accept,
    request,
    sent,
    told,
)
from tests.unit.core.scripted_policy import ScriptedPolicy

OURS, THEIRS = b"o" * 16, b"t" * 16
OUR_SITE = Trust(roots=(OURS,), vouchers=(OURS,))
THEIR_SITE = Trust(roots=(THEIRS,), vouchers=(THEIRS,))


@pytest.fixture
def ours(module: ModuleFactory, policy: ScriptedPolicy) -> Rig:
    """Make a machine of our site whose parent is of the other one, with two children of ours."""
    rig = module(policy=policy, trust=OUR_SITE, apart=(PARENT,))
    rig.greet(CHILD, OTHER_CHILD, SIBLING, PARENT)
    rig.measure()
    return rig


def denied(rig: Rig, message: SchedRequest) -> tuple[str, str]:
    """Give code and text of the denial that is the only answer."""
    actions = rig.hear(PARENT, message)
    assert sent(actions, SchedAccept) == ()
    assert sent(actions, SchedRequest) == ()
    (reason,) = told(actions, SchedDeny).reasons
    return reason.code, reason.text


@pytest.mark.parametrize(
    ("trust", "why"),
    [
        (THEIR_SITE, "the root that vouches for origin is not trusted here"),
        (Trust(roots=(OURS,), vouchers=(THEIRS,)), "the root that vouches for origin is not trusted here"),
        (Trust(roots=(THEIRS,), vouchers=(OURS,)), "origin does not trust the root that vouches for this system"),
    ],
)
def test_a_task_whose_stream_could_not_come_is_denied_before_anything_is_granted(
    ours: Rig, trust: Trust, why: str
) -> None:
    assert denied(ours, request(trust=trust)) == ("unreachable", why)
    assert ours.state.executor.claims == {}


@pytest.mark.parametrize(
    "trust",
    [
        OUR_SITE,
        Trust(),
        Trust(roots=(THEIRS, OURS), vouchers=(OURS, THEIRS)),
        Trust(vouchers=(OURS,)),
        Trust(roots=(OURS,)),
    ],
)
def test_a_task_whose_stream_may_come_is_taken(ours: Rig, trust: Trust) -> None:
    assert told(ours.hear(PARENT, request(trust=trust)), SchedAccept).places == 1


def test_a_neighbor_of_another_site_is_reachable_by_the_roots_of_its_link(ours: Rig) -> None:
    assert told(ours.hear(PARENT, request(origin=PARENT, trust=THEIR_SITE)), SchedAccept).places == 1


def test_systems_of_the_own_site_are_not_asked_for_a_task_whose_stream_could_not_go_there(ours: Rig) -> None:
    ours.see(CHILD)
    assert denied(ours, request(trust=THEIR_SITE))[0] == "unreachable"


def test_a_border_without_a_machine_says_that_what_is_behind_it_cannot_be_reached(module: ModuleFactory) -> None:
    border = module(trust=OUR_SITE, apart=(PARENT,))
    border.greet(CHILD, PARENT)
    border.see(CHILD)
    assert denied(border, request(origin=PARENT, trust=THEIR_SITE))[0] == "unreachable"
    assert told(border.hear(PARENT, request(2, origin=PARENT, search=SearchId(b"y" * 16))), SchedRequest).count == 1


def test_a_system_behind_a_link_with_roots_of_its_own_is_asked_all_the_same(module: ModuleFactory) -> None:
    border = module(trust=OUR_SITE, apart=(PARENT, OTHER_CHILD))
    border.greet(CHILD, OTHER_CHILD, PARENT)
    border.see(CHILD)
    border.see(OTHER_CHILD)
    ((to, passed),) = sent(border.hear(PARENT, request(trust=THEIR_SITE)), SchedRequest)
    assert (to, passed.trust) == (OTHER_CHILD, THEIR_SITE)


def test_a_policy_that_refuses_says_so_whatever_can_be_reached(ours: Rig, policy: ScriptedPolicy) -> None:
    policy.verdict = Refused(code=DenyCode.REFUSED_BY_POLICY, rule="require 1 = 0")
    assert denied(ours, request(trust=THEIR_SITE))[0] == "refused_by_policy"


def test_a_machine_that_does_not_meet_the_requirement_says_so_whatever_can_be_reached(ours: Rig) -> None:
    assert denied(ours, request(trust=THEIR_SITE, requirement="$slots > 99"))[0] == "requirement_unmet"


def test_a_search_says_which_roots_its_origin_trusts(ours: Rig) -> None:
    ours.see(SIBLING)
    ((_, ask),) = sent(ours.submit(requirement="$slots > 1", members=9), SchedRequest)
    assert (ask.trust, ask.avoids) == (OUR_SITE, ())


def test_tasks_are_not_promised_to_an_unreachable_requester(module: ModuleFactory, policy: ScriptedPolicy) -> None:
    policy.transfer = parse_policy("migrate { }", file="test.policy").transfer
    rig = module(policy=policy, trust=OUR_SITE, apart=(PARENT,))
    rig.greet(PARENT)
    rig.submit()
    asking = TaskRequest(
        id=MessageId(1),
        search=SearchId(b"w" * 16),
        requester=FAR,
        wanting="",
        count=1,
        hops_left=4,
        asks_left=4,
        remaining_ns=SECOND,
        trust=THEIR_SITE,
    )
    (reason,) = told(rig.hear(PARENT, asking), TaskDeny).reasons
    assert reason.code == "unreachable"
    again = replace(asking, id=MessageId(2), search=SearchId(b"v" * 16), trust=OUR_SITE)
    assert sent(rig.hear(PARENT, again), TaskDeny) == ()


def test_an_executor_that_is_to_be_avoided_denies_and_only_it_knows_who_is_meant(ours: Rig) -> None:
    message = request(trust=OUR_SITE)
    elsewhere = replace(message, avoids=(digest_of(FAR, message.search), digest_of(ME, SearchId(b"x" * 16))))
    assert sent(ours.hear(PARENT, elsewhere), SchedAccept)
    here = request(2, search=SearchId(b"y" * 16), trust=OUR_SITE)
    here = replace(here, avoids=(digest_of(ME, here.search),))
    assert denied(ours, here) == ("unreachable", "origin could not reach this machine a short while ago")


def test_a_grant_of_an_executor_that_is_avoided_counts_as_a_denial(rig: Rig) -> None:
    avoid(rig.state, FAR, rig.now)
    ((to, ask),) = sent(rig.submit(), SchedRequest)
    assert ask.avoids == (digest_of(FAR, ask.search),)
    rig.hear(to, accept(ask.id))
    assert rig.state.origin.claims == {}
    (shape,) = rig.state.origin.shapes.values()
    assert [(reason.module, reason.code) for reason in shape.reasons] == [(FAR, "unreachable")]


def test_an_executor_is_avoided_for_a_while_and_of_many_the_latest(rig: Rig) -> None:
    names = [SystemId(f"far-{number}") for number in range(AVOIDED_LIMIT + 1)]
    for name in names:
        avoid(rig.state, name, rig.now)
    search = SearchId(b"s" * 16)
    assert avoided_in(rig.state, search, rig.now) == tuple(digest_of(name, search) for name in names[1:])
    rig.wait(AVOIDED_NS)
    assert avoided_in(rig.state, search, rig.now) == ()
    assert rig.state.origin.avoided == {}
