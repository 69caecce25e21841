"""Two sites with a root each place tasks with each other; an executor that no way reaches is avoided."""

from dataclasses import replace

import pytest

from messiahs.core.interface.events import LinkDown, TransferReceived
from messiahs.core.interface.messages import (
    ClaimEnd,
    DenyCode,
    Reason,
    SchedAccept,
    SchedDeny,
    SchedRequest,
    TaskAccept,
    TaskRequest,
)
from messiahs.core.interface.policies import Refused
from messiahs.core.model.ids import MessageId, SearchId, SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Duration
from messiahs.core.model.places import Machine, digest_of
from messiahs.core.model.trust import Trust
from messiahs.core.relay.reachability import AVOIDED_LIMIT, avoid, avoiding
from messiahs.core.state.ways import FIRST_PAUSE_NS, LONGEST_PAUSE_NS
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    EPOCH,
    FAR,
    ME,
    ORIGIN,
    OTHER_CHILD,
    PARENT,
    SIBLING,
    Rig,
    accept,
    deny,
    message_in,
    remote,
    request,
    sent,
    transfer,
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


def avoiding_this(message: SchedRequest) -> SchedRequest:
    """Return a request of an origin that could not reach this machine."""
    return replace(message, avoids=(digest_of(ME.encode(), message.search),))


def denied(rig: Rig, message: SchedRequest) -> tuple[str, str]:
    """Give code and text of the denial that is the only answer."""
    actions = rig.hear(PARENT, message)
    assert sent(actions, SchedAccept) == ()
    assert sent(actions, SchedRequest) == ()
    (reason,) = message_in(actions, SchedDeny).reasons
    return reason.code, reason.text


def test_a_task_of_another_site_is_taken_because_its_bytes_come_along_the_path(ours: Rig) -> None:
    assert message_in(ours.hear(PARENT, request(trust=THEIR_SITE)), SchedAccept).trust == OUR_SITE


def test_systems_of_the_own_site_are_asked_for_a_task_of_another_site(module: ModuleFactory) -> None:
    border = module(trust=OUR_SITE, apart=(PARENT,))
    border.greet(CHILD, PARENT)
    border.see(CHILD)
    ((to, passed),) = sent(border.hear(PARENT, request(trust=THEIR_SITE)), SchedRequest)
    assert (to, passed.trust) == (CHILD, THEIR_SITE)


def test_a_policy_that_refuses_says_so_although_the_origin_avoids_the_machine(
    ours: Rig, policy: ScriptedPolicy
) -> None:
    policy.verdict = Refused(code=DenyCode.REFUSED_BY_POLICY, rule="require 1 = 0")
    assert denied(ours, avoiding_this(request()))[0] == "refused_by_policy"


def test_an_avoided_machine_that_does_not_meet_the_requirement_says_so(ours: Rig) -> None:
    assert denied(ours, avoiding_this(request(requirement="$slots > 99")))[0] == "requirement_unmet"


def test_a_search_says_which_roots_its_origin_trusts(ours: Rig) -> None:
    ours.see(SIBLING)
    ((_, ask),) = sent(ours.submit(requirement="$slots > 1", members=9), SchedRequest)
    assert (ask.trust, ask.avoids) == (OUR_SITE, ())


def test_tasks_are_promised_to_a_requester_of_another_site(module: ModuleFactory, policy: ScriptedPolicy) -> None:
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
    assert message_in(rig.hear(PARENT, asking), TaskAccept).count == 1


def test_an_executor_that_is_to_be_avoided_denies_and_only_it_knows_who_is_meant(ours: Rig) -> None:
    message = request(trust=OUR_SITE)
    elsewhere = replace(
        message, avoids=(digest_of(FAR.encode(), message.search), digest_of(ME.encode(), SearchId(b"x" * 16)))
    )
    assert sent(ours.hear(PARENT, elsewhere), SchedAccept)
    here = avoiding_this(request(2, search=SearchId(b"y" * 16), trust=OUR_SITE))
    text = "origin could not reach this machine a short while ago, or got no results of it"
    assert denied(ours, here) == ("unreachable", text)


def test_an_executor_that_has_tasks_of_an_origin_says_that_it_gets_more_after_its_results(ours: Rig) -> None:
    given = message_in(ours.hear(PARENT, request(trust=OUR_SITE)), SchedAccept)
    ours.handle(TransferReceived(sender=PARENT, message=transfer(given.claim, given.ticket, remote())))
    here = avoiding_this(request(2, search=SearchId(b"y" * 16), trust=OUR_SITE))
    text = "origin has tasks here, and sends more once one of them has delivered its result"
    assert denied(ours, here) == ("unreachable", text)


def test_a_grant_of_an_executor_that_is_avoided_is_given_back_and_the_search_goes_on(rig: Rig) -> None:
    avoid(rig.state, Machine(FAR, EPOCH), via=CHILD, is_final=True, now=rig.now)
    ((to, ask),) = sent(rig.submit(), SchedRequest)
    assert ask.avoids == (digest_of(FAR.encode(), ask.search),)
    actions = rig.hear(to, accept(ask.id))
    assert rig.state.origin.claims == {}
    assert (to, ClaimEnd(claim=CLAIM)) in sent(actions, ClaimEnd)
    while asks := sent(actions, SchedRequest):
        ((other, again),) = asks
        actions = rig.hear(other, deny(again.id))
    (shape,) = rig.state.origin.shapes.values()
    texts = [each.text for reason in shape.reasons for each in reason.hops if each.code is DenyCode.UNREACHABLE]
    assert texts == ["it was not reached, or only lost tasks, a short while ago"]


def test_an_executor_is_avoided_for_a_while_and_of_many_the_latest(rig: Rig) -> None:
    names = [SystemId(f"far-{number}") for number in range(AVOIDED_LIMIT + 1)]
    for name in names:
        avoid(rig.state, Machine(name, EPOCH), via=CHILD, is_final=True, now=rig.now)
    search = SearchId(b"s" * 16)

    def avoided() -> tuple[bytes, ...]:
        return avoiding(rig.state, request(1, search=search), to=CHILD, now=rig.now).avoids

    assert avoided() == tuple(digest_of(name.encode(), search) for name in names[1:])
    rig.wait(LONGEST_PAUSE_NS)
    assert avoided() == ()
    rig.wait(LONGEST_PAUSE_NS)
    assert avoided() == ()
    assert rig.state.origin.avoided == {}


def test_a_neighbor_that_gives_its_machine_another_name_makes_nobody_else_avoided(rig: Rig) -> None:
    avoid(rig.state, Machine(FAR, EPOCH), via=PARENT, is_final=True, now=rig.now)
    ((to, ask),) = sent(rig.submit(), SchedRequest)
    assert (to, ask.avoids) == (CHILD, ())
    rig.hear(to, accept(ask.id))
    assert [claim.row.id.executor for claim in rig.state.origin.claims.values()] == [FAR]


def test_the_pause_of_an_executor_that_does_not_answer_doubles_and_is_short_again_after_a_good_time(rig: Rig) -> None:
    def length_ns() -> int:
        avoid(rig.state, Machine(FAR, EPOCH), via=CHILD, is_final=False, now=rig.now)
        # The same failure, reported twice.
        avoid(rig.state, Machine(FAR, EPOCH), via=CHILD, is_final=False, now=rig.now)
        return rig.state.origin.avoided[CHILD, FAR.encode()].pause.until - rig.now

    lengths = []
    for _ in range(7):
        lengths.append(length_ns())
        rig.wait(lengths[-1])
    assert [each // SECOND for each in lengths] == [10, 20, 40, 80, 160, 300, 300]
    rig.wait(LONGEST_PAUSE_NS)
    assert length_ns() == FIRST_PAUSE_NS


def test_an_executor_that_did_not_answer_is_asked_again_when_the_link_toward_it_is_up_again(rig: Rig) -> None:
    untrusted = SystemId("untrusted")
    for name, via, is_final in ((FAR, CHILD, False), (ORIGIN, PARENT, False), (untrusted, CHILD, True)):
        avoid(rig.state, Machine(name, EPOCH), via=via, is_final=is_final, now=rig.now)
    rig.handle(LinkDown(neighbor=CHILD))
    rig.greet(CHILD)
    assert tuple(rig.state.origin.avoided) == ((PARENT, ORIGIN.encode()), (CHILD, untrusted.encode()))


def test_what_waits_for_an_avoided_executor_is_searched_for_when_its_pause_ends(rig: Rig) -> None:
    asks = sent(rig.submit(), SchedRequest)
    (shape,) = rig.state.origin.shapes.values()
    shape.delay_ns = Duration(MINUTE)
    while asks:
        ((to, ask),) = asks
        asks = sent(
            rig.hear(to, replace(deny(ask.id), reasons=(Reason(module=FAR, code=DenyCode.UNREACHABLE),))), SchedRequest
        )
    avoid(rig.state, Machine(FAR, EPOCH), via=CHILD, is_final=False, now=rig.now)
    rig.wait(FIRST_PAUSE_NS // 2)
    rig.see(CHILD)
    assert sent(rig.wait(FIRST_PAUSE_NS // 2 - 1), SchedRequest) == ()
    ((_, again),) = sent(rig.wait(1), SchedRequest)
    assert again.avoids == ()
