"""Read a topology: what each key means. What several systems must agree on is checked in `topology_check`."""

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from messiahs.config.quantities import duration_ns
from messiahs.config.settings import MachineSettings
from messiahs.config.topology import System, Topology
from messiahs.config.topology_check import NAME, Draft, check_systems
from messiahs.config.topology_machine import read_machine
from messiahs.config.topology_problems import Place, Problems
from messiahs.config.topology_yaml import Section, parse, refuse_unknown_keys, subsection
from messiahs.core.ids import SystemId
from messiahs.core.instants import HOUR, MILLISECOND, SECOND
from messiahs.errors import MessiahsError

_TOP_KEYS = ("version", "federation", "defaults", "systems")
_DEFAULT_KEYS = ("update_period",)
_SYSTEM_KEYS = ("parent", "parents", "primary", "machine", "host", "port", "reach")
_SHORTEST_PERIOD_NS, _LONGEST_PERIOD_NS = 50 * MILLISECOND, HOUR
_HIGHEST_PORT = 65535
_LABEL = "small letters, digits and `-`"


def read_topology(text: str, file: str) -> Topology:
    """Give the topology that `text` describes; a `TopologyError` holds every problem in it."""
    problems = Problems(file)
    top = parse(text, problems)
    refuse_unknown_keys(top, _TOP_KEYS, problems)
    _read_version(top, problems)
    federation = _read_federation(top, problems)
    period_ns = _read_period(top, problems)
    drafts = _read_systems(top, problems)
    check_systems(drafts, problems)
    problems.raise_if_any()
    systems = tuple(_finished(draft) for draft in drafts)
    return Topology(federation=federation, systems=systems, update_period_ns=period_ns)


def _read_version(top: Section, problems: Problems) -> None:
    if "version" not in top:
        problems.add(top.place, "`version: 1` is missing")
    elif type(top.values["version"]) is not int or top.values["version"] != 1:
        problems.add(top.value_place("version"), f"version {top.values['version']} is unknown; this release reads 1")


def _read_federation(top: Section, problems: Problems) -> str:
    if "federation" not in top:
        problems.add(top.place, "`federation: NAME` is missing")
        return ""
    name = top.values["federation"]
    if not isinstance(name, str) or not NAME.fullmatch(name):
        problems.add(top.value_place("federation"), f"`{name}` is no name of a federation: {_LABEL}")
        return ""
    return str(name)


def _read_period(top: Section, problems: Problems) -> int:
    period_ns = 2 * SECOND
    defaults = subsection(top, "defaults", problems) if "defaults" in top else None
    if defaults is None:
        return period_ns
    refuse_unknown_keys(defaults, _DEFAULT_KEYS, problems)
    if "update_period" not in defaults:
        return period_ns
    place = defaults.value_place("update_period")
    try:
        period_ns = duration_ns(str(defaults.values["update_period"]))
    except MessiahsError as error:
        problems.add(place, f"update_period: {error}")
        return period_ns
    if not _SHORTEST_PERIOD_NS <= period_ns <= _LONGEST_PERIOD_NS:
        problems.add(place, "update_period: from 50ms to 1h")
    return period_ns


def _read_systems(top: Section, problems: Problems) -> tuple[Draft, ...]:
    if "systems" not in top:
        problems.add(top.place, "`systems:` is missing")
        return ()
    systems = subsection(top, "systems", problems)
    if systems is None:
        return ()
    if not systems.values:
        problems.add(systems.place, "`systems:` names no system")
    return tuple(_read_system(systems, name, problems) for name in systems.values)


def _read_system(systems: Section, name: object, problems: Problems) -> Draft:
    place = systems.key_place(name)
    value = systems.values[name]
    if not isinstance(value, CommentedMap):
        problems.add(place, f"system `{name}` needs a mapping: `{name}: {{}}` if there is nothing to say")
        return Draft(name=str(name), place=place)
    section = Section(value, systems.value_place(name))
    refuse_unknown_keys(section, _SYSTEM_KEYS, problems)
    if "reach" in section and section.values["reach"] != "open":
        problems.add(
            section.value_place("reach"), f"`reach: {section.values['reach']}` is not built yet; only `open` is"
        )
    host, port, address_place = _read_address(section, problems)
    return Draft(
        name=str(name),
        place=place,
        parents=_read_parents(section, problems),
        primary=_read_primary(section, problems),
        machine=_read_machine_of(section, problems),
        host=host,
        port=port,
        address_place=address_place,
    )


def _read_parents(section: Section, problems: Problems) -> tuple[tuple[str, Place], ...]:
    if "parent" in section and "parents" in section:
        problems.add(section.key_place("parent"), "`parent` is short for `parents` with one name; write one of the two")
    key = "parents" if "parents" in section else "parent"
    if key not in section:
        return ()
    value, place = section.values[key], section.value_place(key)
    if key == "parents" and isinstance(value, CommentedSeq):
        return _names(value, place, problems)
    if key == "parent" and isinstance(value, (str, int)):
        return ((str(value), place),)
    problems.add(section.key_place(key), f"`{key}` takes {'a list of names' if key == 'parents' else 'one name'}")
    return ()


def _names(listed: CommentedSeq, place: Place, problems: Problems) -> tuple[tuple[str, Place], ...]:
    places = listed.lc.data or {}
    found = []
    for position, name in enumerate(listed):
        here = Place(places[position][0] + 1, places[position][1] + 1) if position in places else place
        if isinstance(name, (str, int)):
            found.append((str(name), here))
        else:
            problems.add(here, f"`{name}` is not the name of a system")
    return tuple(found)


def _read_primary(section: Section, problems: Problems) -> tuple[str, Place] | None:
    if "primary" not in section:
        return None
    value, place = section.values["primary"], section.value_place("primary")
    if not isinstance(value, (str, int)):
        problems.add(section.key_place("primary"), "`primary` takes the name of one of the parents")
        return None
    return (str(value), place)


def _read_machine_of(section: Section, problems: Problems) -> MachineSettings | None:
    machine = subsection(section, "machine", problems) if "machine" in section else None
    return None if machine is None else read_machine(machine, problems)


def _read_address(section: Section, problems: Problems) -> tuple[str | None, int | None, Place]:
    host, port = section.values.get("host"), section.values.get("port")
    for key, other in (("host", "port"), ("port", "host")):
        if key in section and other not in section:
            problems.add(section.key_place(key), f"`{key}` needs `{other}` beside it")
    if "host" in section and (not isinstance(host, str) or not host or any(mark in host for mark in " /@[]")):
        problems.add(section.value_place("host"), f"`{host}` is no host name or address")
        host = None
    if "port" in section and (type(port) is not int or not 1 <= port <= _HIGHEST_PORT):
        problems.add(section.value_place("port"), f"`{port}` is no port: 1 to {_HIGHEST_PORT}")
        port = None
    return host, port, section.value_place("port" if "port" in section else "host")


def _finished(draft: Draft) -> System:
    parents = tuple(SystemId(name) for name, _ in draft.parents)
    primary = SystemId(draft.primary[0]) if draft.primary else next(iter(parents), None)
    return System(
        name=SystemId(draft.name),
        parents=parents,
        primary_parent=primary,
        machine=draft.machine,
        host=draft.host,
        port=draft.port,
    )
