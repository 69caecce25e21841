"""How a submit says that its user is to be notified of the end (`--notify`), and who may read what came of it."""

from typing import Final

from aiohttp import web

from messiahs.core.interface.notifications import Notification
from messiahs.core.model.webhooks import problem_of
from messiahs.daemon.api.requests import uid_of, user_of
from messiahs.daemon.api.submit_body import TasksBody
from messiahs.daemon.host.host import Host
from messiahs.daemon.storage.documents import Document

_LIMIT_BYTES: Final = 4_096


def notification_of(body: TasksBody, request: web.Request, host: Host, /) -> Notification | str | None:
    """Return how the user is to be notified, None for not at all, or why that is refused."""
    if not body.notify:
        return None
    try:
        size = len(body.notify.encode())
    except UnicodeEncodeError:
        return "--notify: the command is not UTF-8"
    if size > _LIMIT_BYTES or "\0" in body.notify:
        return f"--notify: a command has at most {_LIMIT_BYTES} bytes, and no NUL: write it into a file"
    if problem := problem_of(body.notify):
        return problem
    notification = Notification(text=body.notify, uid=uid_of(request))
    return host.notifications.why_not(notification) or notification


def as_seen_by(request: web.Request, document: Document, /) -> Document:
    """Return the description of a task without what its command has printed, unless its user or root asks."""
    notified = document.get("notified")
    if not notified or uid_of(request) == 0 or document["user"] == user_of(request):
        return document
    return {**document, "notified": {**notified, "output": ""}}
