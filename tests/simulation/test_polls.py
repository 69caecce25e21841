"""Polled neighbors in virtual time: vectors come as answers, and a lost neighbor is noticed (MESSIAHS 5.1, 6.1)."""

from messiahs.core.interface.actions import Action, SendControl
from messiahs.core.interface.events import Measured
from messiahs.core.interface.messages import SystemStatusQuery
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, SECOND, Instant
from messiahs.sim.hosts.federation import SimulatedFederation
from tests.simulation.policy_chain import LEAF, MIDDLE, OPEN, ROOT, chain, seen_below
from tests.unit.core.rig import sdv

QUIET = OPEN + " advertise every 1h { } "
"""Sends its vectors once an hour, and changes of key attributes."""


def loads(federation: SimulatedFederation, system: SystemId) -> list[object]:
    return [dict(each.attributes)["load"] for each in seen_below(federation, system)]


def let_pass(federation: SimulatedFederation, nanoseconds: int) -> None:
    federation.run(lambda: False, until=Instant(federation.now + nanoseconds))


def test_a_module_that_polls_follows_a_neighbor_that_hardly_ever_sends() -> None:
    polling = QUIET + "timeouts { poll 5s; }"
    federation, other = (chain(dict.fromkeys((ROOT, MIDDLE, LEAF), rules)) for rules in (polling, QUIET))
    for each in (federation, other):
        each.post(LEAF, Measured(sdv=sdv(slots=2, load=1_000)))
        let_pass(each, MINUTE)
        each.post(LEAF, Measured(sdv=sdv(slots=2, load=2_000)))
        let_pass(each, 20 * SECOND)
    assert loads(federation, MIDDLE) == loads(federation, ROOT)
    assert loads(federation, MIDDLE) != loads(other, MIDDLE)


def test_a_module_that_polls_asks_at_its_interval_and_not_those_that_send_more_often() -> None:
    polls: list[tuple[SystemId, SystemId]] = []

    def note(system: SystemId, action: Action) -> None:
        if isinstance(action, SendControl) and isinstance(action.message, SystemStatusQuery):
            polls.append((system, action.to))

    federation = chain({ROOT: OPEN + " timeouts { poll 5s; }", MIDDLE: QUIET + "timeouts { poll 5s; }"})
    federation.observe = note
    let_pass(federation, MINUTE)
    assert set(polls) == {(ROOT, MIDDLE)}
    assert 11 <= len(polls) <= 12
