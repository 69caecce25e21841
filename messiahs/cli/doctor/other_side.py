"""Checks from the other side: whether neighbors reach this module, and what their clocks show."""

from collections.abc import Iterator
from typing import Final

from messiahs.cli.doctor.findings import Finding, Patient, fail, ok, warn
from messiahs.client.connection import Document
from messiahs.core.model.instants import HOUR, SECOND
from messiahs.wire.reach import ReachResult

_APART_NS: Final = 30 * SECOND
_BACKDATED_NS: Final = 24 * HOUR
"""Certificates are valid from so long before they were made."""
_REMEDY: Final = "set the wrong one right and let a time service keep it (`timedatectl set-ntp true`)"


def reaching(patient: Patient) -> set[str]:
    """Return the neighbors that have just reached a module at its port."""
    return {each["name"] for each in patient.reach if each["result"] == ReachResult.ANSWERED}


def check_reach(patient: Patient) -> Iterator[Finding]:
    """Say for each linked neighbor whether it reaches this module at the address that is configured for it there."""
    if patient.unasked:
        yield warn("neighbors", f"they were not asked to dial this module: {patient.unasked}")
    reached_by = reaching(patient)
    for each in patient.reach:
        yield _reach_from(each, patient, reached_by=reached_by)


def _reach_from(answer: Document, patient: Patient, *, reached_by: set[str]) -> Finding:
    name, address, own = answer["name"], answer["address"], patient.settings.name
    what = f"from {name}"
    port = address.rpartition(":")[2]
    at_fault = f"the topology of {name} says {address} for `{own}`"
    match answer["result"]:
        case ReachResult.ANSWERED:
            return ok(what, f"it reaches this module at {address}")
        case ReachResult.NO_ADDRESS if not patient.settings.listen:
            return ok(what, "nobody dials this module (`reach: outbound`)")
        case ReachResult.NO_ADDRESS:
            return ok(what, f"not dialed: it has no `host` and `port` for `{own}`, which let it try")
        case ReachResult.NOT_NOW:
            return ok(what, "not dialed: it has dialed this module a moment ago; ask again in 15 s")
        case "unknown":
            return ok(what, f"not asked: {answer['text']}")
        case "no_answer":
            return warn(what, f"not known: {answer['text']}; ask again, and see its log")
        case ReachResult.SILENT if reached_by:
            text = f"nothing answers it at {address}, where {', '.join(sorted(reached_by))} reaches this module"
            return fail(what, f"{text}: let the firewall of {name} admit connections out to port {port}")
        case ReachResult.SILENT:
            text = f"nothing answers it at {address}: let the firewall of this side admit TCP port {port}, and that"
            return fail(what, f"{text} of {name} let it out, or make this module `reach: outbound`")
        case ReachResult.REFUSED:
            text = f"the connection to {address} is refused: let the firewall of this side admit port {port}"
            return fail(what, f"{text} and lead it to this host; {at_fault}")
        case ReachResult.UNRESOLVED:
            return fail(what, f"the name in {address} does not resolve there: correct it, as {at_fault}")
        case ReachResult.OTHER:
            why = answer["text"] or "it has another name, or no root of this site signed its certificate"
            return fail(what, f"another system answers at {address} ({why}): correct it, as {at_fault}")
    return fail(what, f"{address}: {answer['text']}: check the way there and its firewalls; {at_fault}")


def check_clocks(patient: Patient) -> Iterator[Finding]:
    """Compare the clocks of linked neighbors with the one here."""
    for each in patient.reach:
        if each["clock_ahead_ns"] is not None:
            yield _clock_of(each["name"], each["clock_ahead_ns"])


def _clock_of(name: str, ahead_ns: int) -> Finding:
    what, apart_ns = f"clock of {name}", abs(ahead_ns)
    text = f"{apart_ns / SECOND:.1f} s {'ahead of' if ahead_ns > 0 else 'behind'} the clock here"
    if apart_ns >= _BACKDATED_NS:
        return fail(what, f"{text}: certificates made by one are not valid for the other yet; {_REMEDY}")
    if apart_ns >= _APART_NS:
        why = "times in histories and logs do not match, and from a day on new certificates are not valid yet"
        return warn(what, f"{text}: {why}; {_REMEDY}")
    return ok(what, text)
