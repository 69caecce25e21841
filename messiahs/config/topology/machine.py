"""Reading the machine of a system: attributes that are configured instead of measured, or in addition."""

from collections.abc import Callable
from pathlib import Path

from messiahs.config.quantities import duration_seconds, share, size_bytes
from messiahs.config.settings import MachineSettings
from messiahs.config.topology.check import ATTRIBUTE_NAME
from messiahs.config.topology.counted import COUNTED_KEY, check_attributes, read_counted
from messiahs.config.topology.isolation import ISOLATION_KEYS, read_isolation
from messiahs.config.topology.maxima import MAXIMA_KEY, read_maxima
from messiahs.config.topology.problems import Problems
from messiahs.config.topology.yaml_places import Section, refuse_unknown_keys, subsection
from messiahs.core.model.attributes import (
    EXTENSION_LIMIT,
    MACHINE_ATTRIBUTES,
    SEEN_BY_THE_OWNER,
    STRING_LIMIT_BYTES,
    TASK_ATTRIBUTES,
    WELL_KNOWN,
    Attribute,
    Kind,
    Scope,
    Unit,
    Value,
)
from messiahs.core.model.descriptions import is_valid_value
from messiahs.errors import MessiahsError

_PROBES = ("proc", "fixed")
_ALWAYS_TOLD = ("slots", "speed")
"""Attributes that no probe can measure: processors for tasks, and relative speed."""

_TOLD = {
    **{name: each for name, each in MACHINE_ATTRIBUTES.items() if each.supplier != "starter"},
    **{each.name: each for each in SEEN_BY_THE_OWNER if each.supplier == "probe"},
}
"""Attributes that a probe measures."""
_WELL_KNOWN = {each.name: each for each in WELL_KNOWN if each.scope is Scope.MACHINE}
_OF_TASKS = {*TASK_ATTRIBUTES, *(each.name for each in WELL_KNOWN if each.scope is Scope.TASK)} - set(_WELL_KNOWN)

MACHINE_KEYS = ("probe", "attributes", "console", COUNTED_KEY, MAXIMA_KEY, *ISOLATION_KEYS, *_TOLD)
"""Keys of a system's `machine` mapping."""

_READERS: dict[Unit, Callable[[str], int]] = {
    Unit.BYTES: size_bytes,
    Unit.SECONDS: duration_seconds,
    Unit.SHARE: share,
}
_RANGE = "a whole number from 0 to 2^63 - 1"


def read_machine(section: Section, problems: Problems) -> MachineSettings:
    """Return the machine described by a system's `machine` mapping."""
    probe = section.values.get("probe", "proc")
    if probe not in _PROBES:
        problems.add(section.value_place("probe"), f"unknown probe `{probe}`: {' or '.join(_PROBES)}")
    refuse_unknown_keys(section, MACHINE_KEYS, problems)
    attributes: dict[str, Value] = {}
    for name in (key for key in section.values if key in _TOLD):
        if probe != "fixed" and name not in _ALWAYS_TOLD:
            problems.add(section.key_place(name), f"`{name}` is measured; it can be set with `probe: fixed` only")
            continue
        value = _fixed_value(_TOLD[name], section, problems)
        if value is not None:
            attributes[name] = value
    extensions = subsection(section, "attributes", problems) if "attributes" in section else None
    if extensions is not None:
        attributes.update(_read_extensions(extensions, problems))
    console = _console(section, problems) if "console" in section.values else None
    isolation = read_isolation(section, problems)
    counted, devices = read_counted(section, problems)
    check_attributes(section, problems, counted=counted)
    maxima, open_files = read_maxima(section, problems)
    return MachineSettings(
        probe=str(probe),
        attributes=attributes,
        console_file=console,
        isolation=isolation.isolation,
        network=isolation.network,
        shown=isolation.shown,
        task_uids=isolation.task_uids,
        lends_account=isolation.lends_account,
        counted=counted,
        devices=devices,
        maxima=maxima,
        open_files=open_files,
    )


def _console(section: Section, problems: Problems) -> Path | None:
    raw = section.values["console"]
    if isinstance(raw, str) and raw.startswith("/"):
        return Path(str(raw))
    text = f"console: `{raw}` is not an absolute path: it is a file on the machine that is touched when it is used"
    problems.add(section.value_place("console"), text)
    return None


def _fixed_value(attribute: Attribute, section: Section, problems: Problems) -> Value | None:
    raw, place = section.values[attribute.name], section.value_place(attribute.name)
    try:
        return _value_of(attribute, raw)
    except MessiahsError as error:
        problems.add(place, f"{attribute.name}: {error}")
        return None


def _value_of(attribute: Attribute, raw: object) -> Value:
    if attribute.kind is Kind.STRING:
        if not isinstance(raw, str) or not raw or not is_valid_value(str(raw)):
            raise MessiahsError(f"`{raw}` is not a text of 1 to {STRING_LIMIT_BYTES} bytes without control characters")
        return str(raw)
    if attribute.unit in _READERS:
        value = _READERS[attribute.unit](str(raw))
    elif isinstance(raw, int) and not isinstance(raw, bool):
        value = int(raw)
    else:
        raise MessiahsError(f"`{raw}` is not an integer: it is {_RANGE}")
    if value < 0 or not is_valid_value(value):
        raise MessiahsError(f"`{raw}` is out of range: it is {_RANGE}")
    return value


def _read_extensions(section: Section, problems: Problems) -> dict[str, Value]:
    if len(section.values) > EXTENSION_LIMIT:
        problems.add(section.place, f"`attributes` has {len(section.values)} names of at most {EXTENSION_LIMIT}")
    read: dict[str, Value] = {}
    for name, raw in section.values.items():
        problem = _problem_with_name(name) or _problem_with_known(name, raw) or _problem_with_extension(raw)
        if problem:
            place = section.key_place(name) if _problem_with_name(name) else section.value_place(name)
            problems.add(place, f"{name}: {problem}")
        else:
            read[str(name)] = str(raw) if isinstance(raw, str) else int(raw)
    return read


def _problem_with_name(name: object) -> str:
    if not isinstance(name, str) or not ATTRIBUTE_NAME.fullmatch(name):
        return "an attribute's name is letters, digits and `_`, at most 64, and no digit first"
    if name in MACHINE_ATTRIBUTES or name in _TOLD:
        return "is an attribute of every machine; write it under `machine`, not under `attributes`"
    return "is an attribute of tasks; find another name" if name in _OF_TASKS else ""


def _problem_with_extension(raw: object) -> str:
    if isinstance(raw, bool) or not isinstance(raw, (int, str)):
        return f"`{raw}` is neither a text nor an integer; put it in quotes to make it a text"
    value: Value = str(raw) if isinstance(raw, str) else int(raw)
    if is_valid_value(value):
        return ""
    return f"is longer than {STRING_LIMIT_BYTES} bytes, has control characters, or is out of 64 bits"


def _problem_with_known(name: object, raw: object) -> str:
    """Return why a value is none of an extension attribute that needs no declaration, such as `gpus`."""
    try:
        if name in _WELL_KNOWN:
            _value_of(_WELL_KNOWN[str(name)], raw)
    except MessiahsError as error:
        return str(error)
    return ""
