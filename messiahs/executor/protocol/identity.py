"""The files by which a daemon finds its starter, and the note that says which process it is."""

from pathlib import Path

import msgspec

from messiahs.config.whole_files import write_whole
from messiahs.executor.linux.processes import ProcessIdentity

SOCKET = "starter.sock"
LOCK_FILE = "starter.lock"
LOG_FILE = "starter.log"
_NOTE = "starter.pid"


def note_identity(directory: Path, identity: ProcessIdentity) -> None:
    """Write down who the starter is, in one step."""
    write_whole(directory / _NOTE, msgspec.json.encode(identity), mode=0o600)


def noted_identity(directory: Path) -> ProcessIdentity | None:
    """Read who the last starter was; None if there never was one, or the note is damaged."""
    try:
        return msgspec.json.decode((directory / _NOTE).read_bytes(), type=ProcessIdentity)
    except (OSError, msgspec.MsgspecError):
        return None
