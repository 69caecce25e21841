"""The leg that bytes take at each hop: tickets, the server, who may use them, and what happens if it fails."""

from dataclasses import replace

import pytest

from messiahs.core.interface.actions import FetchOutputs, RefuseTransfer, Report, ReportCode, SendControl, SendTasks
from messiahs.core.interface.events import LinkDown, TransferFailed, TransferReceived
from messiahs.core.interface.messages import ClaimEnd, SchedAccept, SchedRequest
from messiahs.core.interface.output_events import OutputsFailed, OutputsHome
from messiahs.core.interface.rows import PassedClaimRow
from messiahs.core.interface.transfer_answers import StraightFailed, TransferFailure
from messiahs.core.invariants import violations
from messiahs.core.model.ids import ClaimId, Epoch, MessageId, SearchId, SystemId, Ticket
from messiahs.core.model.routes import DIALER_LIMIT, Leg, Route
from messiahs.core.model.task_files import Output
from messiahs.core.model.trust import OtherRoots, Trust
from messiahs.core.queries import Access, Here, byte_leg, present_leg
from messiahs.core.relay.byte_route import ANOTHER_SERVER, DETOUR_LIMIT
from messiahs.core.state.ways import FIRST_PAUSE_NS, LONGEST_PAUSE_NS, Detour, pause_after
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    EPOCH,
    FAR,
    LEG,
    ME,
    ORIGIN,
    PARENT,
    STRANGER,
    TICKET,
    Rig,
    accept,
    attempt,
    message_in,
    only,
    remote,
    request,
    sent,
    status,
    statuses,
    transfer,
)

OURS, THEIRS = Trust(roots=(b"o" * 16,), vouchers=(b"o" * 16,)), Trust(roots=(b"t" * 16,), vouchers=(b"t" * 16,))
INTRODUCED = Trust(roots=(b"o" * 16, b"t" * 16), vouchers=(b"o" * 16,))
OWN_KEY, ORIGIN_KEY, OTHER_KEY = b"m" * 16, b"g" * 16, b"x" * 16
HOP_TICKET = Ticket(b"h" * 16)
STRAIGHT = LEG
PATH = Leg(system=CHILD, address="child:1", ticket=HOP_TICKET)


def offered(ask: MessageId, **said: object) -> SchedAccept:
    """Return the accept of a machine behind the child, which passes bytes on."""
    given = {"hop_address": "child:1", "hop_ticket": HOP_TICKET, "trust": OURS, **said}
    return replace(accept(ask), **given)  # type: ignore[arg-type]


def hop(module: ModuleFactory, *, apart: tuple[SystemId, ...] = ()) -> Rig:
    rig = module(trust=OURS, apart=apart, key=OWN_KEY)
    rig.greet(CHILD, PARENT)
    rig.see(CHILD)
    return rig


def passed(
    rig: Rig, *, trust: Trust = OURS, theirs: Trust = OURS, number: int = 1
) -> tuple[SchedAccept, PassedClaimRow]:
    """Let a claim be granted through this module, and return the accept that it sends on, and its row."""
    claim = ClaimId(FAR, Epoch(3), number)
    search = SearchId(number.to_bytes(16))
    wanted = request(number, search=search, trust=trust, dialers=(ORIGIN_KEY, OWN_KEY))
    ((_, ask),) = sent(rig.hear(PARENT, wanted), SchedRequest)
    ((to, message),) = sent(rig.hear(CHILD, replace(offered(ask.id, trust=theirs), claim=claim)), SchedAccept)
    assert to == PARENT
    return message, rig.state.hop.passed[claim]


def bring(rig: Rig, row: PassedClaimRow, sender: SystemId = PARENT, key: bytes = b"", /) -> TransferReceived:
    assert row.ticket is not None
    return TransferReceived(sender=sender, key=key, message=transfer(row.id, row.ticket, remote()))


def test_a_hop_makes_a_ticket_of_its_own_and_leaves_the_server_as_it_is(module: ModuleFactory) -> None:
    message, row = passed(hop(module))
    assert row.ticket not in (None, TICKET, HOP_TICKET)
    assert (row.dialers, row.origin) == ((ORIGIN_KEY, OWN_KEY), ORIGIN)
    assert (message.server, message.address, message.ticket, message.trust) == (None, "far:1", TICKET, OURS)
    assert (message.hop_address, message.hop_ticket) == ("me:1", row.ticket)


@pytest.mark.parametrize("apart", [(PARENT,), (CHILD,)])
def test_at_a_boundary_between_sites_the_hop_takes_the_place_of_the_server(
    module: ModuleFactory, apart: tuple[SystemId, ...]
) -> None:
    message, row = passed(hop(module, apart=apart), trust=THEIRS)
    assert (message.server, message.address, message.ticket) == (ME, "me:1", row.ticket)
    assert (message.hop_address, message.hop_ticket, message.trust) == (None, None, OURS)


def test_the_server_stays_if_both_sites_were_introduced_to_each_other(module: ModuleFactory) -> None:
    introduced = Trust(roots=(b"t" * 16, b"o" * 16), vouchers=(b"t" * 16,))
    message, _ = passed(hop(module, apart=(PARENT,)), trust=introduced, theirs=INTRODUCED)
    assert (message.server, message.ticket) == (None, TICKET)


def test_the_server_does_not_stay_if_one_site_alone_trusts_the_other_or_says_nothing(module: ModuleFactory) -> None:
    for number, theirs in enumerate((THEIRS, Trust()), start=1):
        message, _ = passed(hop(module, apart=(PARENT,)), trust=theirs, theirs=INTRODUCED, number=number)
        assert message.server == ME


@pytest.mark.parametrize(
    ("apart", "before", "after"),
    [
        ((), (ORIGIN_KEY,), (ORIGIN_KEY,)),
        ((PARENT,), (ORIGIN_KEY,), (ORIGIN_KEY, OWN_KEY)),
        ((CHILD,), (ORIGIN_KEY,), (ORIGIN_KEY, OWN_KEY)),
        ((CHILD,), (), ()),
        ((CHILD,), (OTHER_KEY,) * DIALER_LIMIT, (OTHER_KEY,) * DIALER_LIMIT),
    ],
)
def test_a_hop_at_a_boundary_adds_its_key_to_those_that_may_come_straight(
    module: ModuleFactory, apart: tuple[SystemId, ...], before: tuple[bytes, ...], after: tuple[bytes, ...]
) -> None:
    rig = hop(module, apart=apart)
    assert message_in(rig.hear(PARENT, request(dialers=before)), SchedRequest).dialers == after


def test_an_origin_puts_its_key_into_its_requests_and_an_executor_into_its_row(module: ModuleFactory) -> None:
    rig = hop(module)
    assert message_in(rig.submit(), SchedRequest).dialers == (OWN_KEY,)
    rig.measure()
    rig.hear(PARENT, request(dialers=(ORIGIN_KEY,)))
    (granted,) = rig.state.executor.claims.values()
    assert granted.row.dialers == (ORIGIN_KEY,)


@pytest.mark.parametrize(
    ("peer", "key", "is_allowed"),
    [
        (PARENT, OTHER_KEY, True),
        (ORIGIN, ORIGIN_KEY, True),
        (STRANGER, ORIGIN_KEY, True),
        (ORIGIN, OTHER_KEY, False),
        (CHILD, OTHER_KEY, False),
    ],
)
def test_a_hop_and_an_executor_serve_the_neighbor_toward_the_origin_and_the_keys_of_the_request(
    module: ModuleFactory, peer: SystemId, key: bytes, *, is_allowed: bool
) -> None:
    rig = hop(module)
    _, row = passed(rig)
    assert row.ticket is not None
    leg = byte_leg(rig.state, peer, key=key, claim=row.id, ticket=row.ticket)
    assert leg == (STRAIGHT if is_allowed else Access.DENIED)
    assert byte_leg(rig.state, peer, key=key, claim=row.id, ticket=TICKET) is Access.DENIED
    rig.measure()
    here = message_in(rig.hear(PARENT, request(2, search=SearchId(b"y" * 16), dialers=(ORIGIN_KEY,))), SchedAccept)
    found = byte_leg(rig.state, peer, key=key, claim=here.claim, ticket=here.ticket)
    assert isinstance(found, Here) if is_allowed else found is Access.DENIED


def test_bytes_of_a_claim_from_an_earlier_release_do_not_pass_through(rig: Rig) -> None:
    rig.state.hop.passed[CLAIM] = PassedClaimRow(
        id=CLAIM, toward_origin=PARENT, toward_executor=CHILD, tdv=request().tdv, slots=1
    )
    assert byte_leg(rig.state, PARENT, key=b"", claim=CLAIM, ticket=Ticket(b"")) is Access.DENIED
    actions = rig.handle(TransferReceived(sender=PARENT, message=transfer(CLAIM, TICKET, remote())))
    assert only(actions, SendTasks) == ()


def test_tasks_go_on_with_the_ticket_of_the_next_leg(module: ModuleFactory) -> None:
    rig = hop(module)
    _, row = passed(rig)
    event = bring(rig, row)
    message = replace(event.message, ticket=TICKET)
    assert rig.handle(event) == (SendTasks(to=FAR, address="far:1", message=message),)


def test_a_hop_that_is_no_dialer_takes_the_path_although_it_could_reach_the_server(module: ModuleFactory) -> None:
    rig = hop(module)
    ((_, ask),) = sent(rig.hear(PARENT, request(dialers=(ORIGIN_KEY,))), SchedRequest)
    message = message_in(rig.hear(CHILD, offered(ask.id)), SchedAccept)
    assert (message.address, message.ticket) == ("far:1", TICKET)
    assert rig.state.hop.passed[CLAIM].route == Route(straight=PATH, path=PATH)


def test_tasks_from_a_system_without_a_right_are_refused_to_it(module: ModuleFactory) -> None:
    rig = hop(module)
    _, row = passed(rig)
    report, answer = rig.handle(bring(rig, row, STRANGER, OTHER_KEY))
    assert isinstance(report, Report)
    assert report.code is ReportCode.WRONG_TICKET
    assert isinstance(answer, RefuseTransfer)
    assert (answer.to, answer.key, answer.kind) == (STRANGER, OTHER_KEY, TransferFailure.DENIED)


@pytest.mark.parametrize(
    ("kind", "pause_ns"), [(TransferFailure.BROKEN, FIRST_PAUSE_NS), (TransferFailure.UNTRUSTED, LONGEST_PAUSE_NS)]
)
def test_a_straight_leg_that_fails_is_given_up_for_its_claim_and_for_new_ones_of_its_server(
    module: ModuleFactory, kind: TransferFailure, pause_ns: int
) -> None:
    rig = hop(module)
    _, row = passed(rig)
    rig.handle(bring(rig, row, STRANGER, ORIGIN_KEY))
    failed = TransferFailed(claim=row.id, text="far:1: no route", public="no route", kind=kind, to=FAR)
    (answer,) = only(rig.handle(failed), RefuseTransfer)
    assert (answer.to, answer.key, answer.kind) == (STRANGER, ORIGIN_KEY, TransferFailure.BEYOND)
    assert answer.text == f"me cannot reach {FAR}: no route"
    message = replace(bring(rig, row).message, ticket=HOP_TICKET)
    assert only(rig.handle(bring(rig, row)), SendTasks) == (SendTasks(to=CHILD, address="child:1", message=message),)
    _, later = passed(rig, number=2)
    assert only(rig.handle(bring(rig, later)), SendTasks)[0].to == CHILD
    rig.wait(pause_ns - 1)
    rig.see(CHILD)
    _, early = passed(rig, number=3)
    assert only(rig.handle(bring(rig, early)), SendTasks)[0].to == CHILD
    rig.wait(1)
    _, last = passed(rig, number=4)
    assert only(rig.handle(bring(rig, last)), SendTasks)[0].to == FAR


def test_what_is_refused_at_the_end_or_fails_farther_on_does_not_condemn_the_straight_leg(
    module: ModuleFactory,
) -> None:
    rig = hop(module)
    _, row = passed(rig)
    rig.handle(bring(rig, row))
    for kind in (TransferFailure.REFUSED, TransferFailure.BEYOND):
        failed = TransferFailed(claim=row.id, text="far: no room", kind=kind, to=FAR)
        (answer,) = only(rig.handle(failed), RefuseTransfer)
        assert (answer.kind, answer.text) == (kind, "far: no room")
    assert only(rig.handle(bring(rig, row)), SendTasks)[0].to == FAR


def test_a_failure_of_the_path_is_told_to_who_brought_the_tasks_and_changes_no_way(module: ModuleFactory) -> None:
    rig = hop(module)
    _, row = passed(rig)
    rig.handle(StraightFailed(claim=row.id, text="no root in common"))
    rig.handle(bring(rig, row))
    failed = TransferFailed(claim=row.id, text="reset", kind=TransferFailure.UNTRUSTED, to=CHILD)
    (answer,) = only(rig.handle(failed), RefuseTransfer)
    assert answer.kind is TransferFailure.BEYOND
    assert only(rig.handle(bring(rig, row)), SendTasks)[0].to == CHILD


def test_a_server_that_does_not_trust_this_system_is_not_dialed_at_all(module: ModuleFactory) -> None:
    rig = hop(module)
    _, row = passed(rig, theirs=THEIRS)
    assert only(rig.handle(bring(rig, row)), SendTasks)[0].to == CHILD


@pytest.mark.parametrize(("names", "to"), [((FAR,), FAR), (("gate",), CHILD)])
def test_a_server_of_an_introduced_site_is_dialed_only_if_the_introduction_names_it(
    module: ModuleFactory, names: tuple[str, ...], to: SystemId
) -> None:
    rig = hop(module)
    other = OtherRoots(roots=THEIRS.roots, names=names, is_introduction=True)
    rig.state.identity = replace(rig.state.identity, trust=INTRODUCED, other_sites=(other,))
    _, row = passed(rig, theirs=replace(INTRODUCED, vouchers=THEIRS.vouchers))
    assert only(rig.handle(bring(rig, row)), SendTasks)[0].to == to


@pytest.mark.parametrize("vouchers", [OURS.vouchers, THEIRS.vouchers])
def test_a_server_of_this_site_is_dialed_whichever_root_vouches_for_it(
    module: ModuleFactory, vouchers: tuple[bytes, ...]
) -> None:
    rig = hop(module)
    trust, other = INTRODUCED, OtherRoots(roots=(b"w" * 16,), names=("gate",))
    rig.state.identity = replace(rig.state.identity, trust=trust, other_sites=(other,))
    _, row = passed(rig, theirs=replace(trust, vouchers=vouchers))
    assert only(rig.handle(bring(rig, row)), SendTasks)[0].to == FAR


def test_a_server_with_the_name_of_this_system_is_another_one(module: ModuleFactory) -> None:
    rig = hop(module)
    ((_, ask),) = sent(rig.hear(PARENT, request(dialers=(OWN_KEY,))), SchedRequest)
    claim = ClaimId(ME, Epoch(77), 1)
    message = message_in(rig.hear(CHILD, replace(offered(ask.id), claim=claim)), SchedAccept)
    assert message.claim == claim
    assert only(rig.handle(bring(rig, rig.state.hop.passed[claim])), SendTasks)[0].to == CHILD


def test_a_claim_with_the_name_of_this_system_and_no_way_is_ended(module: ModuleFactory) -> None:
    rig = hop(module)
    ((_, ask),) = sent(rig.hear(PARENT, request()), SchedRequest)
    claim = ClaimId(ME, Epoch(77), 1)
    end = SendControl(to=CHILD, message=ClaimEnd(claim=claim))
    assert rig.hear(CHILD, replace(accept(ask.id), claim=claim)) == (end,)
    own = rig.hear(CHILD, replace(accept(ask.id), claim=ClaimId(ME, EPOCH, 1)))
    assert only(own, Report)[0].code is ReportCode.OUT_OF_RANGE


def test_the_end_of_a_claim_forgets_its_ways_and_detours_are_bounded(module: ModuleFactory) -> None:
    rig = hop(module)
    for number in range(1, DETOUR_LIMIT + 3):
        _, row = passed(rig, number=number)
        server = SystemId(f"far{number}")
        assert row.route is not None
        route = replace(row.route, straight=replace(row.route.straight, system=server))
        rig.state.hop.passed[row.id] = replace(row, route=route)
        rig.handle(bring(rig, row))
        rig.handle(StraightFailed(claim=row.id, text="no route"))
    assert len(rig.state.ways.detours) == DETOUR_LIMIT
    for number in range(1, DETOUR_LIMIT + 3):
        rig.hear(PARENT, ClaimEnd(claim=ClaimId(FAR, Epoch(3), number)))
    assert (rig.state.ways.given_up, rig.state.ways.bringers) == ({}, {})


def test_whatever_is_remembered_about_an_unknown_claim_violates_an_invariant(rig: Rig) -> None:
    assert violations(rig.state) == ()
    rig.state.ways.given_up[CLAIM] = "it does not answer"
    (violation,) = violations(rig.state)
    assert "neither held nor passed on" in violation
    rig.state.ways.given_up.clear()


def test_an_origin_sends_on_along_the_path_at_once_and_the_history_says_why(module: ModuleFactory) -> None:
    rig = hop(module)
    ask = message_in(rig.submit(), SchedRequest)
    (straight,) = only(rig.hear(CHILD, offered(ask.id)), SendTasks)
    assert (straight.to, straight.message.ticket) == (FAR, TICKET)
    failed = TransferFailed(claim=CLAIM, text="connection refused", to=FAR)
    (again,) = only(rig.handle(failed), SendTasks)
    assert (again.to, again.address, again.message.ticket) == (CHILD, "child:1", HOP_TICKET)
    assert again.message.tasks == straight.message.tasks
    (row,) = rig.state.origin.tasks.values()
    assert [(entry.event, entry.module, entry.text) for entry in row.history] == [
        ("bound", FAR, ""),
        ("route", CHILD, f"through {CHILD}; {FAR} is not reached straight: connection refused"),
    ]
    assert present_leg(rig.state, CLAIM) == PATH
    # The same stream fails once more, for tasks that have been sent again since.
    assert rig.handle(failed) == ()


def test_the_history_says_that_a_hop_stands_for_the_executor(module: ModuleFactory) -> None:
    rig = hop(module)
    ask = message_in(rig.submit(), SchedRequest)
    readdressed = replace(accept(ask.id), server=CHILD, address="child:1", ticket=HOP_TICKET, trust=OURS)
    (sends,) = only(rig.hear(CHILD, readdressed), SendTasks)
    assert (sends.to, sends.message.ticket) == (CHILD, HOP_TICKET)
    (row,) = rig.state.origin.tasks.values()
    assert row.history[-1].text == f"through {CHILD}; {FAR} is not reached straight: {ANOTHER_SERVER}"


def test_outputs_that_cannot_be_read_straight_are_read_along_the_path_at_once(module: ModuleFactory) -> None:
    rig = hop(module)
    ask = message_in(rig.submit(), SchedRequest)
    rig.hear(CHILD, offered(ask.id))
    ended = status(attempt(), outputs=(Output(name="stdout", size_bytes=5),))
    (fetch,) = only(rig.hear(CHILD, statuses(ended)), FetchOutputs)
    assert fetch.leg == STRAIGHT
    gone = OutputsFailed(attempt=attempt(), leg=STRAIGHT, text="nothing is left there", is_gone=True)
    (again,) = only(rig.handle(gone), FetchOutputs)
    assert again == replace(fetch, leg=PATH)
    # What is gone there may be on the path.
    assert rig.handle(gone) == ()
    (row,) = rig.state.origin.tasks.values()
    assert row.claim == CLAIM
    rig.handle(replace(gone, leg=PATH))
    (row,) = rig.state.origin.tasks.values()
    assert row.claim is None


def test_outputs_that_are_gone_on_a_leg_given_up_meanwhile_are_read_along_the_path(module: ModuleFactory) -> None:
    rig = hop(module)
    ask = message_in(rig.submit(), SchedRequest)
    rig.hear(CHILD, offered(ask.id))
    ended = status(attempt(), outputs=(Output(name="stdout", size_bytes=5),))
    (fetch,) = only(rig.hear(CHILD, statuses(ended)), FetchOutputs)
    rig.handle(StraightFailed(claim=CLAIM, text="connection refused"))
    gone = OutputsFailed(attempt=attempt(), leg=STRAIGHT, text="nothing is left there", is_gone=True)
    assert rig.handle(gone) == (replace(fetch, leg=PATH),)
    (row,) = rig.state.origin.tasks.values()
    assert row.claim == CLAIM
    rig.handle(OutputsHome(attempt=attempt()))
    assert not rig.state.origin.tasks


def test_a_full_disk_at_home_is_not_held_against_the_straight_leg(module: ModuleFactory) -> None:
    rig = hop(module)
    ask = message_in(rig.submit(), SchedRequest)
    rig.hear(CHILD, offered(ask.id))
    rig.hear(CHILD, statuses(status(attempt(), outputs=(Output(name="stdout", size_bytes=5),))))
    rig.handle(OutputsFailed(attempt=attempt(), leg=STRAIGHT, text="no room", is_gone=False, is_full=True))
    assert present_leg(rig.state, CLAIM) == STRAIGHT


def test_new_claims_go_straight_to_a_server_whose_link_is_up_again(module: ModuleFactory) -> None:
    rig = hop(module)
    detour = Detour(pause=pause_after(None, is_final=True, now=rig.now), text="Stream removed")
    rig.state.ways.detours |= {CHILD: detour, FAR: detour}
    rig.handle(LinkDown(neighbor=CHILD))
    assert CHILD in rig.state.ways.detours
    rig.greet(CHILD)
    assert rig.state.ways.detours == {FAR: detour}
