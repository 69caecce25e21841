"""How far a long command is: a bar on a terminal, elsewhere a line every few seconds; always on stderr."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_LINE_SECONDS = 2.0


@dataclass(slots=True)
class _Lines:
    """Writes when a kind of work begins and ends, and now and then between; mutable."""

    what: str = ""
    told_at: float = 0.0

    def tell(self, what: str, done: int, total: int, /) -> None:
        now = time.monotonic()
        if what == self.what and done < total and now - self.told_at < _LINE_SECONDS:
            return
        self.what, self.told_at = what, now
        sys.stderr.write(f"{done} of {total} {what}\n")
        sys.stderr.flush()


@contextmanager
def shown_telling() -> Iterator[Callable[[str, int, int], None]]:
    """Give what is to be called with what is done, how many are done, and how many there are."""
    if not sys.stderr.isatty():
        yield _Lines().tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:20}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bars = {}

        def tell(what: str, done: int, total: int, /) -> None:
            if what not in bars:
                bars[what] = progress.add_task(what, total=total)
            progress.update(bars[what], completed=done)

        yield tell
