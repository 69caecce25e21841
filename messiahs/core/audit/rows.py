"""New rows of the audit log, and its bounds."""

from dataclasses import replace
from typing import Final

from messiahs.core.border.sides import is_border
from messiahs.core.interface.actions import Action, Forget, Store
from messiahs.core.interface.audit_row import AuditRow
from messiahs.core.interface.rows import RowKind
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Relation
from messiahs.core.state.module import ModuleState

ROW_LIMIT: Final = 100_000
"""Rows that are kept; a further one replaces the oldest."""


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
    number = state.counters.audited + 1
    state.counters = replace(state.counters, audited=number)
    counted = (Store(row=state.counters),)
    if number <= ROW_LIMIT:
        return replace(row, number=number), counted
    return replace(row, number=number), (*counted, Forget(key=(RowKind.AUDIT, number - ROW_LIMIT)))


def is_outdated(state: ModuleState, row: AuditRow) -> bool:
    """Return whether so many rows follow one that changed until now that it is not kept."""
    return row.number <= state.counters.audited - ROW_LIMIT
