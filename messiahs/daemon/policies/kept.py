"""A policy that was loaded in place of a module's own file, kept in the folder of the module for the next start."""

from pathlib import Path
from typing import Final

import msgspec

from messiahs.config.policies import PolicySource
from messiahs.config.regular_files import read_regular
from messiahs.config.whole_files import write_whole
from messiahs.core.interface.policies import Timeouts
from messiahs.core.model.instants import Instant

KEPT: Final = "loaded_policy.json"


class _Kept(msgspec.Struct):
    file: str
    text: str
    loaded_at_ns: int


def keep(folder: Path, source: PolicySource, *, now: Instant) -> None:
    """Keep a policy in place of the one before; raises OSError, and then that one is still there."""
    kept = _Kept(file=source.file, text=source.text or "", loaded_at_ns=now)
    write_whole(folder / KEPT, msgspec.json.encode(kept), mode=0o600)


def kept_in(folder: Path, *, timeouts: Timeouts) -> tuple[PolicySource, Instant]:
    """Return the policy kept in the folder of a module, with these default timeouts, and when it was loaded.

    Raises OSError (FileNotFoundError: there is none, so the own file is in force) or ValueError.
    """
    kept = msgspec.json.decode(read_regular(folder / KEPT), type=_Kept)
    return PolicySource(file=kept.file, text=kept.text, timeouts=timeouts), Instant(kept.loaded_at_ns)
