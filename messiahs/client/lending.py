"""The owner's dial of a machine: whether tasks of other modules may run there (MESSIAHS 2: autonomy)."""

from contextlib import closing
from pathlib import Path
from typing import Final, Literal

from messiahs.client.connection import Connection, Document
from messiahs.errors import UnknownRequestError

Position = Literal["on", "off", "policy"]
_PATH: Final = "/v1/lend"


def lending(socket_path: Path) -> Document:
    """Return `{"name", "lend"}` of a module; the dial has `position`, `since`, `until` and `by`."""
    with closing(Connection(socket_path)) as connection:
        return connection.ask("GET", _PATH)


def turned_dial(socket_path: Path) -> Document | None:
    """Return the dial of a module; None if it was not turned, or if the module is of a release without one."""
    try:
        dial: Document = lending(socket_path)["lend"]
    except UnknownRequestError:
        return None
    return None if dial["position"] == "policy" else dial


def turn(socket_path: Path, position: Position, *, until_seconds: int | None = None) -> Document:
    """Turn the dial of a module, until a time in seconds since 1970 if one is given; answers as `lending`.

    That is stored when this returns. Only root, the user of the module, and the account at the console of its machine
    may do this.
    """
    with closing(Connection(socket_path)) as connection:
        return connection.ask("POST", _PATH, body={"lend": position, "until": until_seconds})
