"""Waiting for tasks, with a line on the terminal that says how many are left."""

import sys
from collections.abc import Iterable

from messiahs.cli.options import PlaceOptions
from messiahs.cli.task.modules import located, tasks_of
from messiahs.client.connection import Document
from messiahs.client.module import FINAL_STATES, ModuleClient, is_final

_LOOK_SECONDS = 1.0
_CLEAR_LINE = "\r\x1b[K"


def waited(ids: tuple[str, ...], options: PlaceOptions) -> list[Document]:
    """Give the documents of tasks, in their order, once all have ended; restarts of modules are waited for, too."""
    shows = sys.stderr.isatty()
    ended = []
    try:
        for name in ids:
            with ModuleClient(located(name, options).socket, patience=None) as module:
                document = module.wait(name, timeout=0 if shows else None)
                while not is_final(document):
                    _draw(progress_line(tasks_of(ids, options)[0]))
                    document = module.wait(name, timeout=_LOOK_SECONDS)
            ended.append(document)
    finally:
        if shows:
            _draw("")
    return ended


def progress_line(tasks: Iterable[Document]) -> str:
    """Say of how many tasks how many ended, run and failed; each member of an array counts."""
    total = ended = running = failed = 0
    for document in tasks:
        counts = document.get("counts") or {document.get("substate") or document["state"]: 1}
        codes = document.get("exit_codes") or {str(document.get("exit_code")): 1}
        final = sum(count for state, count in counts.items() if state in FINAL_STATES)
        total += sum(counts.values())
        ended += final
        running += counts.get("running", 0)
        failed += final - (codes.get("0", 0) if final else 0)
    return f"{ended} of {total} ended, {running} running, {failed} failed"


def _draw(line: str) -> None:
    sys.stderr.write(f"{_CLEAR_LINE}{line}")
    sys.stderr.flush()
