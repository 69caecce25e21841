"""The network of a slot whose tasks reach nothing else: a new one for each task that may have left a connection in it.

A new network costs more than a short task, so it is kept where the kernel shows that nothing was sent.
"""

from typing import Final

from messiahs.executor.linux import namespaces
from messiahs.executor.starter.sandbox.loopback import Loopback

LOOPBACK: Final = "loopback"
"""The network whose loopback is up."""


class OwnNetwork:
    """A network with a loopback, which is down for `none` (mutable)."""

    def __init__(self, network: str) -> None:
        self._network = network
        self._loopback: Loopback | None = None

    def enter(self) -> None:
        """Enter a new network. Raises `OSError`."""
        namespaces.unshare(namespaces.NEW_NETWORK)
        if self._network == LOOPBACK:
            namespaces.raise_loopback()

    def watch(self) -> None:
        """Look at what is sent from now on. Raises `OSError`."""
        if self._loopback is not None:
            self._loopback.close()
        self._loopback = Loopback()

    def renew(self) -> None:
        """Have a network without anything of the last task. Raises `OSError`."""
        if self._loopback is None or self._loopback.is_used:
            self.enter()
            self.watch()
