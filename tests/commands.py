"""Processes that a failing test does not leave behind, and does not wait for."""

import subprocess
from types import TracebackType
from typing import AnyStr


class Command(subprocess.Popen[AnyStr]):
    """A process that is killed when its block fails; another one would be waited for, maybe for ever."""

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, value, traceback)
