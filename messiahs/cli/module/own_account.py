"""What an administrator is told who lends a machine from an account that is not root's."""

import pwd

from messiahs.config.settings import ModuleSettings


def warning_of(settings: ModuleSettings, uid: int) -> str:
    """Say what tasks of others may do if the daemon runs as `uid`; empty for root and without a machine."""
    if uid == 0 or settings.machine is None:
        return ""
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return (
        f"messiahs: warning: `{settings.name}` runs tasks as {name}, its own account. Every task that its\n"
        f"policy accepts can read and change its keys and database, use its API, and do to the files of {name}\n"
        f"what {name} can do. Run it as root (tasks then run as `{settings.task_user}`), or as an account that\n"
        "has nothing else, or accept only tasks of those whom you trust with that account."
    )
