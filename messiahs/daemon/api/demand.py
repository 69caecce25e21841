"""The document on unmet demand: what tasks lacked here and below, for those who plan capacity."""

from messiahs.core import queries
from messiahs.core.model.demand import Demand, DemandSize, total_of
from messiahs.daemon.host.host import Host
from messiahs.daemon.storage.documents import Document, time_document


def demand_document(host: Host) -> Document:
    """Describe the demand of the own users, of each child, of all, and what the parent gets."""
    now = host.clock.now()
    report = queries.demand_report(host.module.state, now)
    return {
        "system": host.system,
        "at": time_document(now),
        "since": time_document(report.since),
        "total": classes_document(report.total),
        "own": classes_document(report.own),
        "children": {system: classes_document(demand) for system, demand in sorted(report.children.items())},
        "parent": report.parent,
        "given": classes_document(report.given),
    }


def classes_document(demand: Demand) -> Document:
    """Describe unmet demand: its classes, and their sum."""
    classes = [
        {
            "capacity": each.key.capacity,
            "busy": each.key.is_busy,
            "amount": each.key.amount,
            "arch": each.key.arch,
            "os": each.key.os,
            **_size(each.size),
        }
        for each in demand
    ]
    return {**_size(total_of(demand)), "classes": classes}


def _size(size: DemandSize) -> Document:
    return {
        "tasks": size.tasks,
        "processors": size.processors,
        "wanted_s": size.wanted_s,
        "denied": size.denied,
    }
