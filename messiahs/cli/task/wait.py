"""Waiting for tasks, with a progress line on a terminal."""

import sys
from collections.abc import Iterable

from messiahs.cli.options import PlaceOptions
from messiahs.cli.task.modules import located, tasks_of
from messiahs.client.connection import Document
from messiahs.client.module import FINAL_STATES, ModuleClient, is_final

_POLL_SECONDS = 1.0
_CLEAR_LINE = "\r\x1b[K"


def waited(ids: tuple[str, ...], options: PlaceOptions) -> list[Document]:
    """Return the documents of tasks, in the order of `ids`, once all have ended; survives restarts of their modules."""
    shows = sys.stderr.isatty()
    ended = []
    try:
        for name in ids:
            with ModuleClient(located(name, options).socket, patience=None) as module:
                document = module.wait(name, timeout=0 if shows else None)
                while not is_final(document):
                    _draw(progress_line(tasks_of(ids, options)[0]))
                    document = module.wait(name, timeout=_POLL_SECONDS)
            ended.append(document)
    finally:
        if shows:
            _draw("")
    return ended


def progress_line(tasks: Iterable[Document]) -> str:
    """Return the counts of tasks that ended, run and failed; each member of an array counts."""
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
