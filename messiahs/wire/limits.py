"""What a message may hold at most, and the checks that everything received passes.

A check returns what it was given, or raises a `CodecError`; nothing that a neighbor sends raises anything else.
"""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from messiahs.core.model.attributes import MOST_MACHINES
from messiahs.core.model.ids import SystemId
from messiahs.core.model.texts import has_control, printable
from messiahs.errors import CodecError

MESSAGE_LIMIT_BYTES: Final = 1 << 20
BATCH_LIMIT: Final = 1024
VECTOR_LIMIT_BYTES: Final = 4096
CLASS_LIMIT: Final = 64
COUNT_END: Final = MOST_MACHINES + 1
COUNTER_END: Final = 1 << 63
REASON_LIMIT: Final = 256
REASON_DEPTH_LIMIT: Final = 32
PREDICATE_LIMIT_BYTES: Final = 4096
_LONGEST_CHARACTER_BYTES: Final = 4
COMMAND_LIMIT_BYTES: Final = 128 << 10
ATTEMPT_LIMIT: Final = 8192
FILE_LIMIT: Final = 1024
"""Inputs of a task, declared outputs, outputs that are told, and files of one request."""
OUTPUT_LIMIT: Final = FILE_LIMIT + 2
NAMES_LIMIT_BYTES: Final = 128 << 10
"""All names of a task's inputs and outputs together."""
WORD_LIMIT_BYTES: Final = 64
RULE_LIMIT_BYTES: Final = 256
TEXT_LIMIT_BYTES: Final = 512
PATH_LIMIT_BYTES: Final = 4096
PATH_PART_LIMIT_BYTES: Final = 255
SHA256_BYTES: Final = 32
SECRET_BYTES: Final = 16
WIRE_VERSION_LIMIT: Final = 16
ROOT_LIMIT: Final = 16
"""Fingerprints of roots; a module that has more says nothing of them."""
AVOID_LIMIT: Final = 64
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


def line(text: str, limit_bytes: int) -> str:
    """Check a text that people may read: its length, and that it has no control characters (core/texts.py)."""
    if has_control(text):
        raise CodecError(f"control characters in {text[:80]!r}")
    return bounded(text, limit_bytes)


def predicate_text(content: bytes) -> str:
    """Give the text of a predicate, of which its parser is the judge.

    Of one that is too long so much is left that it still is, and where it is no UTF-8 it ends in a NUL, which no
    predicate has: the sender is answered, and never left to wait.
    """
    kept = content[: PREDICATE_LIMIT_BYTES + _LONGEST_CHARACTER_BYTES]
    try:
        return kept.decode()
    except UnicodeDecodeError as error:
        return kept[: error.start].decode() + "\0"


def shortened(text: str, limit_bytes: int) -> str:
    """Give the longest beginning of a text that the other side's `line` takes; control characters are escaped."""
    text = printable(text[:limit_bytes])
    if text.isascii():
        return text[:limit_bytes]
    return text.encode(errors="replace")[:limit_bytes].decode(errors="ignore")


def relative_path(text: str) -> str:
    """Check the name of an input or output: a path that cannot lead out of the folder it is put into.

    It has no control characters: names are shown on terminals.
    """
    bounded(text, PATH_LIMIT_BYTES)
    parts = text.split("/")
    if has_control(text) or not {"", ".", ".."}.isdisjoint(parts):
        raise CodecError(f"{text[:80]!r} is no relative path of a file")
    for part in parts:
        bounded(part, PATH_PART_LIMIT_BYTES)
    return text


def separate_paths(names: Iterable[str]) -> list[str]:
    """Check names of inputs: no two are the same, and none is a folder of another; give them as `path_order` sorts."""
    ascending = sorted(names, key=path_order)
    for name, following in pairwise(ascending):
        if name == following or following.startswith(f"{name}/"):
            raise CodecError(f"two inputs cannot have the places {name[:80]!r} and {following[:80]!r}")
    return ascending


def path_order(name: str) -> str:
    """Give a key by which what is in a folder follows directly on the folder's name."""
    # With a separator that sorts before every other character.
    return name.replace("/", "\0")


def sha256(content: bytes) -> bytes:
    """Check the hash of a file."""
    if len(content) != SHA256_BYTES:
        raise CodecError(f"a SHA-256 of {len(content)} bytes")
    return content
