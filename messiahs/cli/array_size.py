"""The options that say how many tasks a submission has: numbers in the notation of Slurm, or the lines of a file."""

import re
from itertools import chain
from typing import Final

import click

from messiahs.cli.text_files import text_of
from messiahs.client.members import Members
from messiahs.core.interface.limits import MEMBER_LIMIT

# Of at most 13 digits each, such as milliseconds since 1970.
_PART: Final = re.compile(r"(?P<first>[0-9]{1,13})(-(?P<last>[0-9]{1,13})(:(?P<step>[0-9]{1,13}))?)?")
_LIMIT: Final = re.compile(r"[0-9]{1,13}")


def array_numbers(text: str) -> Members:
    """Read numbers and ranges such as `1-100`, `1,4,9` or `0-99:5`, with at most N at once after `%N`.

    Members 1, 2, … have the numbers in ascending order, each once, as items.
    """
    numbers, percent, limit = text.partition("%")
    if percent and not _LIMIT.fullmatch(limit):
        raise click.BadParameter(f"`{text}`: after the % stands how many run at once, such as 0-499%20")
    parts = [_part(part, text) for part in numbers.split(",")]
    count = sum(map(len, parts))
    if len(parts) > 1 and count <= MEMBER_LIMIT:
        members = Members.of_numbers(sorted({*chain(*parts)}))
    else:
        # Of a list that is too long, only the length is looked at.
        members = Members.of_numbers(parts[0] if len(parts) == 1 else range(count))
    return members.limited(int(limit)) if percent else members


def each_line(file: str) -> Members:
    """Read one item from each line of a file (`-`: standard input), skipping empty lines."""
    lines = (line.removesuffix("\r") for line in text_of(file).split("\n"))
    items = tuple(line for line in lines if line.strip())
    if not items:
        raise click.BadParameter(f"`{file}` has no line that is not empty")
    return Members.of_items(items)


def _part(part: str, text: str) -> range:
    found = _PART.fullmatch(part)
    if found is None:
        raise click.BadParameter(f"`{text}` is not a range such as 1-100, nor 1,4,9 or 0-99:5")
    first = int(found["first"])
    last, step = int(found["last"] or first), int(found["step"] or 1)
    if first > last:
        raise click.BadParameter(f"`{text}`: a range does not descend")
    if not step:
        raise click.BadParameter(f"`{text}`: a step is at least 1")
    return range(first, last + 1, step)
