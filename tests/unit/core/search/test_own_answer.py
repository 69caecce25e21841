"""What the owner of a machine is shown of the requests for it: each is counted once, by what became of it."""

from dataclasses import replace

import pytest

from messiahs.core import queries
from messiahs.core.interface.events import AnswerTo, DrainRequested, LendRequested, PolicyChanged, StoreChanged
from messiahs.core.interface.lending import Lent
from messiahs.core.interface.messages import DenyCode, SchedAccept, SchedDeny
from messiahs.core.interface.parts import PartState
from messiahs.core.interface.policies import Allocation, AllocationQuery, Randomness, Refused
from messiahs.core.interface.request_counts import Gate, RequestCounts
from messiahs.core.model.ids import SearchId
from messiahs.core.model.instants import SECOND
from messiahs.core.vectors.vectors import EMPTY
from tests.unit.core.rig import CHILD, GIB, ME, PARENT, SIBLING, Rig, request, sent, tdv
from tests.unit.core.scripted_policy import ScriptedPolicy


def ask(rig: Rig, number: int = 1, /, **said: object) -> None:
    """Let the parent ask for a place, in a search of its own."""
    rig.hear(PARENT, request(number, **{"search": SearchId(number.to_bytes(16)), **said}))


def counted(rig: Rig) -> RequestCounts:
    return queries.requests_here(rig.state, rig.now)


def gates(rig: Rig) -> list[tuple[Gate, str, str]]:
    return [(each.gate, each.rule, each.why) for each in counted(rig).refusals]


@pytest.fixture
def own(rig: Rig) -> Rig:
    """Return a module with a machine of four slots, none of whose children has room."""
    rig.measure()
    for neighbor in (CHILD, SIBLING):
        rig.see(neighbor, EMPTY)
    return rig


def test_granted_places_are_counted_with_the_neighbor_and_since_when(own: Rig) -> None:
    began = own.now
    ask(own, 1, count=2)
    own.wait(SECOND)
    ask(own, 2, count=1)
    counts = counted(own)
    (asker,) = counts.askers
    assert (asker.system, asker.requests, asker.tasks, asker.granted, asker.places) == (PARENT, 2, 3, 2, 3)
    assert (asker.first_at, asker.last_at) == (began, own.now)
    assert (counts.refusals, counts.compared, counts.matched) == ((), 2, 2)


@pytest.mark.parametrize("is_final", [False, True])
def test_a_refusal_by_the_policy_has_its_rule_and_the_values(
    own: Rig, policy: ScriptedPolicy, *, is_final: bool
) -> None:
    policy.verdict = Refused(code=DenyCode.REFUSED_BY_POLICY, rule="require $mem < 1", text="no", is_final=is_final)
    policy.why = "$mem is 2"
    ask(own, count=3)
    assert gates(own) == [(Gate.RULE, "require $mem < 1", "$mem is 2")]
    (refused,) = counted(own).refusals
    assert (refused.requests, refused.tasks, refused.last.tdv) == (1, 3, tdv())
    assert counted(own).compared == 0


def test_what_does_not_fit_and_what_finds_no_room_are_told_apart(own: Rig) -> None:
    ask(own, 1, count=4)
    ask(own, 2)
    ask(own, 3, tdv=tdv(cpus=9))
    ask(own, 4, requirement="$speed > 5000")
    assert {gate for gate, _, _ in gates(own)} == {Gate.NO_ROOM, Gate.TOO_SMALL, Gate.UNMET}
    counts = counted(own)
    assert (counts.requests, counts.compared, counts.matched, counts.granted) == (4, 4, 2, 1)


def test_a_machine_that_is_lent_off_refuses_what_it_could_serve(own: Rig) -> None:
    own.handle(LendRequested(answer_to=AnswerTo(9), lent=Lent.OFF, by="alice"))
    ask(own, 1)
    ask(own, 2, tdv=tdv(mem=99 * GIB))
    assert {gate for gate, _, _ in gates(own)} == {Gate.NOT_LENT, Gate.TOO_SMALL}


def test_requests_that_never_reach_the_policy_are_counted_too(own: Rig) -> None:
    ask(own, 1, requirement="$speed >")
    ask(own, 2, remaining_ns=1)
    own.handle(StoreChanged(has_space=False))
    ask(own, 3)
    own.handle(StoreChanged(has_space=True))
    own.handle(DrainRequested(answer_to=AnswerTo(9), text="repair"))
    ask(own, 4)
    expected = {Gate.BAD_PREDICATE, Gate.TOO_LATE, Gate.NO_SPACE, Gate.DRAINING}
    assert {gate for gate, _, _ in gates(own)} == expected
    assert counted(own).requests == 4


def test_a_search_that_comes_again_is_counted_once(own: Rig) -> None:
    ask(own, 1, search=SearchId(b"s" * 16))
    actions = own.hear(PARENT, request(2))
    assert sent(actions, SchedDeny)
    assert counted(own).requests == 1


def test_a_module_without_a_machine_says_so(rig: Rig) -> None:
    ask(rig)
    assert gates(rig) == [(Gate.NO_MACHINE, "", "")]


def test_own_users_are_counted_under_the_name_of_the_module(own: Rig) -> None:
    own.submit()
    assert [(each.system, each.granted) for each in counted(own).askers] == [(ME, 1)]


class NoPlaces:
    """Grants no place."""

    text = "no places"
    initial: PartState = ()

    def decide(
        self, query: AllocationQuery, state: PartState, randomness: Randomness, /
    ) -> tuple[Allocation, PartState]:
        """Return no place."""
        del randomness
        return Allocation(slots=query.slots, places=0), state


def test_places_that_the_policy_does_not_allot_are_no_lack_of_room(own: Rig, policy: ScriptedPolicy) -> None:
    policy.allocation = NoPlaces()
    ask(own)
    assert [gate for gate, _, _ in gates(own)] == [Gate.ALLOTTED]


def test_another_policy_begins_anew(own: Rig, policy: ScriptedPolicy) -> None:
    policy.verdict = Refused(code=DenyCode.REFUSED_BY_POLICY, rule="require $mem < 1")
    ask(own, 1)
    own.wait(SECOND)
    own.handle(PolicyChanged(policy=replace(policy)))
    assert (counted(own).since, counted(own).requests) == (own.now, 0)


def test_the_grant_itself_is_what_it_was(own: Rig) -> None:
    actions = own.hear(PARENT, request(1, count=9))
    ((_, accept),) = sent(actions, SchedAccept)
    assert accept.places == counted(own).places == 4
