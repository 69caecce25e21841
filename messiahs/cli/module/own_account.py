"""Warning for an administrator who runs a module as an account other than root."""

import pwd

from messiahs.config.settings import ModuleSettings


def warning_of(settings: ModuleSettings, uid: int) -> str:
    """Return the warning about what tasks can do if the daemon runs as `uid`; empty for root and without a machine."""
    if uid == 0 or settings.machine is None:
        return ""
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return (
        f"messiahs: warning: `{settings.name}` runs tasks as {name}, its own account. Every task that its\n"
        f"policy accepts can read and change its keys and database, use its API, and access the files of {name}.\n"
        f"Run it as root (tasks then run as `{settings.task_user}`), or as an account that owns nothing\n"
        "else, or accept only tasks of users whom you trust with that account."
    )
