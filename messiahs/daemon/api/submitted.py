"""What a user submits, as the core takes it: the checks that a submit and a plan have in common."""

import msgspec
from aiohttp import web

from messiahs.core.interface.dependencies import Predecessor
from messiahs.core.interface.events import Submitted
from messiahs.core.model.descriptions import TDV, sorted_pairs
from messiahs.daemon.api.notifying import notification_of
from messiahs.daemon.api.paced_handlers import in_slices
from messiahs.daemon.api.predecessors import DependencyError, ends_named, predecessors_named
from messiahs.daemon.api.requests import body_of, refusal, status_of, user_of
from messiahs.daemon.api.submit_body import LISTS, SubmitBody, own_key, submitting
from messiahs.daemon.api.submit_checks import checking, problem_of_key
from messiahs.daemon.api.submit_room import why_no_room
from messiahs.daemon.api.task_search import Tasks
from messiahs.daemon.host.host import Host


async def submit_of(request: web.Request) -> SubmitBody | web.Response:
    """Return the valid body of a request, or a refusal."""
    try:
        body = await body_of(request, SubmitBody, LISTS)
    except msgspec.MsgspecError as error:
        return refusal(400, f"the request is not a submit: {error}")
    problem = problem_of_key(body.key) or await in_slices(checking(body))
    return refusal(400, problem) if problem else body


async def submitted_by(request: web.Request, body: SubmitBody, /, host: Host, tasks: Tasks) -> Submitted | web.Response:
    """Return the event of a valid body without the tasks that it waits for, or a refusal."""
    user = user_of(request)
    notification = notification_of(body, request, host)
    if isinstance(notification, str):
        return refusal(403, notification)
    key = own_key(user, body.key)
    if why := why_no_room(host.store, user, is_known=tasks.has_key(key)):
        return refusal(507, why)
    tdv = TDV(sorted_pairs({"cpus": 1, **body.tdv, "origin": host.system, "user": user}))
    return await in_slices(submitting(body, tdv, key=key, notification=notification))


async def predecessors_for(
    request: web.Request, body: SubmitBody, /, host: Host, tasks: Tasks
) -> tuple[Predecessor, ...]:
    """Return the tasks for which those of a body wait, with how they have ended; raises `DependencyError`."""
    ends = await ends_named(body.after, tasks)
    return await predecessors_named(
        body.after, tasks, ends=ends, members=body.members, user=user_of(request), here=host.system
    )


def refused_dependency(error: DependencyError) -> web.Response:
    """Return the refusal of a submit that depends on something that it cannot depend on."""
    return refusal(403 if error.is_of_another_user else 400, str(error), unknown_task=error.unknown)


def refused_submit(problem: str) -> web.Response:
    """Return the refusal of a submit for a reason that the core has found."""
    return refusal(status_of(problem, otherwise=400), problem)
