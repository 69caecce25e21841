"""One sentence on why a machine gets no work, or what work it gets, and what would have to change."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from messiahs.core.interface.request_counts import Gate
from messiahs.core.model.counts import counted
from messiahs.daemon.storage.documents import Document

_BECAUSE: Final[Mapping[Gate, str]] = MappingProxyType(
    {
        Gate.TOO_MANY: "because their neighbor had too many searches open",
        Gate.TOO_LATE: "because no time was left when they arrived",
        Gate.DRAINING: "because the module was drained, or their link was being ended",
        Gate.NO_SPACE: "because the disk of the module was full",
        Gate.NOT_SHOWN: "because they are about what the border hides from their neighbor",
        Gate.BAD_PREDICATE: "because their requirement could not be evaluated",
        Gate.NO_MACHINE: "because the module had no machine of its own",
        Gate.TOO_SMALL: "because the machine, or what one task may have of it, is too small",
        Gate.UNMET: "because the machine does not meet their requirement",
        Gate.OTHER_SITE: "because the machine takes no tasks of other sites: it has no sandboxes",
        Gate.MAINTENANCE: "because they would not have ended before the announced maintenance",
        Gate.NOT_LENT: "because the machine was not lent",
        Gate.NOT_TAKEN: "because they had not taken the results of earlier tasks",
        Gate.NOT_AGAIN: "because a task like theirs was revoked here shortly before, or is to leave",
        Gate.UNREACHED: "because their origin could not reach the machine, or had as many tasks here as it sends",
        Gate.ALLOTTED: "by `allocate` of the policy, which gave them no place",
        Gate.RESERVED: "because slots are kept free for a task that needs several of them",
        Gate.NO_ROOM: "because other tasks, or programs of the host, had what they need",
    }
)


def refused_text(gate: Gate, rule: str, lines: tuple[int, ...], /) -> str:
    """Return by which rule, or why, requests were refused, to follow the verb."""
    if gate is not Gate.RULE:
        return _BECAUSE[gate]
    if not rule:
        return "by the policy"
    place = f" (line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))})" if lines else ""
    return f"by `{rule}`{place}"


def conclusion(document: Document) -> str:
    """Return the sentence for the description of a module; instants in it are as in the texts of modules."""
    return _why_closed(document) or _of_requests(document)


def _why_closed(document: Document) -> str:
    """Return what keeps the machine from all work of others now; empty if nothing does."""
    dial, drain = document["lend"], document["drain"]
    if not document["has_machine"]:
        return f"{document['name']} has no machine of its own: it only passes requests on"
    if dial["position"] == "off":
        by = f" by {dial['by']}" if dial["by"] else ""
        until = f" until {_stamp(dial['until'])}" if dial["until"] else ""
        return f"the machine is lent off{by} since {_stamp(dial['since'])}{until}: `messiahs lend on` lends it again"
    if drain is not None:
        why = f" ({drain['reason']})" if drain["reason"] else ""
        return f"the module is drained since {_stamp(drain['since'])}{why}: `messiahs module undrain` ends that"
    if not document["has_space"]:
        return "the disk of the module is full, so it takes no work"
    return "" if document["machine"] is not None else "the machine has not been measured yet"


def _of_requests(document: Document) -> str:
    requests, since = document["requests"], _stamp(document["since"])
    if not any(each["requests"] for each in document["neighbors"]):
        own = document["own_users"]
        own_text = f"; {_of(own['accepted'], own['requests'])} of its own users got places" if own["requests"] else ""
        return f"no neighbor asked since {since}: {_why_unasked(document)}{own_text}"
    if document["accepted"] == requests:
        return f"all {requests} requests got places" if requests > 1 else "the only request got places"
    first, accepted = document["refusals"][0], document["accepted"]
    granted = f", and {accepted} got places" if accepted else ""
    verb = "was" if first["requests"] == 1 else "were"
    return f"{_of(first['requests'], requests)} {verb} refused {first['text']}{granted}"


def _why_unasked(document: Document) -> str:
    neighbors = document["neighbors"]
    linked = [each for each in neighbors if each["linked"]]
    shown = [each for each in linked if each["revealed"]]
    if not neighbors:
        return "the module has none"
    if not linked:
        return "none is linked"
    if not shown:
        return f"the policy reveals this machine to no neighbor{' that is linked' * (len(linked) < len(neighbors))}"
    machine = document["machine"]
    if not machine["told"].get("free_slots", 1):
        return "the machine shows no free slot, since all are in use"
    hidden = [each["system"] for each in linked if not each["revealed"]]
    rest = f" (the policy reveals nothing to {', '.join(hidden)})" if hidden else ""
    who = f"{counted(len(shown), 'neighbor')} that {'knows' if len(shown) == 1 else 'know'}"
    return f"{who} the machine had no task that fits what is shown of it, or preferred other machines{rest}"


def _of(some: int, total: int) -> str:
    return f"{some} of {counted(total, 'request')}"


def _stamp(stamp: str) -> str:
    """Return an instant to the second, as texts of modules have it."""
    return f"{stamp[:19]}Z"
