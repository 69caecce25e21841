"""Requests that were denied and messages that were dropped, one row a minute for each code; acts of administrators."""

from dataclasses import replace

from messiahs.core.audit.rows import numbered
from messiahs.core.interface.actions import Action, Store
from messiahs.core.interface.audit_row import AuditRow, Crossed
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, Instant
from messiahs.core.state.module import ModuleState


def note_fold(
    state: ModuleState, neighbor: SystemId, what: Crossed, /, *, code: str, is_outward: bool, now: Instant
) -> None:
    """Count something with a code in the row of this minute."""
    audit, key = state.audit, (neighbor, is_outward, what, code)
    row = audit.folds.get(key)
    if row is None or now - row.began_at >= MINUTE:
        if key in audit.folded:
            audit.waiting.append(Store(row=audit.folds[key]))
        row = AuditRow(
            number=0,
            neighbor=neighbor,
            what=what,
            is_outward=is_outward,
            began_at=now,
            latest_at=now,
            code=code,
            is_closed=True,
        )
        row, counted = numbered(state, row)
        audit.waiting.extend(counted)
    audit.folds[key] = replace(row, count=row.count + 1, latest_at=now)
    audit.folded[key] = None


def note_act(
    state: ModuleState, neighbor: SystemId, what: Crossed, /, *, text: str, now: Instant
) -> tuple[Action, ...]:
    """Note what the administrator did to a link, with the reason."""
    row = AuditRow(
        number=0,
        neighbor=neighbor,
        what=what,
        is_outward=True,
        began_at=now,
        latest_at=now,
        count=1,
        text=text,
        is_closed=True,
    )
    row, counted = numbered(state, row)
    return (*counted, Store(row=row))
