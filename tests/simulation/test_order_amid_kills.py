"""Two hundred tasks wait for others, in every way, while daemons, machines and starters are killed."""

from dataclasses import replace

import pytest

from messiahs.core.interface.dependencies import When
from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import Command
from messiahs.core.model.descriptions import TDV, sorted_pairs
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import SECOND
from messiahs.sim import swarm
from messiahs.sim.load.draw import Drawn, draw
from messiahs.sim.load.faults import Fault
from messiahs.sim.load.users import Order

_SEED = 12
"""A run with two systems, in which some tasks fail."""
_KILLS = (Fault.DAEMON_CRASH, Fault.CRASH_AMID_ACTIONS, Fault.MACHINE_CRASH, Fault.STARTER_LOST)
_MEMBERS = 50


def _order(
    system: SystemId, name: str, *, after: tuple[tuple[Order, When], ...] = (), members: int = _MEMBERS
) -> Order:
    event = Submitted(
        answer_to=AnswerTo(0),
        key=ClientKey(name),
        tdv=TDV(sorted_pairs({"cpus": 1, "origin": system, "user": "ann"})),
        requirement="",
        command=Command(argv=("true",)),
        members=members,
    )
    return Order(system=system, event=event, at_ns=SECOND * (6 if after else 5), is_certain=False, after=after)


def _with_dependents(seed: int) -> Drawn:
    drawn = draw(seed)
    system = drawn.orders[0].system
    array, single = _order(system, "array"), _order(system, "single", members=0)
    # What waits with `OK` takes an output, too.
    chosen = {When.STARTED: array, When.ENDED: array, When.OK: single, When.EACH: array}
    waiting = [_order(system, str(when), after=((other, when),)) for when, other in chosen.items()]
    run_times = replace(drawn.run_times, mean_ns=SECOND)
    orders = [array, single, *waiting]
    return replace(drawn, orders=orders, run_times=run_times, kinds=_KILLS, fault_every_ns=SECOND)


def test_no_task_begins_before_what_it_waits_for_has_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swarm, "draw", _with_dependents)
    run = swarm.run_seed(_SEED)
    assert run.failure is None, run.failure
    assert len(run.faults) > 2
    assert run.tasks.total() == 5 * _MEMBERS + 1
    assert run.tasks["denied"]
