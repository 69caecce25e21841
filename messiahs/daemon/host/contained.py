"""What a module says, in its log and in `module list`, when its tasks run without sandboxes."""

from dataclasses import dataclass
from typing import Final

from messiahs.config.settings import PROCESS
from messiahs.core.model.usage import Containment

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
    """Whether the module runs as root, and whether sandboxes are what it does by default."""

    is_root: bool = False
    is_default: bool = False
    refuses_sites: bool = False
    """Whether it has neighbors at other sites, whose tasks may not run outside of sandboxes here."""


def notes_of(found: Containment | None, expected: Expected) -> list[str]:
    """Return what to say of a machine whose tasks are contained as `found`; None: there is no machine."""
    if found is None or found.isolation != PROCESS:
        return []
    notes = []
    if expected.is_root and expected.is_default:
        notes.append(f"tasks run without sandboxes, which are the default of root: {found.lacks}")
    if expected.refuses_sites:
        notes.append(_ONE_ACCOUNT if expected.is_root else _OWN_ACCOUNT)
    return notes
