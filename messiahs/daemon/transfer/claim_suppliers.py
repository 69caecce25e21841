"""Who sends files for a claim: the systems on its path, and those that dial straight (MESSIAHS 5.3.3)."""

from collections.abc import Callable, Collection
from typing import Final

from messiahs.core.model.ids import ClaimId, SystemId
from messiahs.errors import DeclinedError

SUPPLIER_LIMIT: Final = 16


class ClaimSuppliers:
    """The suppliers of each claim, of which there are not many. Belongs to the event loop."""

    def __init__(self, is_known: Callable[[ClaimId], bool]) -> None:
        self._is_known = is_known
        self._suppliers: dict[ClaimId, dict[str, None]] = {}

    def add(self, claim: ClaimId, supplier: str, *, own: SystemId) -> None:
        """Note a supplier of a claim; `DeclinedError` if the claim has too many."""
        known = self._suppliers.setdefault(claim, {})
        if supplier not in known and len(known) >= SUPPLIER_LIMIT:
            raise DeclinedError(f"{own}: {SUPPLIER_LIMIT} systems have sent files for this claim, as many as may")
        known[supplier] = None

    def forget_ended(self) -> dict[ClaimId, Collection[str]]:
        """Forget claims that are not known any more, and return them with their suppliers."""
        ended = [claim for claim in self._suppliers if not self._is_known(claim)]
        return {claim: self._suppliers.pop(claim) for claim in ended}
