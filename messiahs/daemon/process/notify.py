"""Reports of a daemon to the service manager that started it, in the protocol of systemd (sd_notify).

The service manager names a datagram socket in `NOTIFY_SOCKET`. Without it, nothing is sent.
"""

import asyncio
import os
import socket
import time
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from typing import Final, Self

_VARIABLES: Final = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
_NS_PER_USEC: Final = 1_000
_USEC_PER_SECOND: Final = 1_000_000
_STATUS_LENGTH: Final = 200


class Notifier:
    """The reports of one process (mutable: it remembers the last status). No report can block or fail."""

    def __init__(self, address: str = "", *, watchdog_seconds: float = 0.0) -> None:
        self._address, self.watchdog_seconds = address, watchdog_seconds
        self._status = ""

    @classmethod
    def of_environment(cls, environment: MutableMapping[str, str] = os.environ) -> Self:
        """Return the notifier that the service manager asked for, and remove its variables.

        Processes that this one starts do not report for it. A watchdog for another process is ignored.
        """
        address, usec, pid = (environment.pop(name, "") for name in _VARIABLES)
        is_watched = usec.isascii() and usec.isdigit() and pid in {"", str(os.getpid())}
        return cls(address, watchdog_seconds=int(usec) / _USEC_PER_SECOND if is_watched else 0.0)

    def ready(self) -> None:
        """Report that the module serves its users, or does so again after `reloading`."""
        self._send("READY=1")

    def reloading(self) -> None:
        """Report that the administrator's files are being read again; `ready` follows."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // _NS_PER_USEC}")

    def stopping(self) -> None:
        """Report that the module ends."""
        self._send("STOPPING=1")

    def status(self, text: str) -> None:
        """Report one line for people, unless it was the last one as well."""
        line = " ".join(text.split())[:_STATUS_LENGTH]
        if line != self._status:
            self._status = line
            self._send(f"STATUS={line}")

    async def watch(self, status: Callable[[], str]) -> None:
        """Report every half of the watchdog's time that the event loop runs, until cancelled.

        If the loop is frozen for the watchdog's time, the service manager ends and restarts the process. `status` is
        reported as often, and without a watchdog once.
        """
        self.status(status())
        while self.watchdog_seconds:
            self._send("WATCHDOG=1")
            await asyncio.sleep(self.watchdog_seconds / 2)
            self.status(status())

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        # A leading @ stands for the zero byte of the abstract names of Linux.
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto("\n".join(lines).encode(), address)
