"""What `explain` adds to the state of a task: whom its search has asked, what it waits for, and what would help."""

from functools import partial

from messiahs.core import queries
from messiahs.core.interface.limits import SHAPE_LIMIT
from messiahs.core.interface.messages import TaskState
from messiahs.core.interface.search_record import AskedSystem, SearchRecord
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import SystemId
from messiahs.core.origin.array_members import tdv_of
from messiahs.core.origin.waiting import Round
from messiahs.core.vectors.vectors import Vector
from messiahs.daemon.api.paced_handlers import InThread
from messiahs.daemon.api.task_search import Found, Tasks
from messiahs.daemon.host.host import Host
from messiahs.daemon.storage.documents import Document, reason_document, time_document
from messiahs.language.explaining.fitting_machines import fitting_machines
from messiahs.language.predicate.predicates import parse_predicate
from messiahs.language.runtime.class_explanation import Machines

_CHANGES_LIMIT = 8


class Explanations:
    """What one request is told (mutable): for tasks of one shape, machines are matched once."""

    def __init__(self, host: Host, tasks: Tasks) -> None:
        self._host, self._tasks = host, tasks
        self._machines: dict[tuple[TDV, str], Document] = {}

    async def document(self, found: Found) -> Document:
        """Describe a task as `Tasks.document` does, with `search`, `round` and `machines` unless it is an array."""
        document = await self._tasks.document(found)
        if found.row is None:
            return document
        module, requirement = self._host.module, found.submission.requirement
        tdv, is_placing = tdv_of(found.submission, found.id.member), self._tasks.awaits_place(found)
        present = queries.round_of(module.state, tdv, requirement) if is_placing else None
        search = found.row.search if present is None else present.search
        has_machines = is_placing or found.row.state is TaskState.DENIED
        return {
            **document,
            "search": None if search is None else search_document(search, own=self._host.system),
            "round": None if present is None else round_document(present),
            "machines": await self._machines_for(tdv, requirement) if has_machines else None,
        }

    async def _machines_for(self, tdv: TDV, requirement: str) -> Document:
        found = self._machines.get((tdv, requirement))
        if found is None:
            known = queries.known_machines(self._host.module.state)
            found = await InThread(partial(machines_document, tdv, requirement, known))
            if len(self._machines) == SHAPE_LIMIT:
                self._machines.clear()
            self._machines[tdv, requirement] = found
        return found


def round_document(present: Round) -> Document:
    """Describe what tasks without a place wait for."""
    return {
        "is_searching": present.is_searching,
        "asking": present.asking,
        "next_at": None if present.is_searching else time_document(present.next_at),
    }


def search_document(search: SearchRecord, *, own: SystemId) -> Document:
    """Describe a search: each system in its order, and those that were left out."""
    return {
        "at": time_document(search.at),
        "order": [_asked_document(each, own=own) for each in search.order],
        "left_out": [{"system": each.system, "code": each.code.value} for each in search.left_out],
        "unlisted": search.unlisted,
    }


def machines_document(tdv: TDV, requirement: str, known: Vector, /) -> Document:
    """Describe how many machines fit a task, and what would have to change so that more do."""
    found = fitting_machines(tdv, parse_predicate(requirement), known)
    return {
        "known": found.known,
        **_counts(found.fitting),
        "lost": [{"text": loss.text, **_counts(loss.machines)} for loss in found.losses],
        "changes": [{"text": change.text, **_counts(change.machines)} for change in found.changes[:_CHANGES_LIMIT]],
    }


def _asked_document(asked: AskedSystem, *, own: SystemId) -> Document:
    return {
        "system": asked.system,
        "why": asked.why,
        "answer": asked.answer,
        "places": asked.places,
        "reasons": [reason_document(reason, own=own) for reason in asked.reasons],
    }


def _counts(machines: Machines) -> Document:
    return {"least": machines.surely, "most": machines.could}
