"""Warning for an administrator who runs a module as an account other than root."""

import pwd

from messiahs.config.settings import BUBBLEWRAP, ModuleSettings


def warning_of(settings: ModuleSettings, uid: int) -> str:
    """Return the warning about what tasks can do if the daemon runs as `uid`.

    It is empty for root, without a machine, and where tasks run in sandboxes of bubblewrap.
    """
    if uid == 0 or settings.machine is None or settings.machine.isolation == BUBBLEWRAP:
        return ""
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return (
        f"messiahs: warning: `{settings.name}` runs tasks as {name}, its own account. Every task that its\n"
        f"policy accepts can read and change its keys and database, use its API, and access the files of {name}.\n"
        "Let tasks run in sandboxes (`machine: {isolation: bubblewrap}`), or run it as root (whose tasks run in\n"
        "sandboxes) or as an account that owns nothing else, or accept only tasks of users whom you trust with\n"
        "that account."
    )
