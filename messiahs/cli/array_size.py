"""The options that say how many tasks a submission has: a range of numbers, or the lines of a file."""

import sys
from typing import Final

import click

from messiahs.client.members import Members
from messiahs.config.regular_files import NotRegularError, read_regular

_MOST_DIGITS: Final = 13
"""Of a number in a range, such as milliseconds since 1970."""


def array_range(text: str) -> Members:
    """Read `A-B`; if A is not 1, members 1, 2, … have the items A, A + 1, …."""
    first, dash, last = text.partition("-")
    if not dash or not _is_number(first) or not _is_number(last):
        raise click.BadParameter(f"`{text}` is not a range such as 1-100")
    low, high = int(first), int(last)
    if not 1 <= low <= high:
        raise click.BadParameter(f"`{text}`: a range begins at 1 or more and does not descend")
    return Members.numbered(low, high)


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
    return Members.of_items(items)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
