"""Acts of tests in a separate process: their effects do not last, and the process has no other children."""

import gc
import os
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

_NOBODY = 65534


def in_own_process(act: Callable[[], None]) -> None:
    """Run in a child of this process; a failure there is a failure here."""
    with tempfile.TemporaryFile("w+") as report:
        child = os.fork()
        if child == 0:
            try:
                # What earlier tests left is not closed meanwhile.
                gc.freeze()
                act()
                os._exit(0)
            except BaseException:  # noqa: BLE001 - whatever it is, the parent fails
                traceback.print_exc(file=report)
                report.flush()
                os._exit(1)
        status = os.waitpid(child, 0)[1]
        report.seek(0)
        assert status == 0, f"wait status {status}: {report.read()}"


def as_ordinary_user(act: Callable[[], None], folder: Path) -> None:
    """Act in a process that is not root, for whom modes and limits count, and to whom all in `folder` belongs."""

    def act_as_nobody() -> None:
        if os.geteuid() == 0:
            for entry in (folder, *folder.rglob("*")):
                os.chown(entry, _NOBODY, _NOBODY)
            os.chdir(folder)
            os.setgroups([])
            os.setresgid(_NOBODY, _NOBODY, _NOBODY)
            os.setresuid(_NOBODY, _NOBODY, _NOBODY)
        act()

    in_own_process(act_as_nobody)
