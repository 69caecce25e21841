"""Which tasks the own machine never runs, because of how it contains tasks."""

from typing import Final

from messiahs.core.model.descriptions import TDV
from messiahs.core.model.images import image_in
from messiahs.core.state.module import ModuleState

_CONTAINED: Final = ("sandbox", "bubblewrap")
_FOREIGN_TEXT: Final = "it takes no tasks of other sites: it has no sandboxes, and its account is not lent to them"
_UNPACKS: Final = "sandbox"
_IMAGE_TEXT: Final = "it runs no task in an image: only machines whose `$isolation` is `sandbox` do"


def why_not_contained(state: ModuleState, tdv: TDV, *, is_foreign: bool) -> str:
    """Return why a task may not run on the own machine, whatever is free; empty if it may, or if there is no machine.

    A task with an image is asked for here although its requirement should exclude that: other releases, and programs
    that use the API of one, can leave the requirement out.
    """
    if state.updates.measured is None:
        return ""
    isolation = dict(state.updates.measured.pairs).get("isolation")
    if is_foreign and state.identity.keeps_account and isolation not in _CONTAINED:
        return _FOREIGN_TEXT
    return _IMAGE_TEXT if image_in(tdv.pairs) and isolation != _UNPACKS else ""
