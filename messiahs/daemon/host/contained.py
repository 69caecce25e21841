"""What a module says of how its tasks are contained, in its log and in `module list`, and what its notes need."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from messiahs.config.settings import PROCESS
from messiahs.core.model.usage import Containment

_PROGRAMS: Final = "/usr"
_OWN_ACCOUNT: Final = (
    "tasks of other sites are refused here, because they would have all rights of this module's account: write "
    "`isolation: bubblewrap` in its `machine`, or run it as root, or, if that is what you want, write `foreign_tasks: "
    "run-with-my-rights` there"
)
_ONE_ACCOUNT: Final = (
    "tasks of other sites are refused here, because all tasks would share an account: allow namespaces and mounts to "
    "this module, or, if that is what you want, write `isolation: process` in its `machine`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the notes depend on, besides what the starter found; sandboxes show the folders `shown`."""

    is_root: bool = False
    is_default: bool = False
    """Whether the module runs as root, and whether sandboxes are what it does by default."""
    refuses_sites: bool = False
    """Whether it has neighbors at other sites, whose tasks may not run outside of sandboxes here."""
    shown: tuple[str, ...] = ()
    has_joined: bool = False
    """Whether it joined with a token, so that no topology file lists its links."""


def notes_of(found: Containment | None, expected: Expected) -> list[str]:
    """Return what to say of a machine whose tasks are contained as `found`; None: there is no machine."""
    if found is None:
        return []
    if found.isolation != PROCESS:
        return problems_of_shown(expected.shown)
    notes = []
    if expected.is_root and expected.is_default:
        notes.append(f"tasks run without sandboxes, which are the default of root: {found.lacks}")
    if expected.refuses_sites:
        notes.append(_ONE_ACCOUNT if expected.is_root else _OWN_ACCOUNT)
    return notes


def problems_of_shown(folders: tuple[str, ...]) -> list[str]:
    """Return what tasks in sandboxes lack that see these folders of the machine; none: those of the system."""
    if not folders:
        return []
    problems = [f"`show` names {folder}, which is not there: tasks do not see it" for folder in _absent(folders)]
    if not any(f"{_PROGRAMS}/".startswith(f"{folder.rstrip('/')}/") for folder in folders):
        lacks = f"`show` does not name {_PROGRAMS}: tasks find no programs of the system there"
        problems.append(f"{lacks}, unless they bring an image")
    return problems


def _absent(folders: tuple[str, ...]) -> list[str]:
    return [folder for folder in folders if not Path(folder).exists()]
