"""Text files that options name: lines of an array, variables of a task."""

import sys
from io import StringIO

from messiahs.config.regular_files import NotRegularError, read_at_most
from messiahs.core.interface.limits import REQUEST_LIMIT_BYTES as _LIMIT
from messiahs.errors import OptionValueError


def text_of(file: str) -> str:
    """Read a file of UTF-8 (`-`: standard input); raises `OptionValueError`, as all functions here.

    It becomes part of a submit, and is no longer than that may be.
    """
    try:
        raw = sys.stdin.buffer.read(_LIMIT + 1) if file == "-" else read_at_most(file, _LIMIT + 1)
    except OSError as error:
        hint = "; `-` reads standard input" if isinstance(error, NotRegularError) else ""
        raise OptionValueError(f"`{file}` cannot be read: {error.strerror}{hint}") from error
    if len(raw) > _LIMIT:
        text = f"`{file}` is longer than {_LIMIT} bytes, the most of one submit"
        raise OptionValueError(f"{text}: divide it among several, or let the tasks read it as an input")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise OptionValueError(f"`{file}` is not UTF-8 text (byte {error.start + 1})") from error


def lines_of(file: str) -> tuple[str, ...]:
    """Return the lines of a file that are not empty; there must be one."""
    lines = (line.removesuffix("\r") for line in text_of(file).split("\n"))
    items = tuple(line for line in lines if line.strip())
    if not items:
        raise OptionValueError(f"`{file}` has no line that is not empty")
    return items


def variables_of(file: str) -> dict[str, str]:
    """Read a file of variables as shells write them: NAME=VALUE, also in quotes or after `export`, and comments.

    `$` stands for itself in values. A line that is anything else is an error with its number.
    """
    from dotenv.parser import parse_stream  # noqa: PLC0415 - few commands read such files

    found = dict[str, str]()
    for line in parse_stream(StringIO(text_of(file))):
        if line.error or (line.key is not None and line.value is None):
            blank = line.original.string.split("\n")
            number = line.original.line + next(place for place, text in enumerate(blank) if text.strip())
            raise OptionValueError(f"`{file}`, line {number}: `{''.join(blank).strip()}` is not NAME=VALUE")
        if line.key is not None and line.value is not None:
            found[line.key] = line.value
    return found
