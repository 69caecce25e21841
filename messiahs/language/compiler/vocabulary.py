"""The attributes that each block of a policy file may name: from the catalogue, and declared in the file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from lark import Token

from messiahs.core.model.attributes import (
    MACHINE_ATTRIBUTES,
    SCOPES,
    SEEN_BY_THE_OWNER,
    TASK_ATTRIBUTES,
    WELL_KNOWN,
    Attribute,
    Kind,
    Scope,
)
from messiahs.core.model.series import Statistic
from messiahs.language.runtime.readings import CANDIDATE, HERE, MACHINE, NOW, PEER, TASK
from messiahs.language.syntax.problems import Code, Notebook

STATED: Final = "stated"
"""The attributes that a task itself states; another system that evaluates a predicate on it knows no others."""
_SEEN: Final = {
    scope: {each.name: each for each in SEEN_BY_THE_OWNER if scope in SCOPES[each.scope]}
    for scope in (TASK, HERE, CANDIDATE, PEER, NOW)
}
_DESCRIBED_IN: Final = {
    TASK: TASK_ATTRIBUTES,
    HERE: MACHINE_ATTRIBUTES,
    MACHINE: MACHINE_ATTRIBUTES,
    STATED: TASK_ATTRIBUTES,
}
_SENDER: Final = {"name": "from", "relation": "relation"}
"""Attributes of tasks that tell what those of the asker do."""
_WITH_HISTORY: Final = (HERE, CANDIDATE, PEER, MACHINE)
_WELL_KNOWN: Final = {
    scope: {each.name: each for each in WELL_KNOWN if each.scope is about}
    for scope, about in ((TASK, Scope.TASK), (HERE, Scope.MACHINE), (MACHINE, Scope.MACHINE), (STATED, Scope.TASK))
}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The scopes of a block; `subject` is the scope of a name written without one, None if it is undetermined.

    `unavailable` are attributes that only a task on this machine has, for a block about other tasks. Without
    `knows_history`, the block is about systems of which there is no history.
    """

    block: str
    subject: str | None
    scopes: tuple[str, ...]
    unavailable: frozenset[str] = frozenset()
    knows_history: bool = True


LET: Final = View(block="let", subject=None, scopes=(TASK, HERE, CANDIDATE, PEER, NOW))


@dataclass(frozen=True, slots=True)
class Known:
    """An attribute that may be named, with its scope; without an attribute if its declaration is invalid."""

    scope: str
    attribute: Attribute | None


@dataclass(slots=True)
class Vocabulary:
    """The attributes declared so far, and those that the histories have (mutable).

    None stands for an invalid declaration.
    """

    declared: dict[str, Attribute | None] = field(default_factory=dict)
    in_history: dict[str, Attribute] = field(default_factory=dict)

    def look_up(self, token: Token, view: View, notebook: Notebook, /) -> Known | None:
        """Return the meaning of a variable in a block; None, with a problem, if it has none there."""
        scope, _, name = token[1:].rpartition(".")
        if scope and scope not in view.scopes:
            hint = _sender_hint(scope, name, view) or (
                f"it knows {' '.join(f'${known}.' for known in view.scopes)}" if view.scopes else ""
            )
            message = f"`{view.block}` does not know ${scope}."
            notebook.error(token, Code.SCOPE, message, hint=hint, label=_whose(scope))
            return None
        subjects = (scope,) if scope else (TASK, MACHINE) if view.subject is None else (view.subject,)
        for subject in subjects:
            names = self.names_in(subject)
            if subject == TASK and name in view.unavailable:
                break
            if name in self.in_history and not view.knows_history:
                notebook.error(token, Code.UNKNOWN_ATTRIBUTE, f"{token} is never known in `{view.block}`")
                return None
            if name in names:
                return Known(subject, names[name])
        known = {each: attribute for subject in subjects for each, attribute in self.names_in(subject).items()}
        hint = self._hint(name, known, view)
        notebook.error(token, Code.UNKNOWN_ATTRIBUTE, f"{token} is not known here", hint=hint)
        return None

    def names_in(self, scope: str) -> Mapping[str, Attribute | None]:
        """Return every attribute that has a name in a scope."""
        seen, described = _SEEN.get(scope, {}), _DESCRIBED_IN.get(scope)
        past = self.in_history if scope in _WITH_HISTORY else {}
        return (
            {**past, **seen}
            if described is None
            else {**_WELL_KNOWN[scope], **self.declared, **past, **seen, **described}
        )

    def find(self, scope: str, name: str) -> Attribute | None:
        """Return the meaning of a name in a scope; None if it is unknown."""
        described, past = _DESCRIBED_IN.get(scope), self.in_history.get(name) if scope in _WITH_HISTORY else None
        if described is None or past is not None or name in _SEEN.get(scope, {}):
            return past or _SEEN.get(scope, {}).get(name)
        return described.get(name) or self.declared.get(name, _WELL_KNOWN[scope].get(name))

    def _hint(self, name: str, known: Mapping[str, object], view: View) -> str:
        is_of_task = name not in view.unavailable
        elsewhere = [each for each in view.scopes if name in self.names_in(each) and (each != TASK or is_of_task)]
        if elsewhere:
            return f"write ${elsewhere[0]}.{name}"
        if not is_of_task:
            return "it is known of tasks on this machine only: use it in `running`, `offer` or `rank tasks`"
        if name in TASK_ATTRIBUTES or name in MACHINE_ATTRIBUTES:
            return f"it tells of {'tasks' if name in TASK_ATTRIBUTES else 'machines'}"
        near = get_close_matches(name, sorted(known), n=1)
        if (remembered := _remembered(name, known)) and view.knows_history:
            return f"keep its history: history {{ keep ${remembered} over 1h; }}"
        if near:
            return f"did you mean ${near[0]}?"
        return f"declare it: attribute ${name} int;" if set(known) & {*MACHINE_ATTRIBUTES, *TASK_ATTRIBUTES} else ""


def _sender_hint(scope: str, name: str, view: View) -> str:
    """Return a hint for who asks, in a block that knows who sent a task; empty if it does not."""
    meant = _SENDER.get(name) if scope == PEER and TASK in view.scopes else None
    return f"write $task.{meant} for the system that sent the task" if meant and meant not in view.unavailable else ""


def _remembered(name: str, known: Mapping[str, object]) -> str:
    """Return the attribute whose history would have an unknown name; empty: there is none."""
    base, _, last = name.rpartition("_")
    described = MACHINE_ATTRIBUTES.get(base)
    is_number = described is not None and described.kind is Kind.INTEGER
    return base if last in list(Statistic) and (is_number or base in known) else ""


def _whose(scope: str) -> str:
    owners = {
        TASK: "a task",
        HERE: "the own system",
        CANDIDATE: "a system that could be asked",
        PEER: "who asks",
        NOW: "the time",
    }
    return f"tells of {owners[scope]}"
