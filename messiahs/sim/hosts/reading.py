"""The answer of a simulated host to a peer that reads outputs (MESSIAHS 5.3.3)."""

from messiahs.core import queries
from messiahs.core.model.routes import Leg
from messiahs.core.module import SchedulingModule
from messiahs.sim.hosts.machine import SimulatedMachine
from messiahs.sim.world.sites import key_of
from messiahs.sim.world.task_channel import Onward, Passing, Read


def answer_read(
    module: SchedulingModule, machine: SimulatedMachine | None, read: Read | Passing, /
) -> Onward | Leg | bool:
    """Return whether the outputs of an attempt are here for a peer, or how it gets them from the next system.

    A connection that is to be passed on gets the leg, or is refused.
    """
    if isinstance(read, Passing):
        peer, splice = read
        leg = queries.splice_leg(module.state, peer, key=key_of(peer), claim=splice.claim, ticket=splice.ticket)
        return leg or False
    claim, attempt = read.claim, read.attempt
    access = queries.byte_leg(module.state, read.peer, key=key_of(read.peer), claim=claim, ticket=read.leg.ticket)
    if isinstance(access, Leg):
        beyond = queries.claim_beyond(module.state, claim)
        known = queries.attempt_beyond(module.state, attempt, claim=beyond)
        return known is not None and Onward(access, beyond, known)
    if machine is None or not isinstance(access, queries.Here):
        return False
    here = queries.local_id(module.state, claim, attempt)
    return queries.is_attempt_of(module.state, attempt, claim=claim) and machine.has_outputs(here)
