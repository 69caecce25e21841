"""Waiting for the modules that `messiahs up` has started, until all are linked or one of them cannot be."""

import os
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from messiahs.client.connection import Connection
from messiahs.client.locating import state_directory, state_words
from messiahs.client.module import ModuleClient
from messiahs.core.model.texts import printable
from messiahs.daemon.supervision.forking import LOG_FILE
from messiahs.daemon.supervision.supervisor import UNUSABLE
from messiahs.errors import ClientError

if TYPE_CHECKING:
    from messiahs.config.settings import ModuleSettings

SUPERVISOR_LOG: Final = "supervisor.log"
_POLL_SECONDS: Final = 0.05
_ANSWER_SECONDS: Final = 2.0
_REASON_LIMIT_BYTES: Final = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the supervisor writes from a place in its log on."""

    log: Path
    offset: int

    def unusable(self, modules: "Iterable[ModuleSettings]") -> "tuple[ModuleSettings, ...]":
        """Return the modules that it does not start again, since a person has to act on their state."""
        with self.log.open("rb") as log:
            log.seek(self.offset)
            lines = log.read().decode(errors="replace").splitlines()
        return tuple(each for each in modules if any(line.startswith(f"{each.name}: {UNUSABLE}") for line in lines))


def report_from(directory: Path) -> Report:
    """Return what a supervisor of a federation will write that is started next."""
    log = directory / SUPERVISOR_LOG
    return Report(log=log, offset=log.stat().st_size if log.exists() else 0)


def await_links(
    modules: "tuple[ModuleSettings, ...]",
    supervisor: "subprocess.Popen[bytes]",
    *,
    report: Report,
    deadline: float,
) -> tuple[str, ...]:
    """Return the modules not yet linked at the deadline or at the end of the supervisor; empty once all are linked.

    A module is linked once it has received from every neighbor. Polls, since a starting module has no socket yet.
    Raises a `ClientError` with the reason as soon as the state of a module is known to be unusable.
    """
    waiting = modules
    while True:
        # Looked at before the report: what the supervisor wrote before its end is read then.
        has_ended = supervisor.poll() is not None
        problems = {settings.name: _problem_of(settings) for settings in waiting}
        waiting = tuple(settings for settings in waiting if problems[settings.name])
        unusable = report.unusable(waiting)
        if unusable:
            raise ClientError("\n".join(map(_why_unusable, unusable)))
        if not waiting or has_ended or time.monotonic() >= deadline:
            return tuple(problems[settings.name] for settings in waiting)
        time.sleep(_POLL_SECONDS)


def removed_links(modules: "tuple[ModuleSettings, ...]", *, state: Path | None) -> Iterator[str]:
    """Yield which links of the topology a module does not have since they were removed at run time, and what helps.

    A module that does not answer now is left out.
    """
    place = state_words(state_directory(state))
    for settings in modules:
        try:
            with ModuleClient(settings.socket, patience=0) as client:
                removed = {each["name"]: each for each in client.removed()}
        except ClientError:
            continue
        for name in (str(link.neighbor.system) for link in settings.neighbors):
            if name in removed:
                reason = f" ({removed[name]['reason']})" if removed[name]["reason"] else ""
                text = f"{settings.name} has no link with {name}, which was removed by hand{reason}"
                yield f"{text}: `messiahs neighbor on {name} --module {settings.name}{place}` brings it back"


def _problem_of(settings: "ModuleSettings") -> str:
    connection = Connection(settings.socket, answer_seconds=_ANSWER_SECONDS)
    try:
        state = connection.ask("GET", "/v1/module", patience=0)
    except ClientError:
        return f"  {settings.name} does not answer: see {settings.directory / LOG_FILE}"
    finally:
        connection.close()
    # Neighbors that were removed at run time stay away.
    present = {*state["parents"], *state["children"], *state["siblings"]}
    missing = sorted({link.neighbor.system for link in settings.neighbors} & present - set(state["heard"]))
    return f"  {settings.name} has received nothing from {', '.join(missing)}" if missing else ""


def _why_unusable(settings: "ModuleSettings") -> str:
    """Return that a module stays down, with the last line of its log, which is the reason."""
    file = settings.directory / LOG_FILE
    with file.open("rb") as log:
        log.seek(max(0, os.fstat(log.fileno()).st_size - _REASON_LIMIT_BYTES))
        lines = log.read().decode(errors="replace").split("\n")
    reason = next((printable(line) for line in reversed(lines) if line.strip()), "its log is empty")
    return f"`{settings.name}` stays down until the next `messiahs up`, {UNUSABLE}: {reason} (see {file})"
