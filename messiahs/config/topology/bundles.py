"""What each host of a topology needs to run its modules: files that an administrator carries there.

A bundle contains no key: each module makes its own where it runs. The same topology gives the same files, byte by byte.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path, PurePosixPath
from typing import Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from messiahs.config.regular_files import read_regular
from messiahs.config.topology.host_pages import host_page
from messiahs.config.topology.topology import System, Topology
from messiahs.config.topology.units import SYSTEM_COMMAND, TOPOLOGY_NAME, USER_COMMAND, Service, system_unit, user_unit
from messiahs.errors import MessiahsError

Files = Mapping[str, bytes]
"""Files by their path relative to a folder."""
PAGE_NAME: Final = "README.md"
_POLICIES, _TRUST = "policies", "trust"
_WIDTH: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Where `messiahs` is installed on the hosts, for the units of systems and of users."""

    system: str = SYSTEM_COMMAND
    user: str = USER_COMMAND


@dataclass(slots=True)
class _Named:
    """Files that the topology names, with their paths in a bundle (mutable); equal names get a number."""

    folder: Path
    content: dict[str, bytes] = field(default_factory=dict)

    def path(self, kind: str, name: str) -> str:
        """Take a file into the bundle and return its path there."""
        source = self.folder / name
        content = read_regular(source)
        if b"PRIVATE KEY-----" in content:
            raise MessiahsError(f"{source} contains a private key, which no bundle may contain")
        stem, suffix = PurePosixPath(source.name).stem, PurePosixPath(source.name).suffix
        for number in range(1, len(self.content) + 2):
            path = f"{kind}/{stem}{'' if number == 1 else f'-{number}'}{suffix}"
            if self.content.setdefault(path, content) == content:
                return path
        raise AssertionError("unreachable: there are more names than files")


def bundles(topology: Topology, text: str, *, folder: Path, commands: Commands) -> Mapping[str, Files]:
    """Return the files of each host, by the name of its folder.

    `text` is the topology's file, which lies in `folder`. Raises OSError if a file that it names cannot be read, and
    MessiahsError if such a file contains a private key.
    """
    named = _Named(folder)
    shared = {TOPOLOGY_NAME: _relocated(text, named.path).encode(), **named.content}
    folders = sorted({path.partition("/")[0] for path in named.content})
    everything = {}
    for host, systems in hosts_of(topology).items():
        runs_tasks = any(system.machine is not None for system in systems)
        services = [
            Service(module=system.name, federation=topology.federation, runs_tasks=runs_tasks) for system in systems
        ]
        units = {path: unit.encode() for service in services for path, unit in _units(service, commands)}
        page = host_page(host, services, folders=folders).encode()
        everything[host] = dict(sorted({PAGE_NAME: page, **shared, **units}.items()))
    return everything


def hosts_of(topology: Topology) -> Mapping[str, tuple[System, ...]]:
    """Return the systems that run on each host, by the name of its folder.

    Systems with the same `host` share one. A system without `host` has a folder of its own name. External systems are
    run from the file of another site.
    """
    found: dict[str, list[System]] = {}
    own = [system for system in topology.systems if not system.is_external]
    for system in own:
        if system.host is not None:
            # A colon of an IPv6 address would end a host's name for scp and rsync.
            found.setdefault(system.host.replace(":", "-"), []).append(system)
    for system in own:
        if system.host is None:
            found.setdefault(system.name if system.name not in found else f"{system.name}-system", []).append(system)
    return {host: tuple(systems) for host, systems in sorted(found.items())}


def _units(service: Service, commands: Commands) -> Iterator[tuple[str, str]]:
    yield f"system/{service.unit}", system_unit(service, command=commands.system)
    yield f"user/{service.unit}", user_unit(service, command=commands.user)


def _relocated(text: str, path: Callable[[str, str], str]) -> str:
    """Return a topology in which policies and roots are named by their paths in the bundle; the rest is unchanged."""
    yaml = YAML(typ="rt")
    yaml.width = _WIDTH
    yaml.preserve_quotes = True
    top = yaml.load(text)
    for section in (top.get("defaults"), *top["systems"].values()):
        if isinstance(section, CommentedMap) and "policy" in section:
            section["policy"] = path(_POLICIES, section["policy"])
    for section in top["systems"].values():
        if "trust" in section:
            _relocate_roots(section, "trust", path)
        for key, roots in (("metrics", "client_roots"), ("otlp", "roots")):
            if roots in section.get(key, ()):
                section[key][roots] = path(_TRUST, section[key][roots])
    if "introductions" in top:
        _relocate_roots(top, "introductions", path)
    written = StringIO()
    yaml.dump(top, written)
    return written.getvalue()


def _relocate_roots(section: CommentedMap, key: str, path: Callable[[str, str], str]) -> None:
    value = section[key]
    if isinstance(value, str):
        section[key] = path(_TRUST, value)
    elif isinstance(value, CommentedMap):
        value["file"] = path(_TRUST, value["file"])
    elif isinstance(value, CommentedSeq):
        for position, item in enumerate(value):
            if isinstance(item, str):
                value[position] = path(_TRUST, item)
            else:
                item["file"] = path(_TRUST, item["file"])
