"""Whose tasks a command is about."""

import os
import pwd


def own_name() -> str:
    """Return the name of the account that runs this command, as modules name it."""
    uid = os.geteuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid-{uid}"
