"""Limits of messages on the wire, and checks of everything that is received.

A check returns its argument or raises a `CodecError`. Input from a neighbor raises nothing else.
"""

import re
from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import Final

from messiahs.core.model.attributes import MOST_MACHINES
from messiahs.core.model.folder_links import stays_inside
from messiahs.core.model.ids import SystemId
from messiahs.core.model.output_names import DEPTH_LIMIT, PATTERN_LIMIT, PATTERNS_LIMIT_CHARACTERS, is_pattern
from messiahs.core.model.task_files import DESCRIPTION_LIMIT_BYTES, ENTRY_BYTES
from messiahs.core.model.texts import has_control, printable
from messiahs.errors import CodecError

MESSAGE_LIMIT_BYTES: Final = 1 << 20
BATCH_LIMIT: Final = 1024
VECTOR_LIMIT_BYTES: Final = 4096
CLASS_LIMIT: Final = 64
COUNT_END: Final = MOST_MACHINES + 1
COUNTER_END: Final = 1 << 63
USAGE_END: Final = 1 << 60
"""End of the values in a usage: nanoseconds for 36 years, or an exbibyte."""
POSITION_END: Final = 1 << 32
REASON_LIMIT: Final = 256
REASON_DEPTH_LIMIT: Final = 32
PREDICATE_LIMIT_BYTES: Final = 4096
_LONGEST_CHARACTER_BYTES: Final = 4
COMMAND_LIMIT_BYTES: Final = 128 << 10
ATTEMPT_LIMIT: Final = 8192
FILE_LIMIT: Final = 1024
"""Maximum number of a task's declared outputs, its reported declared outputs, and files of one request or message."""
OUTPUT_LIMIT: Final = FILE_LIMIT + 2
WORD_LIMIT_BYTES: Final = 64
RULE_LIMIT_BYTES: Final = 256
TEXT_LIMIT_BYTES: Final = 512
PATH_LIMIT_BYTES: Final = 4096
PATH_PART_LIMIT_BYTES: Final = 255
SHA256_BYTES: Final = 32
SECRET_BYTES: Final = 16
WIRE_VERSION_LIMIT: Final = 16
FORMER_EPOCH_LIMIT: Final = 16
MISSING_LINK_LIMIT: Final = 64
"""Maximum number of links that one vector reports as missing."""
ROOT_LIMIT: Final = 16
"""Maximum number of root fingerprints; a module that has more sends none."""
AVOID_LIMIT: Final = 64
NEIGHBOR_LIMIT: Final = 1024
CERTIFICATE_REQUEST_LIMIT_BYTES: Final = 16 << 10
CERTIFICATE_LIMIT_BYTES: Final = 64 << 10
"""Maximum length of a certificate with the authorities between it and its root."""
ROOTS_LIMIT_BYTES: Final = 256 << 10
MACHINE_LIMIT: Final = 64
"""Maximum number of attributes of a machine that joins."""

_SYSTEM = re.compile(r"[a-z0-9.-]{1,255}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_DIALED = re.compile(r"([A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\]):[0-9]{1,5}")
_ADDRESS = re.compile(r"[!-~]{0,300}")


def system_id(text: str) -> SystemId:
    """Check the name of a system."""
    if _SYSTEM.fullmatch(text) is None:
        raise CodecError(f"{text[:80]!r} is not the name of a system")
    return SystemId(text)


def attribute_name(text: str) -> str:
    """Check the name of an attribute (without `$`)."""
    if _NAME.fullmatch(text) is None:
        raise CodecError(f"{text[:80]!r} is not the name of an attribute")
    return text


def address(text: str) -> str:
    """Check an address, which may be empty."""
    if _ADDRESS.fullmatch(text) is None:
        raise CodecError(f"{text[:80]!r} is not an address")
    return text


def dialed_address(text: str) -> str:
    """Check the host:port of a new neighbor, or "" if nobody can dial it."""
    if text and _DIALED.fullmatch(text) is None:
        raise CodecError(f"{text[:80]!r} is not host:port")
    return text


def counter(number: int) -> int:
    """Check that a number of messages, tasks, bytes or nanoseconds fits a signed 64-bit integer."""
    if number >= COUNTER_END:
        raise CodecError(f"{number} is too large")
    return number


def position(number: int) -> int:
    """Check the position of a task in its array, or of an attempt among those of its task."""
    if number >= POSITION_END:
        raise CodecError(f"{number} is too large")
    return number


def amount(number: int, *, lowest: int = 0) -> int:
    """Check a number of machines, places or requests."""
    if not lowest <= number < COUNT_END:
        raise CodecError(f"{number} is not in {lowest} to {COUNT_END - 1}")
    return number


def at_most(length: int, limit: int, *, what: str) -> None:
    """Raise if `length` exceeds `limit`; `what` names the counted items."""
    if length > limit:
        raise CodecError(f"{length} {what}, at most {limit} are allowed")


def secret(content: bytes) -> bytes:
    """Check the length of a random id or ticket."""
    if len(content) != SECRET_BYTES:
        raise CodecError(f"an id has {len(content)} bytes instead of {SECRET_BYTES}")
    return content


def bounded(text: str, limit_bytes: int) -> str:
    """Check the length of a text in UTF-8."""
    # A character takes at most 4 bytes, so most texts need not be encoded to be measured.
    if len(text) * 4 > limit_bytes:
        bounded_length(len(text.encode()), limit_bytes)
    return text


def bounded_length(size_bytes: int, limit_bytes: int) -> None:
    """Check the length of a text in UTF-8 that is not at hand."""
    if size_bytes > limit_bytes:
        raise CodecError(f"a text of {size_bytes} bytes, at most {limit_bytes} are allowed")


def line(text: str, limit_bytes: int) -> str:
    """Check the length of a text for people, and that it has no control characters (core/model/texts.py)."""
    if has_control(text):
        raise CodecError(f"control characters in {text[:80]!r}")
    return bounded(text, limit_bytes)


def predicate_text(content: bytes) -> str:
    """Decode a predicate without judging it: the parser reports what is wrong, so that the sender gets an answer.

    A text that is too long is cut, but stays too long. A text that is not UTF-8 is cut at the first wrong byte and ends
    in NUL, which no predicate contains.
    """
    kept = content[: PREDICATE_LIMIT_BYTES + _LONGEST_CHARACTER_BYTES]
    try:
        return kept.decode()
    except UnicodeDecodeError as error:
        return kept[: error.start].decode() + "\0"


def shortened(text: str, limit_bytes: int) -> str:
    """Cut a text to its longest prefix that `line` accepts; control characters are escaped."""
    text = printable(text[:limit_bytes])
    if text.isascii():
        return text[:limit_bytes]
    return text.encode(errors="replace")[:limit_bytes].decode(errors="ignore")


def relative_path(text: str) -> str:
    """Check the name of an input or output: a relative path that stays within its folder.

    Names are shown on terminals, so control characters are refused.
    """
    bounded(text, PATH_LIMIT_BYTES)
    parts = text.split("/")
    if has_control(text) or not {"", ".", ".."}.isdisjoint(parts):
        raise CodecError(f"{text[:80]!r} is not a relative path of a file")
    for part in parts:
        bounded(part, PATH_PART_LIMIT_BYTES)
    return text


def check_kind(name: str, *, link_target: str, is_folder: bool, size_bytes: int) -> None:
    """Check that an input or output is a file, a link that stays inside the working directory, or an empty folder."""
    if not link_target and not is_folder:
        return
    if size_bytes or (link_target and is_folder):
        raise CodecError(f"{name[:80]!r} is of several kinds")
    line(link_target, PATH_LIMIT_BYTES)
    if link_target and not stays_inside(name, link_target):
        raise CodecError(f"the link {name[:80]!r} leads to {link_target[:80]!r}, out of the working directory")


def described(size_bytes: int) -> None:
    """Check the length of the description of a task's inputs and declared outputs (`description_bytes`)."""
    if size_bytes > DESCRIPTION_LIMIT_BYTES:
        what = f"names, targets of links, and {ENTRY_BYTES} bytes for each"
        raise CodecError(
            f"the inputs and declared outputs of a task take {size_bytes} bytes to describe ({what}), at most "
            f"{DESCRIPTION_LIMIT_BYTES} are allowed: pack them with tar"
        )


def declared_names(names: Collection[str], *, others: Collection[str] = ()) -> None:
    """Check the declared outputs of a task: paths and patterns. `others` are patterns of it that have been checked."""
    at_most(len(names), FILE_LIMIT, what="outputs")
    patterns = [name for name in names if is_pattern(name)]
    at_most(len(patterns) + len(others), PATTERN_LIMIT, what="outputs with *, ? or [")
    characters = sum(map(len, patterns)) + sum(map(len, others))
    at_most(characters, PATTERNS_LIMIT_CHARACTERS, what="characters of outputs with *, ? or [ together")
    for name in names:
        relative_path(name)
    for name in patterns:
        at_most(name.count("/") + 1, DEPTH_LIMIT, what=f"parts of {name[:80]!r}")


def separate_paths(names: Iterable[str]) -> list[str]:
    """Sort names of inputs by `path_order`; raise if two are equal or one is a folder of another."""
    ascending = sorted(names, key=path_order)
    for name, following in pairwise(ascending):
        if name == following or following.startswith(f"{name}/"):
            raise CodecError(f"two inputs cannot have the names {name[:80]!r} and {following[:80]!r}")
    return ascending


def path_order(name: str) -> str:
    """Return a sort key by which the content of a folder directly follows the folder."""
    # The separator becomes the character that sorts before every other.
    return name.replace("/", "\0")


def sha256(content: bytes) -> bytes:
    """Check the length of a SHA-256."""
    if len(content) != SHA256_BYTES:
        raise CodecError(f"a SHA-256 of {len(content)} bytes")
    return content
