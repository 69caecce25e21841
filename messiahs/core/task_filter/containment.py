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
    """Return why a task may not run on the own machine, whatever is free; empty if it may or there is no machine."""
    return why_not_foreign(state, is_foreign=is_foreign) or why_no_image(state, tdv)


def why_not_foreign(state: ModuleState, *, is_foreign: bool) -> str:
    """Return why the own machine runs no task of another site; empty as above, and for other tasks."""
    is_refused = is_foreign and state.identity.keeps_account and _isolation(state) not in (None, *_CONTAINED)
    return _FOREIGN_TEXT if is_refused else ""


def why_no_image(state: ModuleState, tdv: TDV) -> str:
    """Return why the own machine runs no task in an image; empty as above, and for other tasks.

    Such a task is asked for here although its requirement should exclude that: other releases, and programs that use
    the API of one, can leave the requirement out.
    """
    return _IMAGE_TEXT if image_in(tdv.pairs) and _isolation(state) not in (None, _UNPACKS) else ""


def _isolation(state: ModuleState) -> object:
    """Return how the own machine contains tasks; None if there is no machine."""
    return None if state.updates.measured is None else dict(state.updates.measured.pairs).get("isolation", "")
