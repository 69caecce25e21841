"""Reading a topology: the meaning of each key. `check.py` checks what concerns several systems."""

from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from messiahs.config.local_users import FORMS, is_users
from messiahs.config.quantities import duration_ns
from messiahs.config.regular_files import read_regular
from messiahs.config.settings import ByteSettings, MachineSettings
from messiahs.config.topology.byte_limits import read_byte_limits
from messiahs.config.topology.check import Draft, check_systems
from messiahs.config.topology.connecting import KEYS as CONNECTION_KEYS
from messiahs.config.topology.connecting import read_connections
from messiahs.config.topology.files import NamedFile, check_policies, read_file_name
from messiahs.config.topology.host_names import is_host
from messiahs.config.topology.machine import read_machine
from messiahs.config.topology.metrics import KEY as METRICS_KEY
from messiahs.config.topology.metrics import read_metrics
from messiahs.config.topology.otlp import KEY as OTLP_KEY
from messiahs.config.topology.otlp import read_otlp
from messiahs.config.topology.problems import Place, Problems
from messiahs.config.topology.reach import OPEN, OUTBOUND, REACHES
from messiahs.config.topology.simulated_links import SIMULATED_LINKS_KEY, read_simulated_links
from messiahs.config.topology.topology import System, Topology
from messiahs.config.topology.trust import check_names, check_roots, read_introductions, read_trust
from messiahs.config.topology.webhook_hosts import KEY as WEBHOOK_KEY
from messiahs.config.topology.webhook_hosts import read_webhook_hosts
from messiahs.config.topology.yaml_bounds import EntryBound
from messiahs.config.topology.yaml_places import Section, parse, refuse_unknown_keys, subsection
from messiahs.core.interface.limits import LONGEST_PERIOD_NS, SHORTEST_PERIOD_NS, SIBLINGS, SIBLINGS_LIMIT
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.names import NAME
from messiahs.errors import MessiahsError

_TOP_KEYS = ("version", "federation", "defaults", "introductions", "trusts_relays", "systems", SIMULATED_LINKS_KEY)
_DEFAULT_KEYS = ("policy", "siblings", "update_period", "users", WEBHOOK_KEY)
_SERVICES = (WEBHOOK_KEY, METRICS_KEY, OTLP_KEY)
_SYSTEM_KEYS = (
    *("parent", "parents", "primary", "machine", "bytes", "host", "port", "bulk_port"),
    *("reach", "policy", "external", "trust", "users", *_SERVICES, *CONNECTION_KEYS),
)
_OF_THE_OTHER_SITE = ("machine", "policy", "bytes", "bulk_port", "users", *_SERVICES, *CONNECTION_KEYS)
"""Keys that belong into the file of the site that runs an external system."""
_OF_A_LISTENER = ("host", "port", "bulk_port")
_HIGHEST_PORT = 65535
_LIMIT_BYTES = 16 * 1024 * 1024
_SYSTEMS = 10_000
_BOUND = EntryBound(_SYSTEMS, f"a topology has at most {_SYSTEMS} systems: divide it into sites, each with a file")
_LABEL = "small letters, digits and `-`"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Defaults:
    """Values for systems that do not set their own."""

    update_period_ns: int = 2 * SECOND
    policy: NamedFile | None = None
    siblings: int = SIBLINGS
    users: str = ""
    webhook_hosts: tuple[str, ...] = ()


def load_topology(path: Path, *, reads_trust: bool = False) -> Topology:
    """Read and check a topology file; a `TopologyError` lists every problem as `FILE:LINE:COLUMN: text`.

    Its policies are checked, too, and with `reads_trust` also the files with roots of other sites; only modules with
    a link to such a site need these.
    """
    unreadable = f"the topology {path.absolute()} cannot be read"
    try:
        text = read_regular(path, limit_bytes=_LIMIT_BYTES).decode()
    except UnicodeDecodeError as error:
        raise MessiahsError(f"{unreadable}: it is not UTF-8; save it with that encoding") from error
    except FileNotFoundError as error:
        raise MessiahsError(f"{unreadable}: {error.strerror}; is the path right?") from error
    except OSError as error:
        raise MessiahsError(f"{unreadable}: {error.strerror}") from error
    return read_topology(text, str(path), reads_trust=reads_trust)


def read_topology(text: str, file: str, *, reads_trust: bool = False) -> Topology:
    """Return the topology described by `text`; a `TopologyError` lists every problem in it and in its policies."""
    problems = Problems(file)
    folder = Path(file).parent
    top = parse(text, problems, bound=_BOUND)
    refuse_unknown_keys(top, _TOP_KEYS, problems)
    _read_version(top, problems)
    federation = _read_federation(top, problems)
    defaults = _read_defaults(top, folder, problems)
    drafts = _read_systems(top, folder, problems)
    check_systems(drafts, problems)
    policies = [named for named in (defaults.policy, *(draft.policy for draft in drafts)) if named is not None]
    if policies:
        check_policies(policies, problems)
    introductions = read_introductions(top, folder=folder, problems=problems)
    trusts_relays = _read_trusts_relays(top, problems)
    parents = {draft.name: tuple(name for name, _ in draft.parents) for draft in drafts}
    simulated_links = read_simulated_links(top, parents, problems=problems)
    recorded = (*introductions, *(roots for draft in drafts for roots in draft.trust))
    check_names(recorded, problems, own=(draft.name for draft in drafts if not draft.is_external))
    if reads_trust:
        check_roots(recorded, problems)
    problems.raise_if_any()
    systems = tuple(_finished(draft, defaults) for draft in drafts)
    return Topology(
        federation=federation,
        systems=systems,
        update_period_ns=defaults.update_period_ns,
        siblings=defaults.siblings,
        introductions=tuple(roots.finished() for roots in introductions),
        trusts_relays=trusts_relays,
        simulated_links=simulated_links,
    )


def _read_version(top: Section, problems: Problems) -> None:
    if "version" not in top:
        problems.add(top.place, "`version: 1` is missing")
    elif type(top.values["version"]) is not int or top.values["version"] != 1:
        problems.add(top.value_place("version"), f"version {top.values['version']} is unknown; this release reads 1")


def _read_trusts_relays(top: Section, problems: Problems) -> bool:
    value = top.values.get("trusts_relays", False)
    if not isinstance(value, bool):
        problems.add(top.value_place("trusts_relays"), "`trusts_relays` takes true or false")
    return value is True


def _read_federation(top: Section, problems: Problems) -> str:
    if "federation" not in top:
        problems.add(top.place, "`federation: NAME` is missing")
        return ""
    name = top.values["federation"]
    if not isinstance(name, str) or not NAME.fullmatch(name):
        problems.add(top.value_place("federation"), f"`{name}` is not the name of a federation: {_LABEL}")
        return ""
    return str(name)


def _read_defaults(top: Section, folder: Path, problems: Problems) -> _Defaults:
    section = subsection(top, "defaults", problems) if "defaults" in top else None
    if section is None:
        return _Defaults()
    refuse_unknown_keys(section, _DEFAULT_KEYS, problems)
    policy = read_file_name(section, "policy", folder=folder, problems=problems)
    return _Defaults(
        update_period_ns=_read_period(section, problems),
        policy=policy,
        siblings=_read_siblings(section, problems),
        users=_read_users(section, problems),
        webhook_hosts=read_webhook_hosts(section, problems),
    )


def _read_siblings(defaults: Section, problems: Problems) -> int:
    number = defaults.values.get("siblings", SIBLINGS)
    if isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= SIBLINGS_LIMIT:
        return int(number)
    problems.add(defaults.value_place("siblings"), f"siblings: from 0 to {SIBLINGS_LIMIT}")
    return SIBLINGS


def _read_users(section: Section, problems: Problems) -> str:
    value = section.values.get("users", "")
    if "users" not in section or (isinstance(value, str) and is_users(value)):
        return str(value)
    problems.add(section.value_place("users"), f"users: {FORMS}, not `{value}`")
    return ""


def _read_period(defaults: Section, problems: Problems) -> int:
    period_ns = _Defaults().update_period_ns
    if "update_period" not in defaults:
        return period_ns
    place = defaults.value_place("update_period")
    try:
        period_ns = duration_ns(str(defaults.values["update_period"]))
    except MessiahsError as error:
        problems.add(place, f"update_period: {error}")
        return period_ns
    if not SHORTEST_PERIOD_NS <= period_ns <= LONGEST_PERIOD_NS:
        problems.add(place, "update_period: from 50ms to 1h")
    return period_ns


def _read_systems(top: Section, folder: Path, problems: Problems) -> tuple[Draft, ...]:
    if "systems" not in top:
        problems.add(top.place, "`systems:` is missing")
        return ()
    systems = subsection(top, "systems", problems)
    if systems is None:
        return ()
    if not systems.values:
        problems.add(systems.place, "`systems:` names no system")
    return tuple(_read_system(systems, name, folder=folder, problems=problems) for name in systems.values)


def _read_system(systems: Section, name: object, *, folder: Path, problems: Problems) -> Draft:
    place = systems.key_place(name)
    value = systems.values[name]
    if not isinstance(value, CommentedMap):
        problems.add(place, f"system `{name}` needs a mapping: `{name}: {{}}` if there is nothing to say")
        return Draft(name=str(name), place=place)
    section = Section(value, systems.value_place(name))
    refuse_unknown_keys(section, _SYSTEM_KEYS, problems)
    is_external = _read_external(section, problems)
    host, port, address_place = _read_address(section, problems)
    return Draft(
        name=str(name),
        place=place,
        parents=_read_parents(section, problems),
        primary=_read_primary(section, problems),
        machine=None if is_external else _read_machine_of(section, problems),
        byte_limits=_read_byte_limits_of(section, problems),
        connections=read_connections(section, problems),
        host=host,
        port=port,
        bulk_port=_read_bulk_port(section, problems),
        address_place=address_place,
        reach=_read_reach(section, problems),
        policy=None if is_external else read_file_name(section, "policy", folder=folder, problems=problems),
        is_external=is_external,
        trust=read_trust(section, str(name), folder=folder, problems=problems) if is_external else (),
        users="" if is_external else _read_users(section, problems),
        webhook_hosts=() if is_external else read_webhook_hosts(section, problems),
        metrics=None if is_external else read_metrics(section, folder=folder, problems=problems),
        otlp=None if is_external else read_otlp(section, folder=folder, problems=problems),
    )


def _read_external(section: Section, problems: Problems) -> bool:
    """Return whether a system is external; report keys that do not fit."""
    value: object = section.values.get("external", False)
    if not isinstance(value, bool):
        problems.add(section.value_place("external"), f"`external` is true or false, not `{value}`")
        return False
    for key in _OF_THE_OTHER_SITE if value else ():
        if key in section:
            problems.add(section.key_place(key), f"an external system has its `{key}` in its own site's file")
    if "trust" in section and not value:
        problems.add(section.key_place("trust"), "`trust` is for external systems; this site's root vouches for others")
    return value


def _read_reach(section: Section, problems: Problems) -> str:
    reach = section.values.get("reach", OPEN)
    if reach not in REACHES:
        problems.add(section.value_place("reach"), f"unknown reach `{reach}`: {', '.join(REACHES)}")
    for key in _OF_A_LISTENER if reach == OUTBOUND else ():
        if key in section:
            problems.add(section.key_place(key), f"nobody dials a system with `reach: outbound`: remove its `{key}`")
    return str(reach)


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


def _read_byte_limits_of(section: Section, problems: Problems) -> ByteSettings:
    limits = subsection(section, "bytes", problems) if "bytes" in section else None
    return ByteSettings() if limits is None else read_byte_limits(limits, problems)


def _read_address(section: Section, problems: Problems) -> tuple[str | None, int | None, Place]:
    host = section.values.get("host")
    for key, other in (("host", "port"), ("port", "host")):
        if key in section and other not in section:
            problems.add(section.key_place(key), f"`{key}` needs `{other}` beside it")
    if "host" in section and not (isinstance(host, str) and is_host(host)):
        hint = "; an IPv6 address stands without brackets" if str(host).startswith("[") else ""
        problems.add(section.value_place("host"), f"`{host}` is not a host name or address{hint}")
        host = None
    port = _read_port(section, "port", problems)
    return host, port, section.value_place("port" if "port" in section else "host")


def _read_bulk_port(section: Section, problems: Problems) -> int | None:
    if "bulk_port" in section and "port" not in section:
        problems.add(section.key_place("bulk_port"), "`bulk_port` needs `host` and `port` beside it")
    return _read_port(section, "bulk_port", problems)


def _read_port(section: Section, key: str, problems: Problems) -> int | None:
    port: int | None = section.values.get(key)
    if key in section and (type(port) is not int or not 1 <= port <= _HIGHEST_PORT):
        problems.add(section.value_place(key), f"`{port}` is not a port: 1 to {_HIGHEST_PORT}")
        return None
    return port


def _finished(draft: Draft, defaults: _Defaults) -> System:
    parents = tuple(SystemId(name) for name, _ in draft.parents)
    primary = SystemId(draft.primary[0]) if draft.primary else next(iter(parents), None)
    policy = None if draft.is_external else draft.policy or defaults.policy
    return System(
        name=SystemId(draft.name),
        parents=parents,
        primary_parent=primary,
        machine=draft.machine,
        byte_limits=draft.byte_limits,
        connections=draft.connections,
        host=draft.host,
        port=draft.port,
        bulk_port=draft.bulk_port,
        reach=draft.reach,
        policy_file=policy[0] if policy is not None else None,
        is_external=draft.is_external,
        trust=tuple(roots.finished() for roots in draft.trust),
        users="" if draft.is_external else draft.users or defaults.users,
        webhook_hosts=() if draft.is_external else draft.webhook_hosts or defaults.webhook_hosts,
        metrics=draft.metrics,
        otlp=draft.otlp,
    )
