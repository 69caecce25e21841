"""Messages about siblings that a parent assigns to its children."""

from messiahs.core.interface.limits import SIBLINGS_LIMIT
from messiahs.core.interface.membership_messages import AssignedSibling, SiblingAssignment, SiblingRequest
from messiahs.wire.limits import ROOT_LIMIT, at_most, dialed_address, secret, system_id
from messiahs.wire.v1 import control_pb2


def write_sibling_request(wire: control_pb2.SiblingRequest, request: SiblingRequest) -> None:
    """Fill in a request for siblings."""
    wire.address, wire.most = request.address, request.most
    wire.siblings.extend(request.siblings)
    wire.assigned.extend(request.assigned)
    wire.refused.extend(request.refused)


def read_sibling_request(wire: control_pb2.SiblingRequest) -> SiblingRequest:
    """Check a request for siblings."""
    longest = max(map(len, (wire.siblings, wire.assigned, wire.refused)))
    at_most(max(longest, wire.most), SIBLINGS_LIMIT, what="siblings")
    return SiblingRequest(
        address=dialed_address(wire.address),
        siblings=tuple(map(system_id, wire.siblings)),
        assigned=tuple(map(system_id, wire.assigned)),
        most=wire.most,
        refused=tuple(map(system_id, wire.refused)),
    )


def write_sibling_assignment(wire: control_pb2.SiblingAssignment, assignment: SiblingAssignment) -> None:
    """Fill in assigned and withdrawn siblings."""
    for sibling in assignment.siblings:
        added = wire.siblings.add(system=sibling.system, address=sibling.address)
        added.roots.extend(sibling.roots)
    wire.withdrawn.extend(assignment.withdrawn)


def read_sibling_assignment(wire: control_pb2.SiblingAssignment) -> SiblingAssignment:
    """Check assigned and withdrawn siblings."""
    at_most(max(len(wire.siblings), len(wire.withdrawn)), SIBLINGS_LIMIT, what="siblings")
    return SiblingAssignment(
        siblings=tuple(map(_read_sibling, wire.siblings)), withdrawn=tuple(map(system_id, wire.withdrawn))
    )


def _read_sibling(wire: control_pb2.AssignedSibling) -> AssignedSibling:
    at_most(len(wire.roots), ROOT_LIMIT, what="roots")
    return AssignedSibling(
        system=system_id(wire.system), address=dialed_address(wire.address), roots=tuple(map(secret, wire.roots))
    )
