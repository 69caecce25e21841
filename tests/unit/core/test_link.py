"""Connections: hello, what is repeated after one, and what a link that goes down takes with it."""

from dataclasses import replace

import pytest

from messiahs.core import queries
from messiahs.core.interface.actions import Decision, DropLink, Report, ReportCode, SendControl, SendVector, Store
from messiahs.core.interface.events import ControlReceived, LinkDown, LinkRefused, LinkUp, VectorReceived
from messiahs.core.interface.hello import Hello
from messiahs.core.interface.messages import (
    DenyCode,
    Reason,
    SchedAccept,
    SchedRequest,
    StatusVector,
    SystemStatusQuery,
    TaskStatus,
    TaskStatusQuery,
    VectorKind,
)
from messiahs.core.vectors.vectors import EMPTY
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import (
    CHILD,
    CLAIM,
    EPOCH,
    ME,
    PARENT,
    SIBLING,
    STRANGER,
    Rig,
    accept,
    hello,
    message_in,
    only,
    reported,
    request,
    sent,
    tdv,
)


def test_a_new_connection_begins_with_hello_and_nothing_else(module: ModuleFactory) -> None:
    rig = module()
    said = Hello(system=ME, epoch=EPOCH, wire_versions=(1,), release="")
    assert rig.handle(LinkUp(neighbor=CHILD)) == (SendControl(to=CHILD, message=said),)
    assert only(rig.wait(10_000_000_000), SendVector) == ()


def test_a_connection_with_a_stranger_is_refused(module: ModuleFactory) -> None:
    rig = module()
    (drop,) = rig.handle(LinkUp(neighbor=STRANGER))
    assert isinstance(drop, DropLink)
    assert rig.state.updates.links == {}


def test_a_hello_with_a_common_version_opens_the_link_and_the_neighbor_gets_its_vectors(
    module: ModuleFactory,
) -> None:
    rig = module()
    rig.handle(LinkUp(neighbor=SIBLING))
    opened, remembered, vector = rig.hear(SIBLING, hello(SIBLING, versions=(9, 1)))
    assert isinstance(remembered, Store)
    assert opened == Decision(what="link_up", task=SIBLING, text="release 1")
    assert isinstance(vector, SendVector)
    assert (vector.to, vector.message.kind) == (SIBLING, VectorKind.FOR_SIBLINGS)


@pytest.mark.parametrize(
    ("message", "code"),
    [(hello(CHILD, versions=(2, 3)), "no_common_version"), (hello(CHILD, versions=()), "no_common_version"),
     (hello(SIBLING), "not_its_name")],
)  # fmt: skip
def test_a_hello_that_will_not_do_is_reported_and_the_link_refused(
    module: ModuleFactory, message: Hello, code: str
) -> None:
    rig = module()
    rig.handle(LinkUp(neighbor=CHILD))
    report, drop = rig.hear(CHILD, message)
    assert isinstance(report, Report)
    assert (report.neighbor, report.code) == (CHILD, code)
    assert drop == DropLink(neighbor=CHILD, text=report.text)
    assert not rig.state.updates.links[CHILD]


@pytest.mark.parametrize("message", [SystemStatusQuery(), request()])
def test_nothing_is_listened_to_before_hello(module: ModuleFactory, message: SystemStatusQuery | SchedRequest) -> None:
    rig = module()
    rig.measure()
    assert reported(rig.hear(CHILD, message)) == "no_link"
    rig.handle(LinkUp(neighbor=CHILD))
    assert reported(rig.hear(CHILD, message)) == "not_a_neighbor"
    # Vectors come over another stream.
    vector = StatusVector(kind=VectorKind.FOR_PARENTS, vector=EMPTY, period_ns=1, age_ns=0)
    assert reported(rig.handle(VectorReceived(sender=CHILD, message=vector))) == "no_link"
    assert rig.state.updates.views == {}


def test_what_an_honest_neighbor_sent_before_its_link_ended_is_no_violation(rig: Rig) -> None:
    rig.handle(LinkDown(neighbor=CHILD))
    (report,) = only(rig.hear(CHILD, SystemStatusQuery()), Report)
    assert report.code is ReportCode.NO_LINK
    assert report.text == "SystemStatusQuery is dropped: the link over which it came has ended"


def test_a_second_hello_says_nothing_new(rig: Rig) -> None:
    assert rig.hear(CHILD, hello(CHILD)) == ()


def test_a_connection_that_replaces_another_starts_from_the_beginning(rig: Rig) -> None:
    rig.handle(LinkUp(neighbor=CHILD))
    assert (CHILD, VectorKind.FOR_PARENTS) not in rig.state.updates.views
    assert reported(rig.hear(CHILD, SystemStatusQuery())) == "not_a_neighbor"


def test_the_executor_renews_its_claims_over_a_new_connection(rig: Rig) -> None:
    rig.measure()
    claim = message_in(rig.hear(PARENT, request()), SchedAccept).claim
    rig.handle(LinkDown(neighbor=PARENT))
    renewal = message_in(rig.greet(PARENT), TaskStatus)
    assert (renewal.claim, renewal.renewal) == (claim, 1)
    assert sent(rig.greet(SIBLING), TaskStatus) == ()


def test_the_origin_asks_for_everything_over_a_new_connection(rig: Rig) -> None:
    ((_, ask),) = sent(rig.submit(), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    rig.handle(LinkDown(neighbor=CHILD))
    assert message_in(rig.greet(CHILD), TaskStatusQuery) == TaskStatusQuery(claim=CLAIM, attempts=())


def test_a_hop_asks_for_everything_when_either_of_its_links_is_new(rig: Rig) -> None:
    ((_, ask),) = sent(rig.hear(PARENT, request()), SchedRequest)
    rig.hear(CHILD, accept(ask.id))
    asked = ((CHILD, TaskStatusQuery(claim=CLAIM, attempts=())),)
    for lost in (PARENT, CHILD):
        rig.handle(LinkDown(neighbor=lost))
        assert sent(rig.greet(lost), TaskStatusQuery) == asked
    rig.handle(LinkDown(neighbor=CHILD))
    rig.handle(LinkDown(neighbor=PARENT))
    assert sent(rig.greet(PARENT), TaskStatusQuery) == ()
    assert sent(rig.greet(CHILD), TaskStatusQuery) == asked


def test_a_link_that_went_down_takes_its_views_out_of_every_sum(rig: Rig) -> None:
    rig.handle(LinkDown(neighbor=CHILD))
    vectors = [action.message for action in only(rig.wait(100_000_000), SendVector) if action.to == PARENT]
    assert [vector.vector.machines for vector in vectors] == [0]


def test_the_loss_of_an_unknown_link_changes_nothing(rig: Rig) -> None:
    assert rig.handle(LinkDown(neighbor=STRANGER)) == ()
    assert rig.handle(ControlReceived(sender=CHILD, message=hello(CHILD))) == ()


def test_why_a_neighbor_has_no_link_is_known_until_it_has_one(module: ModuleFactory) -> None:
    rig = module()
    assert "no connection since this module started" in queries.why_unlinked(rig.state)[CHILD]
    for text in ("it does not answer", "no root signed it\n"):
        assert rig.handle(LinkRefused(neighbor=CHILD, text=text)) == ()
    assert queries.why_unlinked(rig.state)[CHILD] == r"no root signed it\n"
    rig.handle(LinkUp(neighbor=CHILD))
    assert queries.why_unlinked(rig.state)[CHILD] == r"no root signed it\n"
    rig.hear(CHILD, hello(CHILD))
    assert CHILD not in queries.why_unlinked(rig.state)
    # Somebody who poses as a neighbor that has a link says nothing about that link.
    rig.handle(LinkRefused(neighbor=CHILD, text="an impostor"))
    assert CHILD not in queries.why_unlinked(rig.state)
    rig.handle(LinkDown(neighbor=CHILD, text="x" * 600))
    assert queries.why_unlinked(rig.state)[CHILD] == "x" * 512


def test_only_a_neighbor_of_another_site_is_said_to_need_the_roots_of_both(module: ModuleFactory) -> None:
    rig = module()
    assert "both sites" not in queries.why_unlinked(rig.state)[CHILD]
    rig.state.identity = replace(rig.state.identity, apart=(CHILD,))
    assert "do both sites record each other's root.pem?" in queries.why_unlinked(rig.state)[CHILD]
    assert "both sites" not in queries.why_unlinked(rig.state)[PARENT]


def test_nothing_is_noted_of_a_stranger(module: ModuleFactory) -> None:
    rig = module()
    rig.handle(LinkRefused(neighbor=STRANGER, text="no root signed it"))
    assert rig.state.updates.unlinked == {}
    assert STRANGER not in queries.why_unlinked(rig.state)


def test_a_waiting_task_names_the_neighbors_without_a_link_at_once(module: ModuleFactory) -> None:
    rig = module()
    assert queries.why_waiting(rig.state, tdv(), requirement="") == ()
    rig.submit()
    rig.handle(LinkRefused(neighbor=CHILD, text="no root signed it"))
    missing = Reason(module=CHILD, code=DenyCode.UNREACHABLE, text="no root signed it")
    assert missing in queries.why_waiting(rig.state, tdv(), requirement="")
    assert queries.why_waiting(rig.state, tdv(), requirement="$cpus > 1") == ()
    for event in (LinkUp(neighbor=CHILD), ControlReceived(sender=CHILD, message=hello(CHILD))):
        rig.handle(event)
    assert missing not in queries.why_waiting(rig.state, tdv(), requirement="")
