"""The tasks of one submission: a single task, the members of an array, or one for each line of a file."""

import sys
from dataclasses import dataclass

import click

from messiahs.config.regular_files import NotRegularError, read_regular

MEMBER_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """`count` is 0 for a single task; `items` are the replacements of `{}`, by default the member numbers."""

    count: int = 0
    items: tuple[str, ...] = ()

    def texts(self) -> tuple[str, ...]:
        """Return the replacement of `{}` for each member; empty for a single task."""
        return self.items or tuple(str(number) for number in range(1, self.count + 1))


def array_range(text: str) -> Members:
    """Read `A-B`; if A is not 1, members 1, 2, … have the items A, A + 1, …."""
    first, dash, last = text.partition("-")
    if not dash or not _is_number(first) or not _is_number(last):
        raise click.BadParameter(f"`{text}` is not a range such as 1-100")
    low, high = int(first), int(last)
    if not 1 <= low <= high:
        raise click.BadParameter(f"`{text}`: a range begins at 1 or more and does not descend")
    _check_count(high - low + 1)
    if low == 1:
        return Members(count=high)
    return Members(count=high - low + 1, items=tuple(str(number) for number in range(low, high + 1)))


def each_line(file: str) -> Members:
    """Read one item from each line of a file (`-`: standard input), skipping empty lines."""
    try:
        raw = sys.stdin.buffer.read() if file == "-" else read_regular(file)
    except OSError as error:
        hint = "; `-` reads standard input" if isinstance(error, NotRegularError) else ""
        raise click.BadParameter(f"`{file}` cannot be read: {error.strerror}{hint}") from error
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"`{file}` is not UTF-8 text (byte {error.start + 1})") from error
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    items = tuple(line for line in lines if line.strip())
    if not items:
        raise click.BadParameter(f"`{file}` has no line that is not empty")
    _check_count(len(items))
    return Members(count=len(items), items=items)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= len(str(MEMBER_LIMIT**2))


def _check_count(count: int) -> None:
    if count > MEMBER_LIMIT:
        raise click.BadParameter(f"a submission has at most {MEMBER_LIMIT} tasks, not {count}")
