"""The network of a slot whose tasks reach nothing else: a new one for each task that may have left something in it.

That is a connection, or a socket that somebody outside of the sandbox has open: then the next task would be reached
through it. A new network costs more than a short task, so it is kept where the kernel shows that there is neither.
"""

from messiahs.executor.linux import namespaces
from messiahs.executor.starter.sandbox.loopback import Loopback


class OwnNetwork:
    """A network with a loopback, which is down for `none` (mutable)."""

    def __init__(self, network: str) -> None:
        self._network = network
        self._loopback: Loopback | None = None

    def enter(self) -> None:
        """Enter a new network. Raises `OSError`."""
        namespaces.unshare(namespaces.NEW_NETWORK)
        if self._network == "loopback":
            namespaces.raise_loopback()

    def watch(self) -> None:
        """Look at what is sent from now on. Raises `OSError`."""
        if self._loopback is not None:
            self._loopback.close()
        self._loopback = Loopback()

    def renew(self, *, was_alone: bool) -> None:
        """Have a network without anything of the last task, which may have handed sockets over. Raises `OSError`."""
        if not was_alone or self._loopback is None or self._loopback.is_used:
            self.enter()
            self.watch()
