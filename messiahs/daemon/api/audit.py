"""The local API for the audit log: what crossed the links with neighbors under another administration."""

import re
from functools import partial
from typing import Final

from aiohttp import web

from messiahs.core import queries
from messiahs.core.interface.audit_row import AuditRow, CrossedTasks
from messiahs.daemon.api.paced_handlers import InThread
from messiahs.daemon.api.policy import is_owner
from messiahs.daemon.api.requests import refusal
from messiahs.daemon.host.host import Host
from messiahs.daemon.storage.documents import Document, time_document

_NUMBER: Final = re.compile(r"[0-9]{1,18}")


class AuditApi:
    """The audit log, page by page; only root and the module's own user may read it."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def routes(self) -> list[web.RouteDef]:
        """Return the path and its handler."""
        return [web.get("/v1/audit", self._page)]

    async def _page(self, request: web.Request) -> web.Response:
        """Answer with the rows above the number `after`, in order, as they are now; without rows it is the end."""
        if not is_owner(request):
            return refusal(403, "only root and the user of this module may read its audit log")
        after = request.query.get("after", "0")
        if not _NUMBER.fullmatch(after):
            return refusal(400, "`after` is no number of a row")
        stored = await InThread(partial(self._host.store.audit_page, int(after)))
        unstored = queries.unstored_audit_rows(self._host.module.state)
        rows = [unstored.get(row.number, row) for row in stored]
        if not rows:
            rows = [row for row in unstored.values() if row.number > int(after)]
        return web.json_response({"rows": [_document(row) for row in rows]})


def _document(row: AuditRow) -> Document:
    return {
        "number": row.number,
        "began_at": time_document(row.began_at),
        "latest_at": time_document(row.latest_at),
        "neighbor": row.neighbor,
        "direction": "out" if row.is_outward else "in",
        "what": row.what.value,
        "count": row.count,
        "code": row.code,
        "text": row.text,
        "in_bytes": row.in_bytes,
        "out_bytes": row.out_bytes,
        **(_tasks(row.tasks) if row.tasks is not None else {}),
    }


def _tasks(tasks: CrossedTasks) -> Document:
    shown = tasks.shown_submission
    return {
        "submission": str(tasks.submission),
        "user": tasks.user,
        "shown_submission": str(shown) if shown is not None else str(tasks.submission),
        "shown_user": tasks.shown_user or tasks.user,
        "ended": {state.value: count for state, count in tasks.ended},
        "input_bytes": tasks.input_bytes,
        "output_bytes": tasks.output_bytes,
    }
