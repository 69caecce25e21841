"""Starting and stopping the recording of a module; a recording continues after a restart."""

import logging
from pathlib import Path

import msgspec

from messiahs.config.policies import source_of
from messiahs.config.whole_files import write_whole
from messiahs.core.queries import policy_of
from messiahs.daemon.storage.clock import Clock
from messiahs.errors import TraceError
from messiahs.trace.record.recorder import RecordedModule, Recording
from messiahs.trace.record.ring import SEGMENTS, Background, RingFiles

_LOG = logging.getLogger(__name__)


class Tracing:
    """The trace of one module, in the folder `trace` of its state (mutable).

    After an error, such as a full disk, the recording stops until the next start; the module continues without it.
    """

    def __init__(self, module: RecordedModule, clock: Clock, *, folder: Path) -> None:
        self._module, self._clock = module, clock
        self.folder = folder
        self._setting = folder / "size_bytes"
        """Exists while the module is to be recorded."""

    @property
    def is_on(self) -> bool:
        """Whether the module is recorded."""
        return self._module.is_recorded

    def start(self, size_bytes: int) -> None:
        """Record from now on, also after a restart, at most `size_bytes`; raises OSError or TraceError."""
        self._begin(size_bytes)
        write_whole(self._setting, msgspec.json.encode(size_bytes))
        _LOG.info("recording begins in %s", self.folder)

    def stop(self) -> None:
        """Stop the recording; everything until now is on disk when this returns."""
        self._setting.unlink(missing_ok=True)
        self._module.end_recording()
        _LOG.info("recording has ended")

    def go_on(self) -> None:
        """Record from the first event on if a recording was active at the last stop; never raises."""
        try:
            size_bytes = msgspec.json.decode(self._setting.read_bytes(), type=int)
            self._begin(size_bytes)
        except FileNotFoundError:
            return
        except (OSError, TraceError, msgspec.MsgspecError) as error:
            self._lost(str(error))

    def _begin(self, size_bytes: int) -> None:
        sink = Background(RingFiles(self.folder, size_bytes=size_bytes))
        recording = Recording(
            sink=sink,
            source=source_of(policy_of(self._module.state)),
            segment_bytes=size_bytes // SEGMENTS,
            wall_offset_ns=self._clock.wall_offset_ns,
            on_lost=self._lost,
        )
        self._module.record(recording, self._clock.now())

    def _lost(self, text: str) -> None:
        _LOG.error("recording has ended: %s; the module continues without it", text)
