"""Runs a daemon and records every message that it sends, as bytes: `python -m tests.autonomy.recorded_daemon FOLDER`.

FOLDER is that of the module, and FOLDER/tap gets the messages.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from messiahs.wire import parsing
from tests.live.tapped_daemons import TAP, Tap, entries

_ROOT: Final = Path(__file__).parents[2]


@contextmanager
def recorded_daemon(folder: Path) -> Iterator[None]:
    """Run the daemon of a module for a while; what it sends is recorded. Its earlier recording is removed."""
    (folder / TAP).unlink(missing_ok=True)
    with (folder / "recorded.log").open("ab") as log:
        command = [sys.executable, "-m", "tests.autonomy.recorded_daemon", str(folder)]
        with subprocess.Popen(command, cwd=_ROOT, stdout=log, stderr=log, start_new_session=True) as daemon:
            try:
                yield
            finally:
                daemon.send_signal(signal.SIGTERM)


def frames_of(folder: Path) -> list[tuple[str, bytes]]:
    """Return the names and the bytes of the messages that a daemon has sent, in their order."""
    with (folder / TAP).open("rb") as recorded:
        return list(entries(recorded))


def _record(tap: Tap) -> None:
    """Record what is sent; before the modules are loaded that use this function."""
    serialized = parsing.serialized

    def serialize(wire: Any) -> bytes:  # noqa: ANN401 - any message
        content = serialized(wire)
        tap.record(wire.DESCRIPTOR.full_name, content)
        return content

    parsing.serialized = serialize


if __name__ == "__main__":
    _folder = Path(sys.argv[1])
    _tap = Tap()
    _tap.folder = _folder
    _record(_tap)
    from messiahs.daemon.__main__ import run_daemon

    sys.exit(run_daemon(_folder / "settings.json"))
