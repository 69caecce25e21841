"""Webhooks: the end of a task is posted as JSON to a host that the administrator allows, and to no other."""

from typing import Final
from urllib.parse import urlsplit

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar

from messiahs.core.interface.notifications import NotificationRow
from messiahs.daemon.notifications.commands import Outcome
from messiahs.daemon.process.http_errors import explained_http
from messiahs.daemon.storage.documents import Document, time_document

_SECONDS: Final = 10.0
_PORTS: Final = {"https": 443, "http": 80}
_GOOD: Final = range(200, 300)
_ELSEWHERE: Final = range(300, 400)
_LATER: Final = frozenset((408, 425, 429, *range(500, 600)))
"""Statuses after which another try may succeed."""


class Webhooks:
    """Posts to the `hosts` that are allowed, `HOST` (at the usual ports) or `HOST:PORT` (mutable)."""

    def __init__(self, hosts: tuple[str, ...]) -> None:
        self._hosts = frozenset(hosts)
        self._session: ClientSession | None = None

    def why_not(self, url: str) -> str:
        """Return why nothing is posted to a URL; empty if that is allowed."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            return f"--notify: {url.partition('?')[0]} is no URL: {error}"
        if not parts.hostname or not url.isascii() or not url.isprintable() or " " in url:
            return "--notify: the URL of a webhook has a host, and no blanks or special characters"
        if parts.username is not None:
            return "--notify: the URL of a webhook has no user and password"
        name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        is_usual = port is None or port == _PORTS[parts.scheme]
        if (name if is_usual else f"{name}:{port}") in self._hosts or (is_usual and f"{name}:{port}" in self._hosts):
            return ""
        allowed = f"only {', '.join(sorted(self._hosts))}" if self._hosts else "no host"
        where = name if is_usual else f"{name}:{port}"
        return f"--notify: this module does not post to {where}: `webhook_hosts` in its topology file names {allowed}"

    async def post(self, notice: NotificationRow) -> Outcome:
        """Post the end of a submission; nothing of the answer counts but its status."""
        if self._session is None:
            self._session = ClientSession(
                timeout=ClientTimeout(total=_SECONDS), cookie_jar=DummyCookieJar(), auto_decompress=False
            )
        try:
            # To follow a redirection would be to ask a host that nobody has allowed.
            posting = self._session.post(notice.notification.text, json=document_of(notice), allow_redirects=False)
            async with posting as answer:
                status = answer.status
        except (ClientError, TimeoutError, OSError) as error:
            why = explained_http(error, seconds=_SECONDS)
            return Outcome(problem=f"the webhook cannot be reached: {why}", may_help_again=True)
        if status in _GOOD:
            return Outcome()
        why = ", and redirections are not followed" if status in _ELSEWHERE else ""
        return Outcome(problem=f"the webhook answered {status}{why}", may_help_again=status in _LATER)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()


def document_of(notice: NotificationRow) -> Document:
    """Return all that a webhook is told."""
    return {
        "id": str(notice.id),
        "name": notice.name,
        "state": notice.state.value,
        "exit_code": notice.exit_code,
        "submitted_at": time_document(notice.submitted_at),
        "ended_at": time_document(notice.ended_at),
    }
