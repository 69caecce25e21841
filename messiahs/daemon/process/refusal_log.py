"""Failures of connections in the daemon's log: each once, until the link is up again."""

import logging
import time
from collections.abc import Callable
from typing import Final

_LOG = logging.getLogger("messiahs.daemon")
REMINDER_SECONDS: Final = 3_600.0
"""A failure that goes on is written again after this time."""
_PEER_LIMIT: Final = 1_024
_TEXT_LIMIT: Final = 16
"""Different failures of one peer that are written within an hour; streams to it may fail for different reasons."""
_MORE: Final = "further failures differ, and are written after an hour"


class RefusalLog:
    """Writes failures that peers cause, without those that repeat: streams are tried again every second (mutable)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._written: dict[str, dict[str, float]] = {}

    def note(self, peer: str, text: str) -> None:
        """Write a failure; one that was written within the last hour and since the last link is omitted.

        Of a peer that fails in ever new ways, the first ones are written in an hour.
        """
        # Without its port, which differs for every connection.
        host, _, port = peer.rpartition(":")
        name = host if host and port.isdigit() else peer
        now, before = self._clock(), self._written.pop(name, {})
        texts = {each: since for each, since in before.items() if now - since < REMINDER_SECONDS}
        # Some texts contain what the peer said, and would differ each time.
        said = text if len(texts) < _TEXT_LIMIT or text in texts else _MORE
        if said not in texts:
            texts[said] = now
            _LOG.warning("%s: %s", peer, said)
        # Ordered by use; the least recently used peer makes room.
        self._written[name] = texts
        if len(self._written) > _PEER_LIMIT:
            del self._written[next(iter(self._written))]

    def forget(self, peer: str) -> None:
        """Write the next failure of a peer in any case: its link is up."""
        self._written.pop(peer, None)
