"""Machines as an origin can tell them apart (MESSIAHS 4: a proxy represents the systems behind it).

An executor behind the border of its site has the border's name in its claims. Its accepts carry a place: bytes that are
the same for all claims of one machine, and that only the border understands.
"""

import hashlib
from typing import NamedTuple

from messiahs.core.model.ids import ClaimId, Epoch, SearchId, SystemId

PLACE_BYTES = 16


class Machine(NamedTuple):
    """The machine of a claim; `place` tells machines behind one border apart, and is empty for an executor's name."""

    executor: SystemId
    epoch: Epoch
    place: bytes = b""

    @property
    def mark(self) -> bytes:
        """What identifies the machine in digests, also in another epoch of its executor."""
        return self.place or self.executor.encode()


def machine_of(claim: ClaimId, place: bytes) -> Machine:
    """Return the machine on which a claim was granted."""
    return Machine(claim.executor, claim.epoch, place)


def digest_of(mark: bytes, search: SearchId) -> bytes:
    """Return a digest that identifies a machine in one search to those who know its mark, and to no one else."""
    return hashlib.sha256(search + mark).digest()[:PLACE_BYTES]
