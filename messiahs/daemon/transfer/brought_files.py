"""Which files each claim has brought, and how large they are together (MESSIAHS 5.3.3)."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from messiahs.core.model.ids import ClaimId
from messiahs.wire.codec import PutFile


@dataclass(slots=True)
class _Brought:
    """What one claim has brought (mutable): the size of each file, and the number of its latest note."""

    files: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    size_bytes: int = 0


class BroughtFiles:
    """The files that arrived for each claim, added up as they are noted. Belongs to the event loop."""

    def __init__(self) -> None:
        self._claims: dict[ClaimId, _Brought] = {}
        self._notes = 0

    def note(self, claim: ClaimId, files: Iterable[PutFile]) -> None:
        """Count files; each once."""
        brought = self._claims.setdefault(claim, _Brought())
        self._notes += 1
        for sha256, size_bytes in files:
            earlier, _ = brought.files.get(sha256, (0, 0))
            brought.files[sha256] = size_bytes, self._notes
            brought.size_bytes += size_bytes - earlier

    def exceeds(self, claim: ClaimId, *, limit_bytes: int, limit_files: int) -> bool:
        """Whether what a claim has brought is more than this."""
        brought = self._claims.get(claim, _Brought())
        return brought.size_bytes > limit_bytes or len(brought.files) > limit_files

    def noted(self, claim: ClaimId) -> tuple[int, tuple[bytes, ...]]:
        """Return the files of a claim, with the number of the latest note."""
        brought = self._claims.get(claim, _Brought())
        return self._notes, tuple(brought.files)

    def drop(self, claim: ClaimId, files: Collection[bytes], *, up_to: int) -> None:
        """Stop counting files, except those that a later note than this number names."""
        brought = self._claims.get(claim, _Brought())
        for sha256 in files:
            size_bytes, note = brought.files.get(sha256, (0, up_to + 1))
            if note <= up_to:
                del brought.files[sha256]
                brought.size_bytes -= size_bytes

    def forget(self, claim: ClaimId) -> set[bytes]:
        """Forget a claim, and return its files that no other claim has brought."""
        gone = self._claims.pop(claim, _Brought()).files.keys()
        return {sha256 for sha256 in gone if not any(sha256 in each.files for each in self._claims.values())}
