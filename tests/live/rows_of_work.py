"""What a module has stored about work that has not ended."""

from pathlib import Path

from messiahs.core.interface.audit_row import AuditRow
from messiahs.core.interface.ledger_rows import LedgerRow
from messiahs.core.interface.rows import CountersRow, RememberedRow, Row, SubmissionRow
from messiahs.daemon.storage.store import RowStore


def rows_of_work(database: Path) -> list[Row]:
    """Return the stored rows of claims, tasks and attempts; those about neighbors, and the ledger, outlive them."""
    store = RowStore(database)
    try:
        rows = list(store.live_rows())
    finally:
        store.close()
    return [
        row for row in rows if not isinstance(row, CountersRow | SubmissionRow | RememberedRow | AuditRow | LedgerRow)
    ]
