"""Progress of a long command on stderr: a bar on a terminal, elsewhere a line every few seconds."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_LINE_SECONDS = 2.0


@dataclass(slots=True)
class _Lines:
    """Prints a line when a step begins and ends, and every `_LINE_SECONDS` in between (mutable)."""

    what: str = ""
    printed_at: float = 0.0

    def on_step(self, what: str, done: int, total: int, /) -> None:
        now = time.monotonic()
        if what == self.what and done < total and now - self.printed_at < _LINE_SECONDS:
            return
        self.what, self.printed_at = what, now
        sys.stderr.write(f"{done} of {total} {what}\n")
        sys.stderr.flush()


@contextmanager
def shown_steps() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a callback that takes a step's name, how many items are done, and how many there are."""
    if not sys.stderr.isatty():
        yield _Lines().on_step
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:20}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bars = {}

        def on_step(what: str, done: int, total: int, /) -> None:
            if what not in bars:
                bars[what] = progress.add_task(what, total=total)
            progress.update(bars[what], completed=done)

        yield on_step
