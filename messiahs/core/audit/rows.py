"""New rows of the audit log, and its bounds."""

from dataclasses import replace
from typing import Final

from messiahs.core.border.sides import is_border
from messiahs.core.interface.actions import Action, Forget, Store
from messiahs.core.interface.audit_row import AuditRow, Crossed
from messiahs.core.interface.rows import RowKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Relation
from messiahs.core.state.module import ModuleState

ROW_LIMIT: Final = 100_000
"""Rows that are kept; a further one replaces the oldest of the neighbor with most of them.

Acts of administrators count as those of a neighbor of their own, so no traffic replaces them.
"""
_ACTS: Final = (Crossed.SHUT_OFF, Crossed.READMITTED)
_OF_ACTS: Final = SystemId("")


def is_audited(state: ModuleState, system: SystemId) -> bool:
    """Return whether a neighbor is under another administration."""
    if system in state.identity.apart:
        return True
    neighbor = state.neighbors.get(system) if is_border(state) else None
    return neighbor is not None and neighbor.relation is not Relation.CHILD


def has_audit(state: ModuleState) -> bool:
    """Return whether any neighbor may be under another administration."""
    return bool(state.identity.apart or state.identity.border_key)


def numbered(state: ModuleState, row: AuditRow) -> tuple[AuditRow, tuple[Action, ...]]:
    """Return a row with the next number, and the actions that store the counter and keep the log within its bound."""
    row = replace(row, number=state.counters.audited + 1)
    state.counters = replace(state.counters, audited=row.number)
    note_kept(state, row)
    counted = Store(row=state.counters)
    kept = state.audit.kept.values()
    if sum(map(len, kept)) <= ROW_LIMIT:
        return row, (counted,)
    most = max(kept, key=len)
    oldest = next(iter(most))
    del most[oldest]
    return row, (counted, Forget(key=(RowKind.AUDIT, oldest)))


def note_kept(state: ModuleState, row: AuditRow) -> None:
    """Count a new or stored row; rows come in the order of their numbers."""
    state.audit.kept.setdefault(_owner(row), {})[row.number] = None


def is_outdated(state: ModuleState, row: AuditRow) -> bool:
    """Return whether a row that changed until now was replaced meanwhile."""
    return row.number not in state.audit.kept[_owner(row)]


def _owner(row: AuditRow) -> SystemId:
    return _OF_ACTS if row.what in _ACTS else row.neighbor
