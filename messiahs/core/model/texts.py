r"""Making foreign texts safe to show: control characters could steer a terminal or forge a line of a log.

The characters concerned are the C0 and C1 controls with DEL, the line and paragraph separators, and the characters that
change the direction of writing, with which one text can be made to look like another.
"""

import re
from typing import Final

_CONTROL = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_ANY_CONTROL = re.compile(f"[{_CONTROL}]")
# Lone surrogates stand for bytes of a file name that are not UTF-8, and cannot be printed.
_UNPRINTABLE = re.compile(f"[{_CONTROL}\ud800-\udfff]")
_UNPRINTABLE_BUT_NEWLINE = re.compile(rf"(?!\n)[{_CONTROL}\ud800-\udfff]")
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_ONE_BYTE = 0xFF
WITHHELD: Final = "text withheld by the border"
"""Stands, with the name of the border, for a text that does not cross it."""
DISK_WAS_FULL: Final = "the disk of its folder was full when it ended: what it wrote may be missing"
"""The last part of what is said of a task that ended by itself. It names nothing, so it crosses borders."""
DRAINED: Final = "this module is drained"
AWAY: Final = "this machine is away for maintenance"
NOT_LENT: Final = "its owner does not lend this machine"
NOT_FOREIGN: Final = "it takes no tasks of other sites"
OWN_MACHINE: Final = "own machine"
"""How the texts of denials begin whose code does not say as much: users are told by them what would help."""


def has_control(text: str) -> bool:
    """Return whether a text has a control character."""
    return _ANY_CONTROL.search(text) is not None


def printable(text: str) -> str:
    r"""Return a text on one line: control characters are written as `\x1b` or `\u202e`."""
    return text if text.isascii() and text.isprintable() else _UNPRINTABLE.sub(_escape, text)


def printable_lines(text: str) -> str:
    """Return a text as `printable` does, but keep its line ends."""
    return _UNPRINTABLE_BUT_NEWLINE.sub(_escape, text)


def printable_json(text: str) -> str:
    r"""Return JSON with its control characters escaped; JSON itself escapes only those below U+0020."""
    return _UNPRINTABLE_BUT_NEWLINE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    number = ord(character)
    return _SHORT.get(character) or (f"\\x{number:02x}" if number <= _ONE_BYTE else f"\\u{number:04x}")
