"""What one side of a border may ask about the other: only what it is shown (MESSIAHS 4, 5.4)."""

import pytest

from messiahs.core.interface.messages import DenyCode, SchedDeny, SchedRequest, TaskDeny, TaskRequest
from messiahs.core.interface.parts import Policy
from messiahs.core.model.ids import MessageId, SearchId, SystemId
from messiahs.core.model.instants import SECOND
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.border.gate import HOME, gate
from tests.unit.core.rig import CHILD, ME, OTHER_CHILD, PARENT, SIBLING, Rig, message_in, request, sent, tdv


def policy(text: str) -> Policy:
    declared = "attribute $owner string; attribute $room int;"
    head = f'policy "p" version 1; {declared} accept from any {{ limit 100 tasks; }}'
    return parse_policy(f"{head} {text}", file="p.policy")


def asking(wanting: str, *, requester: SystemId = PARENT) -> TaskRequest:
    return TaskRequest(
        id=MessageId(5),
        search=SearchId(b"w" * 16),
        requester=requester,
        wanting=wanting,
        count=3,
        hops_left=9,
        asks_left=9,
        remaining_ns=9 * SECOND,
    )


def refusal(rig: Rig, sender: SystemId, requirement: str, /) -> str:
    """Return the text with which a requirement is refused at once; empty if it is judged inside."""
    actions = rig.hear(sender, request(requirement=requirement))
    if sent(actions, SchedRequest):
        return ""
    (reason,) = message_in(actions, SchedDeny).reasons
    assert (reason.module, reason.code, reason.hops) == (ME, DenyCode.REFUSED_BY_POLICY, ())
    return reason.text


@pytest.mark.parametrize("sender", [PARENT, SIBLING])
@pytest.mark.parametrize(
    ("revealing", "requirement", "hidden"),
    [
        ("{ all except $owner, $room; }", '$owner eq "ann"', "$owner"),
        ("{ all except $owner, $room; }", '$slots >= 1 and not ($room = 3) or $owner eq "ann"', "$owner, $room"),
        ("{ only $arch; }", "$slots >= 1", "$slots"),
        ("nothing;", "$slots >= 1", "$slots"),
    ],
)
def test_a_requirement_from_outside_that_reads_what_is_withheld_is_refused_and_the_text_names_that(
    sender: SystemId, revealing: str, requirement: str, hidden: str
) -> None:
    rig = gate(policy(f"reveal to any {revealing}"))
    assert refusal(rig, sender, requirement) == f"this border does not show {hidden}"


def test_a_requirement_is_judged_if_it_reads_what_this_neighbor_is_shown() -> None:
    rig = gate(policy('reveal to any { all except $owner; } reveal to "sibling" { all; }'))
    assert refusal(rig, PARENT, "$slots >= 1") == ""
    assert refusal(gate(rig.state.policy), SIBLING, '$owner eq "ann"') == ""
    assert refusal(gate(rig.state.policy), CHILD, '$owner eq "ann"') == ""


def test_what_is_not_passed_on_from_inside_is_not_shown_either() -> None:
    rig = gate(policy("combine { $owner: drop; }"))
    assert refusal(rig, PARENT, '$owner eq "ann"') == "this border does not show $owner"
    assert refusal(rig, CHILD, '$owner eq "ann"') == ""


def test_a_hop_that_is_no_border_passes_every_requirement_on() -> None:
    assert refusal(gate(policy("reveal to any { only $arch; }"), key=b""), PARENT, "$slots >= 1") == ""


@pytest.mark.parametrize("wanting", ['$user eq "ann"', '$mem < 5 or $origin eq "home"'])
def test_tasks_are_not_chosen_by_users_and_origins_that_a_border_hides(wanting: str) -> None:
    rig = gate()
    rig.submit(members=3, tdv=tdv(user="ann"), requirement="$slots > 99")
    deny = message_in(rig.hear(PARENT, asking(wanting)), TaskDeny)
    (reason,) = deny.reasons
    name = wanting.rsplit("$", maxsplit=1)[-1].split(maxsplit=1)[0]
    assert (reason.module, reason.code, reason.text) == (
        ME,
        DenyCode.REFUSED_BY_POLICY,
        f"this border does not show ${name}",
    )


def test_other_facts_of_tasks_and_askers_from_inside_are_judged() -> None:
    for sender, wanting in ((PARENT, "$mem < 5"), (CHILD, '$user eq "ann"')):
        rig = gate()
        rig.see(OTHER_CHILD)
        actions = rig.hear(sender, asking(wanting, requester=sender))
        assert not [deny for _, deny in sent(actions, TaskDeny) if deny.reasons[0].text]


def test_a_child_from_which_the_outside_is_hidden_asks_inside_alone_about_what_it_is_not_shown() -> None:
    rig = gate(policy('reveal to children { all except $owner; as "campus"; }'))
    actions = rig.hear(CHILD, request(requirement='$owner eq "ann"', origin=HOME))
    asked = [to for to, _ in sent(actions, SchedRequest)]
    while found := sent(actions, SchedRequest):
        ((to, ask),) = found
        asked.append(to)
        actions = rig.hear(to, SchedDeny(request=ask.id, reasons=(), asks_left=60))
    assert set(asked) == {OTHER_CHILD}
    (reason,) = message_in(actions, SchedDeny).reasons
    assert (reason.module, reason.code, reason.hops) == ("campus", DenyCode.REFUSED_BY_POLICY, ())
    assert reason.text == "this border does not show $owner"
