"""Facts about a module's database, each with a checksum."""

import re
import sqlite3
from typing import Final

from messiahs.trace.format.rows import checksum

_CHECKED: Final = b"\2"
"""Prefix of the checksum of a fact."""
FACTS: Final = {
    "marked": rb"(?!)",
    "epoch": rb".{8}",
    "newest": rb".{8}",
    "boot_offset": rb"-?[0-9]{1,20} [0-9a-f-]{1,64}",
}
"""All facts, with the patterns of those without a checksum."""


def checked_fact(name: str, value: bytes) -> bytes:
    """Return what is stored for a fact."""
    return _CHECKED + checksum(name.encode(), value) + value


def note_fact(writer: sqlite3.Connection, /, name: str, value: bytes) -> None:
    """Store a fact; an `sqlite3.Error` if that fails."""
    writer.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, checked_fact(name, value)))


def fact_in(name: str, stored: object) -> bytes | None:
    """Return the value of a stored fact; None if it is damaged. An older release stored facts without a checksum."""
    if not isinstance(stored, bytes):
        return None
    value = stored[len(checked_fact("", b"")) :]
    if stored == checked_fact(name, value):
        return value
    return stored if re.fullmatch(FACTS[name], stored, re.DOTALL) else None
