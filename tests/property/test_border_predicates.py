"""What a border answers the outside, or asks inside for it, does not depend on what it withholds (MESSIAHS 4, 5.4)."""

from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.interface.actions import Action, SendControl
from messiahs.core.interface.messages import TaskRequest
from messiahs.core.interface.parts import Policy
from messiahs.core.model.ids import MessageId, SearchId, SystemId
from messiahs.core.model.instants import SECOND
from messiahs.language.compiler.files import parse_policy
from messiahs.wire.codec import control_to_bytes
from tests.property.budget import examples
from tests.unit.core.border.gate import gate
from tests.unit.core.rig import CHILD, PARENT, SIBLING, Rig, request, tdv, view

OF_MACHINES = st.sampled_from(('$owner eq "ann"', "$room = 3", "$room < $slots", "$slots > 3", '$arch eq "x86_64"'))
OF_TASKS = st.sampled_from(('$user eq "ann"', '$origin eq "me"', '$user ne "bob"', "$mem < 5", "$cpus = 1"))
OPEN = "accept from any { limit 100 tasks; } migrate { keep at least 0 tasks; }"
DECLARED = "attribute $owner string; attribute $room int;"
HIDING = parse_policy(
    f'policy "p" version 1; {DECLARED} {OPEN} reveal to any {{ all except $owner, $room; }}', file="p.policy"
)


def texts(comparisons: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Join comparisons in any way."""
    return st.recursive(
        comparisons,
        lambda inner: (
            st.builds("({} {} {})".format, inner, st.sampled_from(("and", "or", "xor")), inner)
            | st.builds("(not {})".format, inner)
        ),
        max_leaves=4,
    )


def sent(actions: tuple[Action, ...]) -> list[tuple[SystemId, bytes]]:
    return [(each.to, control_to_bytes((each.message,))) for each in actions if isinstance(each, SendControl)]


def border(policy: Policy, *, owner: str, room: int, user: str) -> Rig:
    """Return a border with a machine, a machine behind it, and tasks of its own, with these hidden facts."""
    rig = gate(policy)
    rig.see(CHILD, view(owner=owner, room=room))
    rig.measure(owner=owner, room=room)
    rig.submit(members=3, tdv=tdv(user=user, mem=2), requirement="$slots > 99")
    rig.wait(20 * SECOND)
    for system in (CHILD, PARENT, SIBLING):
        rig.see(system, view(owner=owner, room=room) if system == CHILD else None)
    return rig


@examples(100)
@given(requirement=texts(OF_MACHINES), sender=st.sampled_from((PARENT, SIBLING)))
def test_a_requirement_from_outside_tells_nothing_about_withheld_attributes(requirement: str, sender: SystemId) -> None:
    answers = [
        sent(border(HIDING, owner=owner, room=room, user="ann").hear(sender, request(requirement=requirement)))
        for owner, room in (("ann", 3), ("bob", 9))
    ]
    assert answers[0] == answers[1]
    assert answers[0]


@examples(100)
@given(wanting=texts(OF_TASKS), sender=st.sampled_from((PARENT, SIBLING)))
def test_a_task_filter_from_outside_tells_nothing_about_users_and_origins(wanting: str, sender: SystemId) -> None:
    asking = TaskRequest(
        id=MessageId(5),
        search=SearchId(b"w" * 16),
        requester=sender,
        wanting=wanting,
        count=3,
        hops_left=9,
        asks_left=9,
        remaining_ns=9 * SECOND,
    )
    answers = [
        [
            (each.to, type(each.message))
            for each in border(HIDING, owner="ann", room=3, user=user).hear(sender, asking)
            if isinstance(each, SendControl)
        ]
        for user in ("ann", "bob")
    ]
    assert answers[0] == answers[1]
    assert answers[0]
