"""The document for the owner of a machine on why it gets no work, or what work it gets."""

from collections.abc import Iterable, Mapping
from functools import partial

from messiahs.core import queries
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.request_counts import NOT_FITTING, AskerCount, RefusalCount, RequestCounts
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.core.model.ids import SystemId
from messiahs.core.vector_queries import Advertised, Disclosed
from messiahs.core.vectors.vectors import EMPTY, Vector, vector_of
from messiahs.daemon.api.explanations import machines_document
from messiahs.daemon.api.lending import lend_document
from messiahs.daemon.api.membership import drain_document, maintenance_document
from messiahs.daemon.api.module_conclusion import conclusion, refused_text
from messiahs.daemon.api.paced_handlers import InThread
from messiahs.daemon.host.host import Host
from messiahs.daemon.storage.documents import Document, time_document
from messiahs.language.explaining.rule_places import rule_lines
from messiahs.language.runtime.compiled_policy import CompiledPolicy


async def explained_module(host: Host, *, has_machine: bool) -> Document:
    """Describe what others know of the own machine, and all requests for it since an instant, with a conclusion."""
    module, now = host.module, host.clock.now()
    policy, counts = queries.policy_of(module.state), queries.requests_here(module.state, now)
    told, machine = queries.disclosed(module.state), queries.advertised(module.state, now)
    document = {
        "name": host.system,
        "at": time_document(now),
        "has_machine": has_machine,
        "has_space": queries.has_space(module.state),
        "lend": lend_document(host),
        "drain": drain_document(host),
        "maintenance": maintenance_document(host),
        "machine": None if machine is None else _machine_document(machine),
        "neighbors": neighbor_documents(told, counts, why_unlinked=queries.why_unlinked(module.state)),
        "own_users": _asker_document(next((each for each in counts.askers if each.system == host.system), None)),
        **await InThread(partial(requests_document, counts, policy, machine=machine)),
    }
    return {**document, "conclusion": conclusion(document)}


def neighbor_documents(
    told: Iterable[Disclosed], counts: RequestCounts, *, why_unlinked: Mapping[SystemId, str]
) -> list[Document]:
    """Describe for each neighbor what it is told of the machine, and what it requested."""
    askers = {each.system: each for each in counts.askers}
    return [
        {
            "system": each.neighbor.system,
            "relation": each.neighbor.relation.value,
            "linked": each.is_linked,
            "why_unlinked": why_unlinked.get(each.neighbor.system, ""),
            "revealed": each.is_revealed,
            "hidden": list(each.hidden),
            "sent": [
                {"kind": sent.kind.name.lower(), "machines": sent.machines, "at": time_document(sent.at)}
                for sent in each.sent
            ],
            **_asker_document(askers.get(each.neighbor.system)),
        }
        for each in told
    ]


def requests_document(counts: RequestCounts, policy: Policy, *, machine: Advertised | None) -> Document:
    """Describe all requests since an instant, and by what they were refused, that which refused most first."""
    here = EMPTY if machine is None else vector_of(SDV(sorted_pairs(machine.here)))
    return {
        "since": time_document(counts.since),
        "requests": counts.requests,
        "tasks": counts.tasks,
        "accepted": counts.granted,
        "places": counts.places,
        "compared": counts.compared,
        "matched": counts.matched,
        "refusals": [_refusal_document(each, policy, here) for each in counts.refusals],
    }


def _machine_document(machine: Advertised) -> Document:
    return {"here": dict(machine.here), "told": dict(machine.told), "kept": list(machine.kept)}


def _asker_document(asked: AskerCount | None) -> Document:
    return {
        "requests": 0 if asked is None else asked.requests,
        "tasks": 0 if asked is None else asked.tasks,
        "accepted": 0 if asked is None else asked.granted,
        "refused": 0 if asked is None else asked.requests - asked.granted,
        "places": 0 if asked is None else asked.places,
        "first_at": None if asked is None else time_document(asked.first_at),
        "last_at": None if asked is None else time_document(asked.last_at),
    }


def _refusal_document(refused: RefusalCount, policy: Policy, here: Vector, /) -> Document:
    """Describe what one gate refused; for a task that does not fit, with what of it does not."""
    lines = rule_lines(policy, refused.rule) if isinstance(policy, CompiledPolicy) else ()
    last, why = refused.last, refused.why
    if not why and here.classes and refused.gate in NOT_FITTING:
        machines = machines_document(last.tdv, last.requirement, here)
        why = "; ".join(f"not {loss['text']}" for loss in machines["lost"])
    return {
        "gate": refused.gate.value,
        "rule": refused.rule,
        "lines": list(lines),
        "text": refused_text(refused.gate, refused.rule, lines),
        "requests": refused.requests,
        "tasks": refused.tasks,
        "example": {
            "at": time_document(refused.at),
            "neighbor": refused.asker,
            "origin": last.origin,
            "tdv": dict(last.tdv.pairs),
            "requirement": last.requirement,
            "tasks": last.count,
            "why": why,
        },
    }
