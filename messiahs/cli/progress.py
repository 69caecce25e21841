"""Progress bars on a terminal; nothing is drawn elsewhere, or for short work."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from messiahs.client.progress import OnProgress, silent

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_LARGE_BYTES = 10_000_000
_LONG_SECONDS = 1.0


@dataclass(slots=True)
class _Bars:
    """One bar for each kind of work, started once the work is large or takes long (mutable)."""

    began_at: float = field(default_factory=time.monotonic)
    shown: "Progress | None" = None
    bars: "dict[str, TaskID]" = field(default_factory=dict)

    def on_progress(self, what: str, done_bytes: int, total_bytes: int, /) -> None:
        """Update the bar of `what`."""
        if self.shown is None:
            if total_bytes <= _LARGE_BYTES and time.monotonic() - self.began_at <= _LONG_SECONDS:
                return
            self.shown = _progress()
            self.shown.start()
        if what not in self.bars:
            self.bars[what] = self.shown.add_task(what, total=total_bytes)
        self.shown.update(self.bars[what], completed=done_bytes, total=total_bytes)

    def close(self) -> None:
        """Remove the bars."""
        if self.shown is not None:
            self.shown.stop()


@contextmanager
def shown_progress() -> Iterator[OnProgress]:
    """Yield a callback that draws a bar on stderr, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield silent
        return
    bars = _Bars()
    try:
        yield bars.on_progress
    finally:
        bars.close()


def _progress() -> "Progress":
    # Importing rich takes longer than the rest of a submission.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
