"""The report about an ended attempt, and the content of a new journal."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from messiahs.config.disk import is_full
from messiahs.core.interface.causes import Cause
from messiahs.core.model.texts import DISK_WAS_FULL
from messiahs.executor.attempt_values import Ended
from messiahs.executor.attempts import Held, Phase, Table, ran_ns, suspended_ns
from messiahs.executor.linux.processes import identity_of
from messiahs.executor.starter.journal import Began, Finished, Record, Spawned
from messiahs.executor.starter.output_search import Found
from messiahs.executor.starter.pool import Pool

_LIMITS: Final = ("", Cause.TIME_LIMIT, Cause.MEMORY_LIMIT, Cause.DISK_LIMIT, Cause.TOO_MUCH_OUTPUT)
"""Causes of ends whose outputs somebody waits for."""


def leaves_outputs(held: Held) -> bool:
    """Return whether an attempt, whose processes have ended, may have left outputs that it declared."""
    return held.start is not None and bool(held.start.outputs and held.ended_at) and held.problem is None


def end_of(held: Held, pool: Pool, *, text: str = "", found: Found | None = None) -> Ended:
    """Return how an attempt ended and what was found in its folder; `text` precedes problems with its outputs.

    The text of one that ended by itself says so if the disk of its folder was full then: its writes may have failed.
    """
    out, err = pool.sizes(held.folder)
    found = found or Found()
    # What setting it up has used is not the task's.
    usage = None if held.problem is not None else held.usage
    is_natural = not held.cause and held.signal is None
    return Ended(
        attempt=held.attempt,
        exit_code=held.exit_code,
        signal=held.signal,
        cause=held.cause or (found.cause if is_natural else Cause.NONE),
        text="; ".join(filter(None, (text, found.text if held.cause in _LIMITS else "", _remark(held, pool)))),
        left=tuple(found.files.values()),
        usage=None if usage is None else replace(usage, suspended_ns=suspended_ns(held)),
        ran_ns=ran_ns(held, held.ended_at) if held.ended_at else 0,
        stdout_bytes=out,
        stderr_bytes=err,
    )


def _remark(held: Held, pool: Pool) -> str:
    """Return what the user of an attempt that ended by itself has to know about the disk; empty if that is nothing."""
    if held.cause or not held.ended_at:
        return ""
    with suppress(OSError):
        return DISK_WAS_FULL if is_full(pool.root) else ""
    return ""


def truths(table: Table, *, notes_processes: bool) -> Iterator[Record]:
    """Yield the records with which a new journal begins; processes of attempts only with `notes_processes`."""
    for held in table.attempts.values():
        if held.ended is not None:
            yield Finished(ended=held.ended)
        elif held.phase is not Phase.QUEUED:
            yield Began(attempt=held.attempt)
            if notes_processes and (identity := identity_of(held.process)) is not None:
                yield Spawned(attempt=held.attempt, pid=identity.pid, started=identity.started)
