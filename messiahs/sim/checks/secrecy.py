"""No name, address, key or account from behind a border in any message that leaves its site (MESSIAHS 4).

The bytes of each message are searched as they are on the wire, whatever its kind is.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from messiahs.core.model.ids import SystemId
from messiahs.sim.world.sites import key_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrecy:
    """The systems `inside` each border, those that are `beside` it within its site, and the names of all users.

    Beside a border are those systems behind it that no other border separates from it.
    """

    inside: Mapping[SystemId, frozenset[SystemId]]
    beside: Mapping[SystemId, frozenset[SystemId]]
    users: tuple[str, ...] = ()

    def why_wrong(self, sender: SystemId, to: SystemId, body: bytes, /) -> str:
        """Return what is wrong with a message: it leads past a border, or carries what is hidden; empty if nothing is.

        A system may be behind several borders, each of which is then a way out of its site.
        """
        for border, inside in self.inside.items():
            is_from, is_to = (each == border or each in inside for each in (sender, to))
            if is_from == is_to:
                continue
            if border not in (sender, to) and not self._share_site(sender, to):
                return f"{sender} sends to {to} past the border {border}"
            hidden = self._hidden(border, to) if sender == border else ()
            found = next((each for each in hidden if each in body), None)
            if found is not None:
                return f"{found!r} behind {border} is in a message from there to {to}"
        return ""

    def _share_site(self, *systems: SystemId) -> bool:
        return any({border, *beside}.issuperset(systems) for border, beside in self.beside.items())

    def _hidden(self, border: SystemId, to: SystemId) -> tuple[bytes, ...]:
        """Return what a border hides from a system: not the names of those with which that shares another border."""
        inside = [each for each in sorted(self.inside[border]) if not self._share_site(each, to)]
        return (*(name.encode() for name in inside), *map(key_of, inside), *(user.encode() for user in self.users))


NO_SECRECY = Secrecy(inside={}, beside={})
"""That of a federation without borders."""
