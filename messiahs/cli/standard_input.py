"""What comes over standard input, for commands that take `-` in place of a file."""

import sys

from messiahs.errors import ClientError


def standard_input() -> str:
    """Read all of it; raises ClientError if it is closed, or no UTF-8."""
    if sys.stdin is None:
        raise ClientError("<stdin>: it is closed, and nothing can be read from it")
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise ClientError("<stdin>: this is no UTF-8") from error
    except OSError as error:
        raise ClientError(f"<stdin>: it cannot be read: {error.strerror}") from error
