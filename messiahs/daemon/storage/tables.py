"""The tables of a module's database, in which an earlier release can run as well.

Release 0.1.0 reads `rows`, and ends at a kind of row that it does not know. Later kinds are therefore in a table of
their own, which it leaves as it is: a module can return to that release, and from there to this one.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from messiahs.config.whole_files import sync_folder

LATER_TABLE: Final = "later_rows"
LATER_ROWS: Final = f"""
CREATE TABLE IF NOT EXISTS {LATER_TABLE} (
    kind INTEGER, key BLOB, body BLOB NOT NULL, PRIMARY KEY (kind, key)
) WITHOUT ROWID;
"""
"""Made with the first row of a later kind: a start must not need space on the disk."""
_TABLES: Final = f"""
CREATE TABLE rows (kind INTEGER, key BLOB, body BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE TABLE outputs (
    task BLOB, name TEXT, body BLOB NOT NULL, PRIMARY KEY (task, name)
) WITHOUT ROWID;
CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
{LATER_ROWS}
"""
_LAST_FIRST_KIND: Final = 12
"""The highest kind of row that release 0.1.0 knows."""


def is_later(kind: int) -> bool:
    """Return whether a kind of row is in `later_rows`."""
    return kind > _LAST_FIRST_KIND


def table_of(kind: int) -> str:
    """Return the table with the rows of a kind."""
    return LATER_TABLE if is_later(kind) else "rows"


def create(path: Path, *, epoch: bytes) -> None:
    """Create a new database with a fact, atomically: a crash leaves a complete one or none."""
    draft = path.with_suffix(".new")
    for left in ("", "-wal", "-shm"):
        Path(f"{draft}{left}").unlink(missing_ok=True)
    with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(_TABLES)
        connection.execute("INSERT INTO facts VALUES ('epoch', ?)", (epoch,))
    draft.rename(path)
    sync_folder(path.parent)
