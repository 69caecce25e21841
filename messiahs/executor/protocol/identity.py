"""Files by which a daemon finds its starter, and the record of the starter's process."""

from pathlib import Path

import msgspec

from messiahs.config.whole_files import write_whole
from messiahs.executor.linux.processes import ProcessIdentity

SOCKET = "starter.sock"
LOCK_FILE = "starter.lock"
LOG_FILE = "starter.log"
NO_SANDBOX = 5
"""Exit code of a starter that cannot set up sandboxes, which it was to; the last line of its log says why."""
_RECORD = "starter.pid"


def record_identity(directory: Path, identity: ProcessIdentity) -> None:
    """Record the process of the starter, atomically."""
    write_whole(directory / _RECORD, msgspec.json.encode(identity), mode=0o600)


def recorded_identity(directory: Path) -> ProcessIdentity | None:
    """Return the process of the last starter; None if there is none, or the record is damaged."""
    try:
        return msgspec.json.decode((directory / _RECORD).read_bytes(), type=ProcessIdentity)
    except (OSError, msgspec.MsgspecError):
        return None
