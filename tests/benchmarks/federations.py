"""Federations to measure: real daemons that `messiahs up` started, over loopback and mutual TLS."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from messiahs.cli.federation.temporary import own_folder
from messiahs.client import ModuleClient
from tests.benchmarks.processes import usage_of
from tests.live.conftest import Federation
from tests.waiting import eventually

SLOTS = 2
ORIGIN, EXECUTOR, HOP = "origin", "executor", "hop"
_PATIENCE_SECONDS = 120.0
_MACHINE = f"machine: {{isolation: process, slots: {SLOTS}}}"

LONE = f"{ORIGIN}: {{{_MACHINE}}}"
"""One module with a machine."""
SANDBOXED = f"{ORIGIN}: {{machine: {{slots: {SLOTS}, isolation: sandbox}}}}"
"""The same, and its tasks run in sandboxes."""
PAIR = f"{EXECUTOR}: {{{_MACHINE}}}\n  {ORIGIN}: {{parent: {EXECUTOR}}}"
"""Tasks submitted at a module without a machine run at its parent."""
CHAIN = f"{EXECUTOR}: {{{_MACHINE}}}\n  {HOP}: {{parent: {EXECUTOR}}}\n  {ORIGIN}: {{parent: {HOP}}}"
"""The machine is two hops away from the module at which tasks are submitted."""
BORDER = CHAIN.replace(f"parent: {EXECUTOR}", f"parent: {EXECUTOR}, reach: proxy")
"""The same, but the module between the two is the border of the site at which tasks are submitted."""


def lone_with(service: str) -> str:
    """Return one module with a machine and a service, such as `metrics: {…}`."""
    return f"{ORIGIN}: {{{_MACHINE}, {service}}}" if service else LONE


def _two_sites(reach: str) -> str:
    gates = (f"{name}: {{parent: top, reach: {reach}}}" for name in ("gate-a", "gate-b"))
    machine = f"{EXECUTOR}: {{parent: gate-b, {_MACHINE}}}"
    return "\n  ".join(("top: {}", *gates, machine, f"{ORIGIN}: {{parent: gate-a}}"))


GATES = _two_sites("open")
"""The machine is behind the sibling of the parent of the module at which tasks are submitted."""
BORDERS = _two_sites("proxy")
"""The same, but the siblings are the borders of the two sites."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurable:
    """A running federation, and its processes by their roles: `daemon of origin`, `starter of executor`."""

    federation: Federation
    folder: Path
    """A temporary folder that is removed with it."""
    processes: dict[str, int]

    def client(self) -> ModuleClient:
        """Return a client of the module at which tasks are submitted."""
        return ModuleClient(self.federation.state / self.federation.name / f"{self.federation.module}.sock")


@contextmanager
def up(systems: str, *, update_period: str = "2s") -> Iterator[Measurable]:
    """Run the systems of a topology until the context ends; by then the origin knows of the one machine."""
    with own_folder(keep=False) as folder:
        topology = folder / "bench.yaml"
        topology.write_text(
            f"version: 1\nfederation: bench\ndefaults: {{update_period: {update_period}}}\nsystems:\n  {systems}\n"
        )
        federation = Federation(topology=topology, name="bench", state=folder / "state", module=ORIGIN)
        federation.up()
        try:
            measurable = Measurable(
                federation=federation, folder=folder, processes=dict(_processes(federation, systems))
            )
            with measurable.client() as client:
                eventually(lambda: _knows_a_machine(client), seconds=_PATIENCE_SECONDS)
            yield measurable
        finally:
            federation.down()


def cpu_seconds(processes: dict[str, int]) -> dict[str, float]:
    """Return the use of each process so far, and for each starter that of its tasks."""
    used: dict[str, float] = {}
    for name, pid in processes.items():
        usage = usage_of(pid)
        used[name] = usage.cpu_seconds
        if name.startswith("starter"):
            used[name.replace("starter", "tasks")] = usage.children_cpu_seconds
    return used


def _processes(federation: Federation, systems: str) -> Iterator[tuple[str, int]]:
    for line in systems.splitlines():
        name = line.strip().partition(":")[0]
        yield f"daemon of {name}", federation.pid(name, "daemon")
        if "machine:" in line:
            yield f"starter of {name}", federation.pid(name, "starter")


def _knows_a_machine(client: ModuleClient) -> bool:
    vectors = client.vectors()
    return bool(vectors["up"]["machines"] or vectors["down"]["machines"])
