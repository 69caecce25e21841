"""What the local API says in codes, in words for people; the codes stay as they are in JSON."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from messiahs.config.quantities import DURATIONS, SIZES
from messiahs.core.interface.causes import OUTPUT_CAUSES, Cause
from messiahs.core.model.instants import SECOND
from messiahs.core.model.texts import OWN_MACHINE, WITHHELD

_CAUSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        Cause.LOST: "its process disappeared",
        Cause.LEASE_EXPIRED: "its machine was not heard of until its lease expired",
        Cause.UNBOUND: "its module does not know this attempt any more",
        Cause.MOVED: "its module has placed it elsewhere",
        Cause.VACATED: "the owner of its machine needed the place",
        Cause.REVOKED: "the owner of its machine, or an administrator, has ended it",
        Cause.REFUSED: "its machine does not accept it",
        Cause.NEVER_ARRIVED: "it never arrived at its machine",
        Cause.UNREACHABLE: "its machine cannot be reached",
        Cause.NOT_FOUND: "the program was not found",
        Cause.SPAWN_FAILED: "it could not be started",
        Cause.STAGING_FAILED: "an input could not be put in its place",
        Cause.IMAGE_UNUSABLE: "its image cannot be used",
        Cause.ENVIRONMENT_UNUSABLE: "its environment cannot be used",
        Cause.NO_FOLDER: "its folder is not there",
        Cause.NO_INTERPRETER: "the interpreter of its environment is not there",
        Cause.NO_PLACE: "its environment cannot be shown there",
        Cause.TOO_MANY_OUTPUTS: "too many outputs",
        Cause.TOO_MUCH_OUTPUT: "the outputs are too large",
    }
)
_LIMITS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        Cause.MEMORY_LIMIT: ("memory", "mem"),
        Cause.DISK_LIMIT: ("disk", "disk"),
    }
)
"""What a task used too much of, and the attribute and the option that state it."""
_CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "refused_by_policy": "refused",
        "limit_reached": "refused, a limit is reached",
        "no_class": "no machine is this large",
        "requirement_unmet": "no machine meets the requirement",
        "no_capacity": "no machine that fits is free now",
        "hop_limit": "the search had come too far",
        "timed_out": "no answer in time",
        "already_asked": "was asked before",
        "lost": "the connection was lost",
        "bad_predicate": "the requirement cannot be evaluated",
        "unreachable": "tasks cannot be sent there",
        "draining": "is drained, or will be before such a task ends",
        "no_space": "its disk is full",
        "no_task": "has no task to give",
        "dependency_failed": "it waited in vain",
    }
)
_OF_ONE_MODULE: Final = frozenset(
    {"refused_by_policy", "limit_reached", "draining", "no_space", "timed_out", "lost", "unreachable"}
)
"""What one module did, or is: a module that passes such a code on from those it asked did nothing of the kind."""
_REFUSED: Final = "refused_by_policy"
NOT_EXECUTABLE: Final = 126


def cause_text(task: Mapping[str, Any]) -> str:
    """Return why a task ended, other than by its own exit or a signal; empty if it did not."""
    cause, stated = str(task.get("cause") or ""), task.get("tdv") or {}
    if cause in _LIMITS:
        # The limit may have been that of the machine: a text says so.
        what, option = _LIMITS[cause]
        return f"used too much {what}" + (f" (--{option} {_size(stated[option])})" if stated.get(option) else "")
    if cause == Cause.TIME_LIMIT:
        seconds = stated.get("est_time")
        return f"ran longer than --time {_duration(seconds)}" if seconds else "ran longer than it may"
    if cause == Cause.NOT_FOUND and task.get("exit_code") == NOT_EXECUTABLE:
        return "the program cannot be executed"
    return _CAUSES.get(cause, cause)


def ending_text(task: Mapping[str, Any]) -> str:
    """Return how a task ended, with its cause and the text of whoever says so."""
    why = why_ended(task)
    return f"{task['id']} {task['state']}" + (f": {why}" if why else "")


def why_ended(task: Mapping[str, Any]) -> str:
    """Return the cause of the end of a task, and the text of whoever says so; empty if both are unknown."""
    state, text, cause = task["state"], str(task.get("text") or ""), cause_text(task)
    if task.get("cause") in OUTPUT_CAUSES:
        code = f"exit code {task['exit_code']}" if task.get("exit_code") is not None else ""
        is_named = task["cause"] == Cause.OUTPUT_MISSING and bool(text)
        why = text if is_named else ": ".join(filter(None, (_CAUSES.get(task["cause"], "an output is missing"), text)))
        return "; ".join(filter(None, (code, why)))
    return ": ".join(filter(None, ("" if cause == state else cause, text)))


def reason_text(reason: Mapping[str, Any]) -> str:
    """Return who has no place for a task, and why, without those whom it has asked, and without their codes."""
    module, text, rule = reason.get("module"), reason.get("text") or "", reason.get("rule") or ""
    code = str(reason.get("code"))
    if is_passed_on(reason):
        if rule:
            code = _REFUSED
        elif code in _OF_ONE_MODULE or text.startswith(OWN_MACHINE):
            # Its own text is true of it, whatever the code is.
            return f"{module}: {text or 'nobody that it asked takes it'}"
    if (
        code in {"requirement_unmet", "timed_out", "lost", "unreachable"}
        and text
        and not rule
        and not text.startswith(WITHHELD)
    ):
        # The text says more than the code, which also means that a module did not answer, or that a task did not start,
        # or that a machine has as many tasks as it gets before its first results.
        return f"{module}: {text}"
    words = _CODES.get(code, code)
    if code in {"refused_by_policy", "limit_reached"} or rule:
        inner = ": ".join(filter(None, (rule, text)))
        return f"{module}: {words}" + (f" ({inner})" if inner else "")
    return f"{module}: {words}" + (f": {text}" if text else "")


def is_passed_on(reason: Mapping[str, Any]) -> bool:
    """Whether the code of a denial may be that of another module, which this one has asked."""
    hops: Sequence[Mapping[str, Any]] = reason.get("hops") or ()
    return any(hop.get("code") == reason.get("code") and hop.get("module") != reason.get("module") for hop in hops)


def code_text(code: str) -> str:
    """Return the code of a denial in words."""
    return _CODES.get(code, code)


def passed_refusals(reason: Mapping[str, Any]) -> str:
    """Return who refused a task, if a module only passes on that all of those it asked have; else empty."""
    hops: Sequence[Mapping[str, Any]] = reason.get("hops") or ()
    is_own = any(reason.get(part) for part in ("rule", "text", "why"))
    if is_own or not hops or not all(_is_plain_refusal(each) for each in (reason, *hops)):
        return ""
    if any(each.get("hops") for each in hops):
        return ""
    return f"everyone {reason.get('module')} asked refused: " + ", ".join(map(_refusal, hops))


def refusals_in(reasons: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield who refused a task, and why, without those that only passed on what others said."""
    for reason in reasons:
        if reason.get("hops"):
            yield from refusals_in(reason["hops"])
        else:
            yield reason_text(reason)


def _is_plain_refusal(reason: Mapping[str, Any]) -> bool:
    return reason.get("code") == _REFUSED


def _refusal(reason: Mapping[str, Any]) -> str:
    inner = ": ".join(filter(None, (reason.get("rule") or "", reason.get("text") or "")))
    return f"{reason.get('module')} ({inner})" if inner else str(reason.get("module"))


def _size(size_bytes: int) -> str:
    """Return bytes as users write them."""
    return _in_largest(size_bytes, {name: factor for name, factor in SIZES.items() if name[-2:] == "iB" or name == "B"})


def _duration(seconds: int) -> str:
    """Return seconds as users write them."""
    return _in_largest(seconds * SECOND, DURATIONS)


def _in_largest(value: int, units: Mapping[str, int]) -> str:
    name = max((name for name in units if not value % units[name]), key=lambda one: units[one])
    return f"{value // units[name]}{name}"
