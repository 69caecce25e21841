"""Sending spans to a collector from a thread of its own, in which nothing that the collector does delays the module."""

import asyncio
import logging
import ssl
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

from messiahs.config.regular_files import read_regular
from messiahs.config.settings import OtlpSettings
from messiahs.daemon.otlp.attempt_spans import AttemptSpan
from messiahs.daemon.process.http_errors import explained_http
from messiahs.daemon.process.refusal_log import RefusalLog
from messiahs.errors import MessiahsError

_LOG = logging.getLogger(__name__)
QUEUE_LIMIT: Final = 8_192
"""Spans that wait; with those of one request beside them. Further ones are dropped."""
_BATCH: Final = 512
_GATHER_SECONDS: Final = 1.0
_ANSWER_SECONDS: Final = 10.0
_LONGEST_PAUSE_SECONDS: Final = 60.0
_LAST_SECONDS: Final = 2.0
"""For the last spans, when the module stops."""
_JOIN_SECONDS: Final = 4.0
_HEADERS: Final = {"Content-Type": "application/x-protobuf"}
_GOOD: Final = range(200, 300)
_NO_ANSWER: Final = 0
_LATER: Final = frozenset((_NO_ANSWER, 429, 502, 503, 504))
"""Statuses after which OTLP lets a sender try again."""


@dataclass(slots=True)
class SpanCounts:
    """What became of spans since the start (mutable); each number has one thread that changes it."""

    sent: int = 0
    refused: int = 0
    """Dropped because the collector refused them, or could not be asked until the module stopped."""
    overflowed: int = 0
    """Dropped because too many waited."""

    @property
    def dropped(self) -> int:
        """The number of spans that no collector has."""
        return self.refused + self.overflowed


class SpanSender:
    """Holds spans until its thread has sent them (mutable). `put` never waits, and drops what is too much."""

    def __init__(
        self, settings: OtlpSettings, encode: Callable[[list[AttemptSpan]], bytes], counts: SpanCounts
    ) -> None:
        """Read the roots; raises a `MessiahsError` if they are of no use. `encode` runs in the thread."""
        self._endpoint, self._encode, self._counts = settings.endpoint, encode, counts
        parts = urlsplit(settings.endpoint)
        self._name = f"the collector {parts.netloc}"
        self._tls = _context_of(settings) if parts.scheme == "https" else None
        self._failures = RefusalLog()
        self._noted_overflows = 0
        self._waiting: deque[AttemptSpan] = deque()
        self._woken, self._stopping = asyncio.Event(), asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._limit: asyncio.Timeout | None = None

    def put(self, span: AttemptSpan) -> None:
        """Send a span soon, or drop it if too many wait."""
        if len(self._waiting) >= QUEUE_LIMIT:
            self._counts.overflowed += 1
            return
        self._waiting.append(span)
        if self._loop is not None and len(self._waiting) in (1, _BATCH):
            self._call(self._loop, self._woken.set)

    def start(self) -> None:
        """Send from now on."""
        self._loop = asyncio.new_event_loop()
        # The process can end without it, whatever it waits for.
        self._thread = threading.Thread(target=self._work, args=(self._loop,), name="otlp", daemon=True)
        self._thread.start()
        _LOG.info("spans are sent to %s", self._name)

    async def stop(self) -> None:
        """Send what waits, for a short time; what is left then is dropped."""
        if self._loop is None or self._thread is None:
            return
        self._call(self._loop, self._begin_to_stop)
        await asyncio.to_thread(self._thread.join, _JOIN_SECONDS)

    def _call(self, loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
        # The loop is closed once the thread has ended.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(function)

    def _begin_to_stop(self) -> None:
        self._stopping.set()
        self._woken.set()
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time() + _LAST_SECONDS)

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_until_complete(self._send_until_stopped())
        except Exception:  # noqa: BLE001 - the module works without it, and the log says why
            _LOG.exception("this is a bug; no more spans are sent")
        finally:
            loop.close()

    async def _send_until_stopped(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as self._limit:
                await self._send()
        self._counts.refused += len(self._waiting)
        if self._counts.dropped:
            counts = (self._counts.dropped, self._counts.sent)
            _LOG.warning("%s: %d spans were dropped since the start of this module, and %d sent", self._name, *counts)

    async def _send(self) -> None:
        timeout, connector = ClientTimeout(total=_ANSWER_SECONDS), TCPConnector(ssl=self._tls or True)
        async with ClientSession(
            connector=connector, timeout=timeout, cookie_jar=DummyCookieJar(), auto_decompress=False
        ) as session:
            while self._waiting or not self._stopping.is_set():
                if not self._waiting:
                    await self._woken.wait()
                self._woken.clear()
                if len(self._waiting) < _BATCH and not self._stopping.is_set():
                    await _wait(self._woken, _GATHER_SECONDS)
                while self._waiting:
                    await self._send_batch(session)

    async def _send_batch(self, session: ClientSession) -> None:
        """Send the oldest spans that wait, again and again while a failure may pass; after another one, drop them."""
        batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
        body, pause_seconds, is_sent = self._encode(batch), 1.0, False
        try:
            while (status := await self._post(session, body)) in _LATER and not self._stopping.is_set():
                await _wait(self._stopping, pause_seconds)
                pause_seconds = min(_LONGEST_PAUSE_SECONDS, 2 * pause_seconds)
            is_sent = status in _GOOD
        finally:
            # It may be cancelled as well.
            self._counts.sent += len(batch) * is_sent
            self._counts.refused += len(batch) * (not is_sent)
        if self._counts.overflowed > self._noted_overflows:
            self._noted_overflows = self._counts.overflowed
            self._failures.note(self._name, "too many spans wait for it, and further ones are dropped")

    async def _post(self, session: ClientSession, body: bytes) -> int:
        """Return the status of the answer, of which nothing else is read; one of `_LATER` if none came."""
        try:
            # To follow a redirection would be to give spans to a host that nobody has named.
            posting = session.post(self._endpoint, data=body, headers=_HEADERS, allow_redirects=False)
            async with posting as answer:
                status = answer.status
        except Exception as error:  # noqa: BLE001 - whatever an answer causes, the next one may be better
            self._failures.note(self._name, f"spans wait: {explained_http(error, seconds=_ANSWER_SECONDS)}")
            return _NO_ANSWER
        if status not in _GOOD:
            self._failures.note(
                self._name, f"{'spans wait' if status in _LATER else 'spans are dropped'}: it answered {status}"
            )
        return status


async def _wait(event: asyncio.Event, seconds: float) -> None:
    """Return when an event is set, at the latest after some seconds."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)


def _context_of(settings: OtlpSettings) -> ssl.SSLContext:
    if settings.roots is None:
        return ssl.create_default_context()
    what = f"`roots` of `otlp` in the topology, {settings.roots},"
    try:
        return ssl.create_default_context(cadata=read_regular(settings.roots).decode())
    except ssl.SSLError as error:
        raise MessiahsError(f"{what} has no certificates in PEM that can be used: {error}") from error
    except OSError as error:
        raise MessiahsError(f"{what} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise MessiahsError(f"{what} is no file of certificates in PEM: {error}") from error
