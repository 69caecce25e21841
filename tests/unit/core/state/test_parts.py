"""Parts of the policy: what they remember is the module's, and one that fails is reported once."""

from dataclasses import dataclass, replace

from messiahs.core.interface.actions import Action, Decision, SendControl, Store
from messiahs.core.interface.events import Measured, PolicyChanged
from messiahs.core.interface.messages import SchedAccept
from messiahs.core.interface.parts import Failed, PartKind, PartState
from messiahs.core.interface.policies import Allocation, AllocationQuery, Randomness, RankQuery
from messiahs.core.interface.rows import GrantedClaimRow
from messiahs.core.model.ids import SearchId, SystemId
from messiahs.core.recovery import Remains
from messiahs.language.compiler.files import parse_policy
from tests.unit.core.conftest import ModuleFactory
from tests.unit.core.rig import CHILD, OTHER_CHILD, PARENT, Rig, message_in, only, request, sdv, tdv
from tests.unit.core.scripted_policy import ScriptedPolicy

TURNS = "accept from any { limit 100 tasks; } rank candidates by round_robin();"


def _asked_first(rig: Rig, number: int) -> SystemId:
    """Return the child that the module asks first for a search of its parent."""
    return next(each.to for each in only(_search(rig, number), SendControl))


def _search(rig: Rig, number: int, **said: object) -> tuple[Action, ...]:
    return rig.hear(PARENT, request(number, search=SearchId(bytes([number] * 16)), **said))


def _with_children(module: ModuleFactory, text: str) -> Rig:
    rig = module(policy=parse_policy(text, file="turns.policy"))
    rig.greet(CHILD, OTHER_CHILD, PARENT)
    for system in (CHILD, OTHER_CHILD):
        rig.see(system)
    return rig


def test_a_part_continues_from_its_state(module: ModuleFactory) -> None:
    rig = _with_children(module, TURNS)
    assert [_asked_first(rig, number) for number in (1, 2, 3)] == [CHILD, OTHER_CHILD, CHILD]
    assert rig.state.parts.states[PartKind.LOCATION] == ((CHILD,),)


def test_a_part_that_stands_in_the_next_policy_as_it_was_keeps_what_it_remembers(module: ModuleFactory) -> None:
    rig = _with_children(module, TURNS)
    assert _asked_first(rig, 1) == CHILD
    rig.handle(PolicyChanged(policy=parse_policy(f'policy "next"; {TURNS}', file="next.policy")))
    assert _asked_first(rig, 2) == OTHER_CHILD


def test_another_part_starts_with_its_initial_state(module: ModuleFactory) -> None:
    rig = _with_children(module, TURNS)
    assert _asked_first(rig, 1) == CHILD
    for text in ("accept from any { limit 100 tasks; }", TURNS):
        rig.handle(PolicyChanged(policy=parse_policy(text, file="next.policy")))
    assert rig.state.parts.states == {}
    assert _asked_first(rig, 2) == CHILD


def test_a_part_among_keys_continues_too(module: ModuleFactory) -> None:
    rig = _with_children(module, TURNS.replace("by round", 'by first where $cand.relation eq "child", round'))
    assert [_asked_first(rig, number) for number in (1, 2, 3)] == [CHILD, OTHER_CHILD, CHILD]


@dataclass(frozen=True, slots=True)
class FailingLocation:
    """Fails, and asks in order of name instead."""

    text: str = "broken()"
    initial: PartState = ()

    def decide(
        self, query: RankQuery, state: PartState, randomness: Randomness, /
    ) -> tuple[Failed[tuple[SystemId, ...]], PartState]:
        """Fail."""
        del randomness
        order = tuple(sorted(each.system for each in query.candidates))
        return Failed(instead=order, why="KeyError: 'x'; by name"), state

    def why_ranked(self, query: RankQuery, /) -> dict[SystemId, str]:
        """Say nothing."""
        del query
        return {}


def test_a_part_that_fails_is_reported_once_under_each_policy(module: ModuleFactory) -> None:
    compiled = parse_policy("accept from any { limit 100 tasks; }", file="x.policy")
    rig = _with_children(module, "")
    failure = Decision(what="part_failed", task="rank candidates", text="broken(): KeyError: 'x'; by name")
    for number in (1, 3):
        rig.handle(PolicyChanged(policy=replace(compiled, location=FailingLocation())))
        assert _of_parts(rig, number) == (failure,)
        assert _of_parts(rig, number + 1) == ()


def _of_parts(rig: Rig, number: int) -> tuple[Decision, ...]:
    return tuple(each for each in only(_search(rig, number), Decision) if each.what == "part_failed")


@dataclass(frozen=True, slots=True)
class Halving:
    """Gives every task half of the slots that it asks for, and one place."""

    text: str = "halving()"
    initial: PartState = ()

    def decide(
        self, query: AllocationQuery, state: PartState, randomness: Randomness, /
    ) -> tuple[Allocation, PartState]:
        """Grant."""
        del randomness
        return Allocation(slots=query.slots // 2, places=1), state


def test_a_task_gets_the_slots_that_the_policy_gives_also_after_a_restart(module: ModuleFactory) -> None:
    rig = module(policy=ScriptedPolicy(allocation=Halving()))
    rig.greet(PARENT)
    rig.handle(Measured(sdv=sdv(slots=8, free_slots=8)))
    actions = _search(rig, 1, count=5, tdv=tdv(cpus=4))
    assert message_in(actions, SchedAccept).places == 1
    (row,) = (each.row for each in only(actions, Store) if isinstance(each.row, GrantedClaimRow))
    assert row.slots == 2
    again = module(policy=ScriptedPolicy())
    again.resume(Remains(rows=(row,)))
    for each in (rig, again):
        (claim,) = each.state.executor.claims.values()
        assert claim.need.slots == 2


def test_a_policy_that_grants_nothing_lets_others_be_asked(module: ModuleFactory) -> None:
    @dataclass(frozen=True, slots=True)
    class Nothing:
        """Grants nothing."""

        text: str = "nothing()"
        initial: PartState = ()

        def decide(
            self, query: AllocationQuery, state: PartState, randomness: Randomness, /
        ) -> tuple[Allocation, PartState]:
            """Grant nothing."""
            del randomness
            return Allocation(slots=query.slots, places=0), state

    rig = module(policy=ScriptedPolicy(allocation=Nothing()))
    rig.greet(CHILD, PARENT)
    rig.see(CHILD)
    rig.handle(Measured(sdv=sdv()))
    assert [each.to for each in only(_search(rig, 1), SendControl)] == [CHILD]
    assert rig.state.executor.starved == {}
