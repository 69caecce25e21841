"""Attributes withheld from a parent keep no task from the machine behind: they could have any value."""

from messiahs.core.interface.actions import SendControl
from messiahs.core.interface.messages import Reason, SchedDeny, VectorKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.update.exchanged import exchanged
from messiahs.recount.rounds import Recount
from messiahs.sim.checks.recounted import read_hosts, wrong_sums
from messiahs.sim.hosts.federation import SimulatedFederation
from tests.simulation.policy_chain import MIDDLE, OPEN, ROOT, chain, seen_below, task
from tests.unit.core.rig import GIB


def _federation(reveal: str) -> SimulatedFederation:
    """Return a chain in which the middle reveals only some attributes."""
    return chain({MIDDLE: OPEN + reveal})


def _submit(federation: SimulatedFederation, requirement: str = "", **said: int) -> None:
    federation.later(0, lambda: federation.post(ROOT, task(ROOT, requirement, waits=False, **said)))
    federation.run(lambda: len(federation.ended) == 1, until=Instant(60 * SECOND))


def _ran_on(federation: SimulatedFederation) -> str:
    (row,) = federation.ended.values()
    return row.executed_on


def test_a_task_reaches_a_machine_whose_parent_reveals_only_the_architecture() -> None:
    federation = _federation("reveal to parent { only $arch; }")
    assert [name for name, _ in seen_below(federation, ROOT)[0].attributes] == ["arch"]
    _submit(federation, '$arch eq "x86_64" and $speed >= 1000 and not ($load > 100)', mem=4 * GIB, disk=GIB)
    # The requirement reads $load, which no vector contains: the machine itself decides.
    assert _ran_on(federation) == ""
    federation = _federation("reveal to parent { only $arch; }")
    _submit(federation, '$arch eq "x86_64" and $speed >= 1000', mem=4 * GIB, disk=GIB)
    assert _ran_on(federation) == "leaf"


def test_a_task_excluded_by_revealed_attributes_is_not_requested() -> None:
    federation = _federation("reveal to parent { only $arch; }")
    asked: list[SystemId] = []
    federation.observe = lambda system, action: asked.append(system) if isinstance(action, SendControl) else None
    _submit(federation, '$arch eq "sparc"')
    assert (_ran_on(federation), asked) == ("", [])


def test_a_system_that_reveals_nothing_is_not_asked() -> None:
    for reveal in ("reveal to parent nothing;", "reveal to parent { hide counts below 2; }"):
        federation = _federation(reveal)
        assert seen_below(federation, ROOT) == ()
        _submit(federation)
        assert _ran_on(federation) == ""


def test_what_is_withheld_is_no_deviation_in_an_audit_of_the_sums() -> None:
    withheld = {"nothing;": True, "{ hide counts below 2; }": True, "{ only $arch; }": False}
    for rule, is_all in withheld.items():
        federation = _federation(f"reveal to parent {rule}")
        recount = Recount()
        read_hosts(recount, federation.members.values(), federation.now)
        assert list(wrong_sums(recount)) == []
        facts = exchanged(federation.members[MIDDLE].module.state)
        (up,) = (sent for each in facts.neighbors for kind, sent in each.sent.items() if kind is VectorKind.FOR_PARENTS)
        assert up.is_withheld is is_all


def test_a_denial_shows_one_name_for_a_site() -> None:
    federation = _federation('reveal to parent { only $arch; as "site-7"; }')
    heard: list[Reason] = []

    def note(system: SystemId, action: object) -> None:
        if system == MIDDLE and isinstance(action, SendControl) and isinstance(action.message, SchedDeny):
            heard.extend(action.message.reasons)

    federation.observe = note
    _submit(federation, "$load > 1")
    (reason,) = heard
    assert {reason.module, *(hop.module for hop in reason.hops)} == {"site-7"}
    assert reason.hops
