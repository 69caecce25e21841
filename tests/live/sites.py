r"""Two sites of three levels with a root of their own each: a topology file, a state folder and daemons for each site.

    gate-a ------------------- gate-b
      |                          |
    group-a - - - - - - - - -  group-b      (the second link, if the sites are linked at two places)
     |    |                     |    |
    a1    a2                   b1    b2

Only the four machines run tasks. Each is found by its attribute `site`. In the plan BORDERED, three of the others are
borders, both gates are below a third system, and the names of those inside are long enough to be searched for:

              top-a
             /     \
        gate-a      gate-b          borders
          |           |
    in-group-a      in-group-b      the first one is a border below a border
     |    |          |    |
  in-ann-a in-abe-a in-bea-b in-bob-b
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from messiahs.cli.federation.certificates import make_certificates
from messiahs.cli.federation.deployment import federation_directory
from messiahs.cli.federation.temporary import remove_tasks
from messiahs.client import ModuleClient
from messiahs.config.settings import ModuleSettings, load_settings
from messiahs.core.interface.rows import Row
from messiahs.daemon.process.environment import daemon_environment
from messiahs.daemon.process.pid_files import end_modules
from tests.commands import Command, Forked
from tests.live.conftest import ROOT, Federation
from tests.live.rows_of_work import rows_of_work
from tests.live.wall_clocks import WALL
from tests.waiting import PATIENCE_SECONDS, eventually

PACT: Final = "pact"
SITES: Final = {"a": ("gate-a", "group-a", "a1", "a2"), "b": ("gate-b", "group-b", "b1", "b2")}
MODULES: Final = tuple(name for names in SITES.values() for name in names)
MACHINES: Final = ("a1", "a2", "b1", "b2")
SLOTS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The modules of each site, their parents, those with a machine, borders, those nobody can dial, and the period.

    `linked` are the systems of other sites that a site's file has to name, too, `seconds` the second parents. `daemons`
    is the module that starts the daemons, with its arguments.
    """

    sites: Mapping[str, tuple[str, ...]]
    parents: Mapping[str, str]
    machines: tuple[str, ...]
    linked: Mapping[str, tuple[str, ...]]
    borders: tuple[str, ...] = ()
    seconds: Mapping[str, str] = field(default_factory=dict)
    outbound: tuple[str, ...] = ()
    period: str = "300ms"
    daemons: tuple[str, ...] = ("tests.live.site_daemons",)

    @property
    def modules(self) -> tuple[str, ...]:
        """All modules, parents first."""
        return tuple(name for names in self.sites.values() for name in names)


OPEN: Final = Plan(
    sites=SITES,
    parents={
        "group-a": "gate-a",
        "a1": "group-a",
        "a2": "group-a",
        "gate-b": "gate-a",
        "group-b": "gate-b",
        "b1": "group-b",
        "b2": "group-b",
    },
    machines=MACHINES,
    linked={"a": ("gate-b",), "b": ("gate-a",)},
)
BORDERED: Final = Plan(
    sites={
        "a": ("top-a", "gate-a", "in-group-a", "in-ann-a", "in-abe-a"),
        "b": ("gate-b", "in-group-b", "in-bea-b", "in-bob-b"),
    },
    parents={
        "gate-a": "top-a",
        "in-group-a": "gate-a",
        "in-ann-a": "in-group-a",
        "in-abe-a": "in-group-a",
        "gate-b": "top-a",
        "in-group-b": "gate-b",
        "in-bea-b": "in-group-b",
        "in-bob-b": "in-group-b",
    },
    machines=("in-ann-a", "in-abe-a", "in-bea-b", "in-bob-b"),
    linked={"a": ("gate-b",), "b": ("top-a",)},
    borders=("gate-a", "gate-b", "in-group-a"),
)
SIDE_BY_SIDE: Final = Plan(
    sites={"a": ("top-a", "ann-a"), "b": ("gate-b", "twin-b", "in-bob-b")},
    parents={"ann-a": "top-a", "gate-b": "top-a", "twin-b": "top-a", "in-bob-b": "gate-b"},
    seconds={"in-bob-b": "twin-b"},
    machines=("ann-a", "in-bob-b"),
    linked={"a": ("gate-b", "twin-b"), "b": ("top-a",)},
    borders=("gate-b", "twin-b"),
)
_MACHINE: Final = (
    "{{isolation: process, probe: fixed, nproc: {slots}, slots: {slots}, speed: 500, load: 0%, arch: x86_64, os: Linux,"
    " total_mem: 8GiB, avail_mem: 8GiB, total_disk: 200GiB, avail_disk: 100GiB, attributes: {{site: {name}}}, counted:"
    " {{gpus: 2}}}}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a module listens, the namespace of its host ("": this one), and the file by which it resolves names.

    Without such a file it is /etc/hosts. Without a `bulk_port`, the port for large files is any free one.
    """

    address: str
    bulk_port: int | None = None
    netns: str = ""
    hosts: str = ""


@dataclass(slots=True, kw_only=True)
class Sites:
    """Both sites at work; `daemons` has the process of each module (mutable)."""

    folder: Path
    places: Mapping[str, Place]
    plan: Plan
    supervisor: "subprocess.Popen[str]"
    daemons: dict[str, int] = field(default_factory=dict)

    def at(self, module: str) -> Federation:
        """Return a module of either site, with the commands of its users."""
        site = self.folder / site_of(module)
        return Federation(topology=site / "site.yaml", name=PACT, state=site / "state", module=module)

    def start(self, *modules: str) -> None:
        """Start daemons, and wait until they answer."""
        for module in modules:
            here = self.at(module)
            order = {
                "topology": str(here.topology),
                "state": str(here.state),
                "module": module,
                "netns": self.places[module].netns,
                "hosts": self.places[module].hosts,
            }
            self.daemons[module] = self._order(order)
        for module in modules:
            with self.client(module) as client:
                client.module()

    def client(self, module: str) -> ModuleClient:
        """Return a user of a module, who waits while the module starts; to be closed."""
        return ModuleClient(self.at(module).folder(module).with_suffix(".sock"), patience=PATIENCE_SECONDS)

    def kill(self, module: str, *, by: signal.Signals = signal.SIGKILL) -> None:
        """End a daemon, and wait for its end; after a kill -9, its starter and its tasks stay."""
        pid = self.daemons.pop(module)
        os.kill(pid, by)
        self._order(pid)

    def _order(self, order: object) -> int:
        assert self.supervisor.stdin is not None
        assert self.supervisor.stdout is not None
        self.supervisor.stdin.write(f"{json.dumps(order)}\n")
        self.supervisor.stdin.flush()
        return int(self.supervisor.stdout.readline())

    def restart(self, module: str) -> None:
        """Kill -9 a daemon, and start it again."""
        self.kill(module)
        self.start(module)

    @contextmanager
    def stopped(self, module: str) -> Iterator[None]:
        """Stop a daemon (SIGSTOP) for the block."""
        os.kill(self.daemons[module], signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.daemons[module], signal.SIGCONT)

    def await_links(self) -> None:
        """Return once every module counts all machines of both sites."""
        machines = self.plan.machines
        for module in machines:
            eventually(lambda module=module: self.machines(module) == len(machines), module)  # type: ignore[misc]

    def machines(self, module: str) -> int:
        """Return the number of machines that a module knows of, its own included."""
        with self.client(module) as client:
            return int(client.vectors()["down"]["machines"])

    def settings(self, module: str) -> ModuleSettings:
        """Return the settings with which a module was started."""
        return load_settings(self.at(module).folder(module) / "settings.json")

    def set_wall(self, module: str, seconds: int) -> None:
        """Set the wall clock of a module forward or back."""
        (self.at(module).folder(module) / WALL).write_text(str(seconds))

    def memory_bytes(self, module: str) -> int:
        """Return the largest amount of memory that a daemon has had so far."""
        lines = Path(f"/proc/{self.daemons[module]}/status").read_text().splitlines()
        (peak,) = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
        return int(peak) << 10

    def rows(self, module: str) -> list[Row]:
        """Return the stored rows of claims, tasks and attempts of a module; its ledger outlives them."""
        return rows_of_work(self.at(module).folder(module) / "module.db")

    def leave_nothing(self) -> None:
        """Return once no module has a row of a claim, a task or an attempt any more."""
        for module in self.plan.modules:
            eventually(lambda module=module: not self.rows(module), lambda module=module: self.rows(module))  # type: ignore[misc]


def site_of(module: str) -> str:
    """Return the site of a module."""
    return module[-1] if "-" in module else module[0]


def on(*machines: str) -> tuple[str, str]:
    """Return the options of a task for some machines."""
    return "--require", " or ".join(f'$site eq "{_mark(name)}"' for name in machines)


def _mark(machine: str) -> str:
    """Return the value of a machine's attribute `site`, which does not contain the name of a system inside."""
    return machine.split("-")[1] if machine.startswith("in-") else machine


@contextmanager
def two_sites(
    folder: Path,
    places: Mapping[str, Place],
    *,
    links: int = 1,
    policy: str = "",
    are_introduced: bool = False,
    plan: Plan = OPEN,
) -> Iterator[Sites]:
    """Start both sites, linked at one or two places, and end them afterwards."""
    describe(folder, places, links=links, policy=policy, plan=plan)
    if are_introduced:
        introduce(folder)
    # Other ones replace functions before the code that calls them is loaded.
    kind = Forked if plan.daemons == OPEN.daemons else Command
    command = [sys.executable, "-m", *plan.daemons]
    pipe = subprocess.PIPE
    with (folder / "supervisor.log").open("wb") as log:
        supervisor = kind(
            command,
            cwd=ROOT,
            env=daemon_environment(),
            stdin=pipe,
            stdout=pipe,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    made = Sites(folder=folder, places=places, plan=plan, supervisor=supervisor)
    try:
        made.start(*plan.modules)
        yield made
    finally:
        supervisor.communicate()
        for pid in made.daemons.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        for site in SITES:
            state = folder / site / "state"
            end_modules(federation_directory(state, PACT))
            remove_tasks(state)


def describe(folder: Path, places: Mapping[str, Place], *, links: int, policy: str = "", plan: Plan = OPEN) -> None:
    """Write both topology files, make a root and keys for each site, and exchange the roots."""
    for site, names in plan.sites.items():
        (folder / site).mkdir()
        if policy:
            (folder / site / "site.policy").write_text(policy)
        (folder / site / "site.yaml").write_text(_topology(plan, site, places, links=links, has_policy=bool(policy)))
        make_certificates(federation_directory(folder / site / "state", PACT), names)
    for site, other in (("a", "b"), ("b", "a")):
        shutil.copy(folder / other / "state" / PACT / "tls" / "root.pem", folder / site / "theirs.pem")


def introduce(folder: Path) -> None:
    """Let the modules of each site trust all of the other one on straight streams."""
    for site, other in (("a", "b"), ("b", "a")):
        file = folder / site / "site.yaml"
        introduced = f"introductions: [{{file: theirs.pem, names: [{', '.join(SITES[other])}]}}]\nsystems:\n"
        file.write_text(file.read_text().replace("systems:\n", introduced))


def _topology(plan: Plan, site: str, places: Mapping[str, Place], /, *, links: int, has_policy: bool) -> str:
    policy = "policy: site.policy, " if has_policy else ""
    lines = ["version: 1", f"federation: {PACT}", f"defaults: {{{policy}update_period: {plan.period}}}", "systems:"]
    known = (*plan.linked[site], *(("group-a", "group-b") if links > 1 else ()))
    for name in plan.modules:
        if name not in plan.sites[site] and name not in known:
            continue
        entries = (
            ["reach: outbound"]
            if name in plan.outbound
            else [_listening(places[name], is_own=name in plan.sites[site])]
        )
        parent = plan.parents.get(name)
        if parent is not None:
            second = "group-a" if name == "group-b" and links > 1 else plan.seconds.get(name)
            parents = f"{parent}, {second}" if second is not None else parent
            entries.append(f"parents: [{parents}], primary: {parent}")
        if name not in plan.sites[site]:
            entries.append("external: true, trust: theirs.pem")
        elif name in plan.machines:
            entries.append(f"machine: {_MACHINE.format(slots=SLOTS, name=_mark(name))}")
        if name in plan.borders and name in plan.sites[site]:
            entries.append("reach: proxy")
        lines.append(f"  {name}: {{{', '.join(entries)}}}")
    return "\n".join(lines) + "\n"


def _listening(place: Place, *, is_own: bool) -> str:
    """Return where a module listens, as its own site or another one writes it."""
    host, _, port = place.address.rpartition(":")
    bulk = f", bulk_port: {place.bulk_port}" if is_own and place.bulk_port is not None else ""
    return f"host: {host}, port: {port}{bulk}"
