"""Standard input for commands that accept `-` in place of a file."""

import sys

from messiahs.errors import ClientError


def standard_input() -> str:
    """Read all of standard input; raises ClientError if it is closed or not UTF-8."""
    if sys.stdin is None:
        raise ClientError("<stdin>: standard input is closed")
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise ClientError("<stdin>: not valid UTF-8") from error
    except OSError as error:
        raise ClientError(f"<stdin>: cannot be read: {error.strerror}") from error
