"""What was denied, dropped and passed on unread, one row a minute for each code; acts of administrators."""

from dataclasses import replace

from messiahs.core.audit.rows import is_audited, numbered
from messiahs.core.interface.actions import Action, Store
from messiahs.core.interface.audit_row import AuditRow, Crossed
from messiahs.core.interface.spliced_bytes import BytesSpliced
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import MINUTE, Instant
from messiahs.core.state.module import ModuleState


def note_splice(state: ModuleState, event: BytesSpliced, now: Instant) -> None:
    """Count what two neighbors sent each other through this module, in the rows of both for this minute."""
    asker, asked = event.toward_origin, event.toward_executor
    count, forth, back = event.connections, event.forth_bytes, event.back_bytes
    for neighbor, other, is_outward, came, went in (
        (asker, asked, False, forth, back),
        (asked, asker, True, back, forth),
    ):
        if is_audited(state, neighbor):
            row = _fold(state, neighbor, Crossed.SPLICED, code=other, is_outward=is_outward, now=now)
            row = replace(row, count=row.count + count, in_bytes=row.in_bytes + came, out_bytes=row.out_bytes + went)
            _keep(state, row, now)


def note_fold(
    state: ModuleState, neighbor: SystemId, what: Crossed, /, *, code: str, is_outward: bool, now: Instant
) -> None:
    """Count something with a code in the row of this minute."""
    row = _fold(state, neighbor, what, code=code, is_outward=is_outward, now=now)
    _keep(state, replace(row, count=row.count + 1), now)


def _fold(
    state: ModuleState, neighbor: SystemId, what: Crossed, /, *, code: str, is_outward: bool, now: Instant
) -> AuditRow:
    """Return the row of this minute."""
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
    return row


def _keep(state: ModuleState, row: AuditRow, now: Instant) -> None:
    key = (row.neighbor, row.is_outward, row.what, row.code)
    state.audit.folds[key] = replace(row, latest_at=now)
    state.audit.folded[key] = None


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
