"""What a message may hold at most, and the checks that everything received passes.

A check returns what it was given, or raises a `CodecError`; nothing that a neighbor sends raises anything else.
"""

import re
from typing import Final

from messiahs.core.ids import SystemId
from messiahs.errors import CodecError

MESSAGE_LIMIT_BYTES: Final = 1 << 20
BATCH_LIMIT: Final = 1024
VECTOR_LIMIT_BYTES: Final = 4096
CLASS_LIMIT: Final = 64
COUNT_END: Final = 1 << 40
COUNTER_END: Final = 1 << 63
REASON_LIMIT: Final = 256
REASON_DEPTH_LIMIT: Final = 32
REQUIREMENT_LIMIT_BYTES: Final = 4096
COMMAND_LIMIT_BYTES: Final = 128 << 10
ATTEMPT_LIMIT: Final = 8192
OUTPUT_LIMIT: Final = 256
WORD_LIMIT_BYTES: Final = 64
RULE_LIMIT_BYTES: Final = 256
TEXT_LIMIT_BYTES: Final = 512
PATH_LIMIT_BYTES: Final = 255
SECRET_BYTES: Final = 16
WIRE_VERSION_LIMIT: Final = 16
NEIGHBOR_LIMIT: Final = 1024

_SYSTEM = re.compile(r"[a-z0-9.-]{1,255}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_ADDRESS = re.compile(r"[!-~]{0,300}")


def system_id(text: str) -> SystemId:
    """Check the name of a system."""
    if _SYSTEM.fullmatch(text) is None:
        raise CodecError(f"{text[:80]!r} is no name of a system")
    return SystemId(text)


def attribute_name(text: str) -> str:
    """Check the name of an attribute (without `$`)."""
    if _NAME.fullmatch(text) is None:
        raise CodecError(f"{text[:80]!r} is no name of an attribute")
    return text


def address(text: str) -> str:
    """Check an address; it may be empty."""
    if _ADDRESS.fullmatch(text) is None:
        raise CodecError(f"{text[:80]!r} is no address")
    return text


def counter(number: int) -> int:
    """Check a number that counts messages, tasks, bytes or nanoseconds: it fits a signed 64-bit integer."""
    if number >= COUNTER_END:
        raise CodecError(f"{number} is too large")
    return number


def amount(number: int, *, lowest: int = 0) -> int:
    """Check how many machines, places or asks there are."""
    if not lowest <= number < COUNT_END:
        raise CodecError(f"{number} is not in {lowest} to {COUNT_END - 1}")
    return number


def at_most(length: int, limit: int, *, what: str) -> None:
    """Refuse what is longer than its limit."""
    if length > limit:
        raise CodecError(f"{length} {what}, at most {limit} are allowed")


def secret(content: bytes) -> bytes:
    """Check a random id or a ticket."""
    if len(content) != SECRET_BYTES:
        raise CodecError(f"an id of {len(content)} bytes instead of {SECRET_BYTES}")
    return content


def bounded(text: str, limit_bytes: int) -> str:
    """Check the length of a text."""
    # A character takes at most 4 bytes, so that most texts need not be encoded to be measured.
    if len(text) * 4 > limit_bytes and len(text.encode()) > limit_bytes:
        raise CodecError(f"a text of {len(text.encode())} bytes, at most {limit_bytes} are allowed")
    return text


def shortened(text: str, limit_bytes: int) -> str:
    """Give the longest beginning of a text that the other side takes, with `?` for what is not Unicode."""
    if text.isascii():
        return text[:limit_bytes]
    return text.encode(errors="replace")[:limit_bytes].decode(errors="ignore")


def relative_path(text: str) -> str:
    """Check the name of an output: a printable path that cannot lead out of the folder it is put into."""
    bounded(text, PATH_LIMIT_BYTES)
    if not text.isprintable() or not {"", ".", ".."}.isdisjoint(text.split("/")):
        raise CodecError(f"{text!r} is no name of an output")
    return text
