"""Runs the daemon of a module with one defect: `python -m tests.live.defective_daemons FOLDER DEFECT`.

Each defect breaks one of the four autonomies (MESSIAHS 4.2). It replaces one function where the code that uses it
looks it up.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from messiahs.channel import linked_channels
from messiahs.channel.admission import SHUT_OFF, Admission
from messiahs.core import claim_bytes, reload, shut_off, view_changes
from messiahs.core.executor import attempts, claims, owner_rules
from messiahs.core.interface.actions import Action, SendControl
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.events import ShutOffRequested
from messiahs.core.interface.messages import AttemptStatus, StatusVector, TaskKill, TaskState, TaskStatus, TaskTransfer
from messiahs.core.model.ids import SystemId
from messiahs.core.origin import task_status
from messiahs.core.search import routing
from messiahs.core.state.module import ModuleState
from messiahs.core.update import preview
from messiahs.core.vectors.vectors import EMPTY, Vector
from messiahs.daemon.__main__ import run_daemon
from messiahs.daemon.host.turns import Turns
from messiahs.language.runtime.reveal_rules import Disclosure

_Function = Callable[..., Any]
_Actions = tuple[Action, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """A function of a module or class, and what makes a wrong function of the right one."""

    place: object
    name: str
    wrong: Callable[[_Function], _Function]

    def install(self) -> None:
        """Replace the function in this process."""
        setattr(self.place, self.name, self.wrong(getattr(self.place, self.name)))


def _previews_nothing(right: _Function) -> _Function:
    def vectors_for(*arguments: object) -> tuple[StatusVector, ...]:
        return tuple(replace(each, vector=EMPTY) for each in right(*arguments))

    return vectors_for


def _tells_why_it_shut_off(right: _Function) -> _Function:
    def on_shut_off_requested(state: ModuleState, event: ShutOffRequested, *rest: object) -> object:
        linked_channels.SHUT_OFF = f"{SHUT_OFF}: {event.text}"  # type: ignore[attr-defined]
        return right(state, event, *rest)

    return on_shut_off_requested


def _waits_for_claims(right: _Function) -> _Function:
    def on_policy_changed(state: ModuleState, *rest: object) -> object:
        if any(claim.row.via != state.system for claim in state.executor.claims.values()):
            return ()
        return right(state, *rest)

    return on_policy_changed


def _leaves_the_end_to_the_origin(right: _Function) -> _Function:
    def end_for_owner(*arguments: object, **named: object) -> _Actions:
        return tuple(each for each in right(*arguments, **named) if isinstance(each, SendControl))

    return end_for_owner


def _knows_its_own_kind_alone(right: _Function) -> _Function:
    def on_status_vector(state: ModuleState, message: StatusVector, **named: object) -> object:
        kinds = {value for each in message.vector.classes for name, value in each.attributes if name == "os"}
        return right(state, message, **named) if kinds <= {"Linux"} else ()

    return on_status_vector


def _believes_reports_of_anybody(right: _Function) -> _Function:
    def on_task_status(state: ModuleState, status: TaskStatus, *, sender: SystemId, now: object) -> _Actions:
        actions: list[Action] = []
        for claim in tuple(state.origin.claims.values()):
            known = tuple(each for each in status.attempts if each.attempt in claim.bound)
            if known:
                told = replace(status, claim=claim.row.id, attempts=known)
                actions.extend(right(state, told, sender=claim.row.via, now=now))
        return (*actions, *right(state, status, sender=sender, now=now))

    return on_task_status


def _obeys_anybody(right: _Function) -> _Function:
    def on_task_kill(state: ModuleState, kill: TaskKill, now: object) -> _Actions:
        # It bars nobody, since tasks that come later would wait for that.
        kills = [replace(kill, claim=each, is_barring=False) for each in state.executor.claims]
        return tuple(action for each in kills for action in right(state, each, now))

    return on_task_kill


def _takes_any_claim(right: _Function) -> _Function:
    def on_task_transfer(state: ModuleState, transfer: TaskTransfer, *, sender: SystemId, **named: object) -> object:
        own = (each.row for each in state.executor.claims.values() if each.row.via == sender)
        if transfer.claim not in state.executor.claims and (row := next(own, None)) is not None:
            transfer = replace(transfer, claim=row.id, ticket=row.ticket)
        return right(state, transfer, sender=sender, **named)

    return on_task_transfer


def _takes_silence_for_an_end(right: _Function) -> _Function:
    def settle(state: ModuleState, claim: object, status: AttemptStatus, now: object, /) -> object:
        is_lost = status.cause == Cause.LOST
        return right(state, claim, replace(status, state=TaskState.ABORTED) if is_lost else status, now)

    return settle


def _always(value: object) -> Callable[[_Function], _Function]:
    """Return what makes a function that does nothing, and returns a value."""
    return lambda _: lambda *_arguments, **_named: value


def _whole(_: _Function) -> _Function:
    def of(_disclosure: Disclosure, vector: Vector, **_named: object) -> Vector:
        return vector

    return of


def _unsigned(_: _Function) -> _Function:
    return lambda _state, reason, _asker: reason


DEFECTS: Final[Mapping[str, Defect]] = {
    "reveals all": Defect(place=Disclosure, name="of", wrong=_whole),
    "reveals nothing": Defect(place=Disclosure, name="of", wrong=_always(EMPTY)),
    "previews nothing": Defect(place=preview, name="vectors_for", wrong=_previews_nothing),
    "admits whom it shut off": Defect(place=Admission, name="is_off", wrong=_always(value=False)),
    "tells why it shut off": Defect(place=shut_off, name="on_shut_off_requested", wrong=_tells_why_it_shut_off),
    "explains its refusals": Defect(place=routing, name="signed", wrong=_unsigned),
    "checks no ticket": Defect(place=attempts, name="may_access", wrong=_always(value=True)),
    "ends no claim": Defect(place=claims, name="on_claim_end", wrong=_always(())),
    "takes any claim": Defect(place=claim_bytes, name="on_task_transfer", wrong=_takes_any_claim),
    "leaves the end to the origin": Defect(
        place=owner_rules, name="end_for_owner", wrong=_leaves_the_end_to_the_origin
    ),
    "its policy waits for neighbors": Defect(place=reload, name="on_policy_changed", wrong=_waits_for_claims),
    "shuts off with leave alone": Defect(place=shut_off, name="_shut_off", wrong=_always(())),
    "throttles nobody": Defect(place=Turns, name="_may_go", wrong=_always(value=True)),
    "believes anybody": Defect(place=task_status, name="on_task_status", wrong=_believes_reports_of_anybody),
    "obeys anybody": Defect(place=attempts, name="on_task_kill", wrong=_obeys_anybody),
    "waits for answers for ever": Defect(place=routing, name="on_search_timeout", wrong=_always(())),
    "takes silence for an end": Defect(place=task_status, name="settle", wrong=_takes_silence_for_an_end),
    "knows its own kind alone": Defect(place=view_changes, name="on_status_vector", wrong=_knows_its_own_kind_alone),
}
"""Defects by what a module with it does."""


if __name__ == "__main__":
    DEFECTS[sys.argv[2]].install()
    sys.exit(run_daemon(Path(sys.argv[1]) / "settings.json"))
