"""Messages about parents: which of them counts a system, and whether one of them is also below it."""

from messiahs.core.interface.limits import HOPS, SETTLING_LIMIT
from messiahs.core.interface.membership_messages import CycleProbe, Handover, HandoverDone, SumsSettled
from messiahs.wire.limits import at_most, counter
from messiahs.wire.v1 import control_pb2


def write_handover(wire: control_pb2.Handover, handover: Handover) -> None:
    """Fill in the begin of a handover."""
    wire.number = handover.number


def read_handover(wire: control_pb2.Handover) -> Handover:
    """Check the begin of a handover."""
    return Handover(number=counter(wire.number))


def write_handover_done(wire: control_pb2.HandoverDone, done: HandoverDone) -> None:
    """Fill in the answer to a handover."""
    wire.number = done.number


def read_handover_done(wire: control_pb2.HandoverDone) -> HandoverDone:
    """Check the answer to a handover."""
    return HandoverDone(number=counter(wire.number))


def write_sums_settled(wire: control_pb2.SumsSettled, settled: SumsSettled) -> None:
    """Fill in the answer to marks."""
    wire.marks.extend(settled.marks)


def read_sums_settled(wire: control_pb2.SumsSettled) -> SumsSettled:
    """Check the answer to marks."""
    at_most(len(wire.marks), SETTLING_LIMIT, what="marks")
    return SumsSettled(marks=tuple(map(counter, wire.marks)))


def write_cycle_probe(wire: control_pb2.CycleProbe, probe: CycleProbe) -> None:
    """Fill in a number that climbs."""
    wire.number, wire.hops_left = probe.number, probe.hops_left


def read_cycle_probe(wire: control_pb2.CycleProbe) -> CycleProbe:
    """Check a number that climbs."""
    return CycleProbe(number=counter(wire.number), hops_left=min(wire.hops_left, HOPS))
