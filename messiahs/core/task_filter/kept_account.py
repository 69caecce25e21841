"""Why a machine that contains no tasks takes none of other sites."""

from typing import Final

from messiahs.core.state.module import ModuleState

_CONTAINED: Final = ("sandbox", "bubblewrap")
_TEXT: Final = "it takes no tasks of other sites: without a sandbox they would have all rights of its module's account"


def why_no_foreign_tasks(state: ModuleState) -> str:
    """Return why tasks of other sites may not run on the own machine; empty if they may, or if there is none."""
    if not state.identity.keeps_account or state.updates.measured is None:
        return ""
    isolation = dict(state.updates.measured.pairs).get("isolation")
    return "" if isolation in _CONTAINED else _TEXT
