"""The local API for plans: what would become of tasks if they were submitted now. Nothing is stored or sent."""

from dataclasses import replace
from functools import partial
from typing import Final

from aiohttp import web

from messiahs.core import queries
from messiahs.core.interface.plans import Plan
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MILLISECOND
from messiahs.daemon.api.connection_limits import have_alone
from messiahs.daemon.api.explanations import machines_document, round_document, search_document
from messiahs.daemon.api.paced_handlers import InThread, NextSlice
from messiahs.daemon.api.predecessors import DependencyError
from messiahs.daemon.api.submitted import predecessors_for, refused_dependency, refused_submit, submit_of, submitted_by
from messiahs.daemon.api.task_search import Tasks
from messiahs.daemon.host.host import Host
from messiahs.daemon.host.randomness import SystemRandomness
from messiahs.daemon.storage.documents import Document, after_document, reason_document, time_document

_DECIDE_NS: Final = 2 * MILLISECOND
"""What the decisions of a search are expected to cost."""
_PLANS: Final = 16
"""Descriptions of an array that are planned."""


class PlansApi:
    """Handler of `/v1/plan`, whose body is that of a submit; its key, and whether files are there, do not matter."""

    def __init__(self, host: Host) -> None:
        self._host, self._tasks = host, Tasks(host)

    def routes(self) -> list[web.RouteDef]:
        """Return the path and its handler."""
        return [web.post("/v1/plan", self._plan)]

    async def _plan(self, request: web.Request) -> web.Response:
        await have_alone(request)
        body = await submit_of(request)
        if isinstance(body, web.Response):
            return body
        alone = await submitted_by(request, body, self._host, self._tasks)
        if isinstance(alone, web.Response):
            return alone
        try:
            after = await predecessors_for(request, body, self._host, self._tasks)
        except DependencyError as error:
            return refused_dependency(error)
        await NextSlice(_DECIDE_NS)
        event, now = replace(alone, after=after), self._host.clock.now()
        plans = queries.plans_of(self._host.module.state, event, SystemRandomness(), most=_PLANS, now=now)
        if isinstance(plans, str):
            return refused_submit(plans)
        first, *others = [await self._document(plan) for plan in plans]
        return web.json_response({**first, "others": others})

    async def _document(self, plan: Plan) -> Document:
        module, own = self._host.module, self._host.system
        present = queries.round_of(module.state, plan.tdv, plan.requirement) if plan.ahead else None
        known = queries.known_machines(module.state)
        return {
            **plan_document(plan, own=own),
            "round": None if present is None else round_document(present),
            "last_search": None
            if present is None or present.search is None
            else search_document(present.search, own=own),
            "machines": await InThread(partial(machines_document, plan.tdv, plan.requirement, known)),
        }


def plan_document(plan: Plan, *, own: SystemId) -> Document:
    """Describe a plan, without what waits now, and without the machines that fit."""
    return {
        "at": time_document(plan.at),
        "outcome": plan.outcome.value,
        "is_sure": plan.is_sure,
        "is_known": plan.is_known,
        "tdv": dict(plan.tdv.pairs),
        "requirement": plan.requirement,
        "tasks": plan.tasks,
        "descriptions": plan.descriptions,
        "ahead": plan.ahead,
        "after": after_document(plan.awaited, is_taken=False),
        "held": [{"system": each.system, "tasks": each.tasks} for each in plan.held],
        "search": None if plan.search is None else search_document(plan.search, own=own),
        "likely": list(plan.likely),
        "asks": plan.asks,
        "reasons": [reason_document(each, own=own) for each in plan.reasons],
    }
