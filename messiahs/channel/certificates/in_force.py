"""The certificate, key, roots and revocations that a module uses now: they change without a restart."""

from collections.abc import Callable

from messiahs.channel.certificates.own_certificate import READMITTANCE
from messiahs.channel.certificates.tls import TlsMaterial


class TlsInForce:
    """What a module uses now (mutable). Belongs to the event loop; `now` may be read from any thread."""

    def __init__(self, material: TlsMaterial) -> None:
        self.now = material
        self._listeners: list[Callable[[], None]] = []

    def on_changed(self, listener: Callable[[], None]) -> None:
        """Call a function after each change."""
        self._listeners.append(listener)

    def note(self) -> str:
        """Return what is wrong with the certificate of this module, or will be soon, with the remedy; or ""."""
        own = self.now.own
        if self.now.revocations.holds_any(self.now.certificate):
            return (
                f"the certificate of this module, {own.file}, was revoked: no other module accepts it; {READMITTANCE}"
            )
        return own.note()

    def use(self, material: TlsMaterial) -> None:
        """Use other material from now on: for new connections, and against peers that it revokes."""
        if material == self.now:
            return
        self.now = material
        for listener in self._listeners:
            listener()


def in_force(tls: TlsMaterial | TlsInForce) -> TlsInForce:
    """Return material that may change; what is given as such stays the same object."""
    return tls if isinstance(tls, TlsInForce) else TlsInForce(tls)
