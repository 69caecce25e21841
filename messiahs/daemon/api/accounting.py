"""The local API for the ledger: processor time by neighbor, user and day."""

from datetime import UTC, datetime

from aiohttp import web

from messiahs.core import queries
from messiahs.core.interface.ledger_rows import NeighborAccountRow, UsageRow
from messiahs.core.model.instants import HOUR, SECOND
from messiahs.daemon.api.policy import is_owner
from messiahs.daemon.api.requests import user_of
from messiahs.daemon.host.host import Host
from messiahs.daemon.storage.documents import Document, time_document


class AccountingApi:
    """The ledger; other users than root and the module's own read what they have used themselves."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def routes(self) -> list[web.RouteDef]:
        """Return the path and its handler."""
        return [web.get("/v1/accounting", self._accounting)]

    async def _accounting(self, request: web.Request) -> web.Response:
        """Answer with the usage of each day that is kept, and the accounts of neighbors since they began.

        `only_user` is the user whose usage this is; None if it is all.
        """
        own = queries.system_of(self._host.module.state)
        usage = queries.usage_rows(self._host.module.state)
        accounts = queries.neighbor_accounts(self._host.module.state)
        only_user = None if is_owner(request) else user_of(request)
        if only_user is not None:
            usage = tuple(row for row in usage if row.parties.sink == own and row.parties.user == only_user)
            accounts = ()
        return web.json_response(
            {
                "system": own,
                "only_user": only_user,
                "usage": [_usage(row) for row in usage],
                "neighbors": [_account(row) for row in accounts],
            }
        )


def _usage(row: UsageRow) -> Document:
    parties = row.parties
    return {
        "day": datetime.fromtimestamp(row.day * 24 * HOUR // SECOND, UTC).date().isoformat(),
        "given_by": parties.source,
        "given_to": parties.sink,
        "origin": parties.origin,
        "user": parties.user,
        "account": parties.account,
        "processor_s": row.processor_ns / SECOND,
        "used_s": row.used_ns / SECOND,
    }


def _account(row: NeighborAccountRow) -> Document:
    return {
        "neighbor": row.system,
        "since": time_document(row.since),
        "given_s": row.given_ns / SECOND,
        "given_used_s": row.given_used_ns / SECOND,
        "taken_s": row.taken_ns / SECOND,
        "taken_used_s": row.taken_used_ns / SECOND,
        "balance_s": row.balance_ns / SECOND,
    }
