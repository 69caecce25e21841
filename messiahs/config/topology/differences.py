"""What differs between two settings of one module, and between two topologies, for people and programs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from messiahs.config.regular_files import read_regular
from messiahs.config.settings import (
    PROCESS,
    ByteSettings,
    ConnectionSettings,
    MachineSettings,
    MetricsSettings,
    ModuleSettings,
    NeighborSettings,
    OtlpSettings,
    TrustedFile,
)
from messiahs.config.topology.neighbors import TlsPaths, module_settings
from messiahs.config.topology.topology import Topology
from messiahs.core.model.attributes import MACHINE_ATTRIBUTES, Unit, Value
from messiahs.core.model.counted import Counted
from messiahs.core.model.counts import counted
from messiahs.core.model.instants import SECOND
from messiahs.core.model.task_limits import at_most_text, size_text

_NOWHERE: Final = Path("/")


class Subject(StrEnum):
    """What a difference is about."""

    NEIGHBOR = "neighbor"
    RELATION = "relation"
    ADDRESS = "address"
    TRUST = "trust"
    POLICY = "policy"
    UPDATE_PERIOD = "update_period"
    SIBLINGS = "siblings"
    LISTEN = "listen"
    BULK_PORT = "bulk_port"
    MACHINE = "machine"
    BORDER = "border"
    BYTES = "bytes"
    CONNECTIONS = "connections"
    INTRODUCTIONS = "introductions"
    TRUSTS_RELAYS = "trusts_relays"
    USERS = "users"
    WEBHOOK_HOSTS = "webhook_hosts"
    METRICS = "metrics"
    OTLP = "otlp"


HOT: Final = frozenset({Subject.NEIGHBOR, Subject.RELATION, Subject.ADDRESS, Subject.POLICY, Subject.UPDATE_PERIOD})
"""What a running module takes over; all other differences wait for its next start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference; `old` or `new` is empty if there is nothing. `neighbor` is the link that it is about, or ""."""

    subject: Subject
    old: str
    new: str
    neighbor: str = ""

    @property
    def needs_restart(self) -> bool:
        """Whether a running module keeps the old value until its next start."""
        return self.subject not in HOT

    def __str__(self) -> str:
        """Return one line for people."""
        about = f"{self.subject.value} of {self.neighbor}" if self.neighbor else self.subject.value
        if self.subject is Subject.NEIGHBOR:
            return f"gains {self.neighbor} ({self.new})" if self.new else f"loses {self.neighbor} ({self.old})"
        return f"{about}: {self.old or 'none'} -> {self.new or 'none'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyDifferences:
    """What differs between two topologies: systems of this site that are new or gone, and what changes for others."""

    gained: tuple[str, ...]
    lost: tuple[str, ...]
    changed: Mapping[str, tuple[Difference, ...]]
    federations: tuple[str, str]

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.gained or self.lost or self.changed) or self.federations[0] != self.federations[1]


def topology_differences(old: Topology, new: Topology) -> TopologyDifferences:
    """Return what changes for each system of this site; external systems count as neighbors alone."""
    before, after = _own_names(old), _own_names(new)
    changed = {
        name: found
        for name in before
        if name in after and (found := tuple(differences(_settings(old, name), _settings(new, name))))
    }
    return TopologyDifferences(
        gained=tuple(name for name in after if name not in before),
        lost=tuple(name for name in before if name not in after),
        changed=changed,
        federations=(old.federation, new.federation),
    )


def differences(old: ModuleSettings, new: ModuleSettings) -> Iterator[Difference]:
    """Yield what differs between two settings of one module; files with the same content are equal."""
    yield from _of_neighbors(old, new)
    pairs = (
        (Subject.POLICY, _file(old.policy_file), _file(new.policy_file)),
        (Subject.UPDATE_PERIOD, _seconds(old.update_period_ns), _seconds(new.update_period_ns)),
        (Subject.SIBLINGS, str(old.siblings), str(new.siblings)),
        (Subject.LISTEN, old.listen, new.listen),
        (Subject.BULK_PORT, str(old.bulk_port or "any"), str(new.bulk_port or "any")),
        (Subject.MACHINE, _machine(old.machine), _machine(new.machine)),
        (Subject.BORDER, _yes(is_so=old.is_border), _yes(is_so=new.is_border)),
        (Subject.BYTES, _bytes(old.byte_limits), _bytes(new.byte_limits)),
        (Subject.CONNECTIONS, *_connections(old.connections, new.connections)),
        (Subject.INTRODUCTIONS, _trusted(old.introductions), _trusted(new.introductions)),
        (Subject.TRUSTS_RELAYS, _yes(is_so=old.trusts_relays), _yes(is_so=new.trusts_relays)),
        (Subject.USERS, old.users, new.users),
        (Subject.WEBHOOK_HOSTS, ", ".join(old.webhook_hosts), ", ".join(new.webhook_hosts)),
        (Subject.METRICS, _metrics(old.metrics), _metrics(new.metrics)),
        (Subject.OTLP, _otlp(old.otlp), _otlp(new.otlp)),
    )
    for subject, before, after in pairs:
        if before != after:
            yield Difference(subject=subject, old=before, new=after)


def _of_neighbors(old: ModuleSettings, new: ModuleSettings) -> Iterator[Difference]:
    before = {link.neighbor.system: link for link in old.neighbors}
    after = {link.neighbor.system: link for link in new.neighbors}
    for name in sorted({*before, *after}):
        was, now = before.get(name), after.get(name)
        if was is None or now is None:
            yield Difference(subject=Subject.NEIGHBOR, neighbor=name, old=_relation(was), new=_relation(now))
            continue
        for subject, one, other in (
            (Subject.RELATION, _relation(was), _relation(now)),
            (Subject.ADDRESS, was.address or "", now.address or ""),
            (Subject.TRUST, _trusted(was.trust), _trusted(now.trust)),
        ):
            if one != other:
                yield Difference(subject=subject, neighbor=name, old=one, new=other)


def _relation(link: NeighborSettings | None) -> str:
    if link is None:
        return ""
    one = link.neighbor
    words = {
        "primary parent": one.is_primary_parent,
        "parent": one.is_parent and not one.is_primary_parent,
        "primary child": one.is_primary_child,
        "child": one.is_child and not one.is_primary_child,
        "sibling": one.is_sibling,
    }
    return ", ".join(word for word, is_so in words.items() if is_so)


def _machine(machine: MachineSettings | None) -> str:
    if machine is None:
        return ""
    attributes = ", ".join(f"{name}={_shown(name, value)}" for name, value in sorted(machine.attributes.items()))
    console = f"console {machine.console_file}" if machine.console_file is not None else ""
    counted = ", ".join(f"{each.name} {_things(machine, each)}" for each in machine.counted)
    isolation = machine.isolation
    if isolation != PROCESS and (isolation or _has_chosen(machine)):
        first, last = machine.task_uids
        parts = (isolation, f"network {machine.network}", f"accounts {first}-{last}", *machine.shown)
        isolation = " ".join(filter(None, parts))
    lent = "runs tasks of other sites with its own rights" if machine.lends_account else ""
    bounds = {"mem": machine.maxima.memory_bytes, "disk": machine.maxima.disk_bytes, "time": machine.maxima.run_seconds}
    bounds["open_files"] = machine.open_files
    stated = at_most_text({name: value for name, value in bounds.items() if value is not None})
    most = f"at most {stated} for a task" if stated else ""
    return "; ".join(filter(None, (machine.probe, attributes, console, counted, most, isolation, lent)))


def _things(machine: MachineSettings, counted: Counted, /) -> str:
    """Show the numbers of counted things, each with its device files if it has some."""
    files = machine.devices.get(counted.name, {})
    shown = (f"{number} ({' '.join(files[number])})" if number in files else f"{number}" for number in counted.numbers)
    return ",".join(shown) or "none"


def _shown(name: str, value: Value) -> str:
    known = MACHINE_ATTRIBUTES.get(name)
    is_size = known is not None and known.unit is Unit.BYTES and isinstance(value, int)
    return size_text(int(value)) if is_size else str(value)


def _bytes(limits: ByteSettings) -> str:
    rate = "" if limits.rate_bytes is None else f"{size_text(limits.rate_bytes)} in a second"
    daily = "" if limits.daily_bytes is None else f"{size_text(limits.daily_bytes)} in a day"
    most = limits.outputs_bytes
    outputs = "" if most is None else f"outputs {size_text(most)}"
    parts = (f"cache {size_text(limits.cache_bytes)}", counted(limits.streams, "stream"), rate, daily, outputs)
    return ", ".join(filter(None, parts))


def _connections(old: ConnectionSettings, new: ConnectionSettings) -> tuple[str, str]:
    """Return texts of two settings, which differ if these do; what a proxy asks for is in none."""
    before, after = _connection(old), _connection(new)
    is_other_secret = old != new and before == after
    return before, f"{after} with another user or password" if is_other_secret else after


def _connection(settings: ConnectionSettings) -> str:
    keep_alive = f"keep_alive {_seconds(settings.keep_alive_ns)}"
    if settings.http_proxy is None:
        return keep_alive
    return f"{keep_alive}, proxy {urlsplit(settings.http_proxy).netloc.rpartition('@')[2]}"


def _metrics(metrics: MetricsSettings | None) -> str:
    if metrics is None:
        return ""
    return metrics.address if metrics.client_roots is None else f"{metrics.address} for {_file(metrics.client_roots)}"


def _otlp(otlp: OtlpSettings | None) -> str:
    if otlp is None:
        return ""
    return otlp.endpoint if otlp.roots is None else f"{otlp.endpoint} with {_file(otlp.roots)}"


def _trusted(files: tuple[TrustedFile, ...]) -> str:
    return "; ".join(f"{_file(each.file)} for {', '.join(each.names)}" for each in files)


def _file(path: Path | None) -> str:
    """Return the name of a file and the beginning of the SHA-256 of its content, wherever it lies."""
    if path is None:
        return ""
    try:
        return f"{path.name} {sha256(read_regular(path)).hexdigest()[:12]}"
    except OSError as error:
        return f"{path.name} ({error.strerror})"


def _seconds(duration_ns: int) -> str:
    return f"{duration_ns / SECOND:g}s"


def _yes(*, is_so: bool) -> str:
    return "yes" if is_so else "no"


def _own_names(topology: Topology) -> tuple[str, ...]:
    return tuple(system.name for system in topology.systems if not system.is_external)


def _settings(topology: Topology, name: str) -> ModuleSettings:
    """Return the settings of a module as far as a topology determines them; a missing address is empty."""
    addresses = {str(system.name): system.address or "" for system in topology.systems}
    tls = TlsPaths(certificate_file=_NOWHERE, key_file=_NOWHERE, trust_file=_NOWHERE)
    return module_settings(topology, name, addresses=addresses, state_directory=_NOWHERE, tls=tls)


def _has_chosen(machine: MachineSettings) -> bool:
    """Whether the topology says how sandboxes are, if not that there are some."""
    default = MachineSettings()
    chosen, usual = ((each.network, each.task_uids, each.shown) for each in (machine, default))
    return chosen != usual
