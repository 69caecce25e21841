"""Which tasks the own machine never runs, because of how it contains tasks."""

from typing import Final

from messiahs.core.interface.attempts import AttemptEnded
from messiahs.core.interface.causes import UNFIT_CAUSES
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.environments import SHOWN_LETTERS, environment_in, interpreter_in, lacking_text
from messiahs.core.model.images import image_in
from messiahs.core.model.instants import MINUTE, Instant, after
from messiahs.core.model.texts import NOT_FOREIGN
from messiahs.core.state.executor import GrantedClaim
from messiahs.core.state.module import ModuleState

_CONTAINED: Final = ("sandbox", "bubblewrap")
_FOREIGN_TEXT: Final = f"{NOT_FOREIGN}: it has no sandboxes, and its account is not lent to them"
_UNPACKS: Final = "sandbox"
_IMAGE_TEXT: Final = "it runs no task in an image: only machines whose `$isolation` is `sandbox` do"
_ENVIRONMENT_TEXT: Final = "it shows no environment to a task: only machines with sandboxes do"
_UNFIT_TEXT: Final = "it could not use the environment of the task a short while ago"
_LACKING_NS: Final = 10 * MINUTE
"""After that time an interpreter may have been installed."""
_LACKING_LIMIT: Final = 64


def why_not_contained(state: ModuleState, tdv: TDV, *, is_foreign: bool, now: Instant) -> str:
    """Return why a task may not run on the own machine, whatever is free; empty if it may or there is no machine."""
    return why_not_foreign(state, is_foreign=is_foreign) or why_not_brought(state, tdv, now=now)


def why_not_foreign(state: ModuleState, *, is_foreign: bool) -> str:
    """Return why the own machine runs no task of another site; empty as above, and for other tasks."""
    is_refused = is_foreign and state.identity.keeps_account and _isolation(state) not in (None, *_CONTAINED)
    return _FOREIGN_TEXT if is_refused else ""


def why_not_brought(state: ModuleState, tdv: TDV, *, now: Instant) -> str:
    """Return why the own machine runs no task with what this one brings; empty as above, and for other tasks.

    Such a task is asked for here although its requirement should exclude that: other releases, and programs that use
    the API of one, can leave the requirement out. No requirement names interpreters.
    """
    isolation, has_environment = _isolation(state), bool(environment_in(tdv.pairs))
    if isolation is None:
        return ""
    if image_in(tdv.pairs) and isolation != _UNPACKS:
        return _IMAGE_TEXT
    if has_environment and isolation not in _CONTAINED:
        return _ENVIRONMENT_TEXT
    if not has_environment:
        return ""
    needed = interpreter_in(tdv.pairs)
    if _is_lacking(state, needed, now):
        return lacking_text(needed)
    return _UNFIT_TEXT if _is_lacking(state, environment_in(tdv.pairs), now) else ""


def note_lacking(state: ModuleState, claim: GrantedClaim | None, event: AttemptEnded, /, now: Instant) -> None:
    """Remember what the own machine lacks if an attempt has ended because of that: an interpreter, or an environment.

    The text of its end names the interpreter that its archive needs, which may be another one than its user states. The
    own machine then denies only tasks with the same archive.
    """
    if claim is None or event.cause not in UNFIT_CAUSES:
        return
    needed = interpreter_in(claim.row.tdv.pairs)
    # A long one is cut in the text.
    is_named = 0 < len(needed) <= SHOWN_LETTERS and event.text == lacking_text(needed)
    found = needed if is_named else environment_in(claim.row.tdv.pairs)
    lacking = state.executor.lacking
    lacking.pop(found, None)
    lacking[found] = after(now, _LACKING_NS)
    if len(lacking) > _LACKING_LIMIT:
        del lacking[next(iter(lacking))]


def _is_lacking(state: ModuleState, what: str, now: Instant) -> bool:
    return state.executor.lacking.get(what, Instant(0)) > now


def _isolation(state: ModuleState) -> object:
    """Return how the own machine contains tasks; None if there is no machine."""
    return None if state.updates.measured is None else dict(state.updates.measured.pairs).get("isolation", "")
