"""Three sites with a root of their own each, run from bundles alone; they change, grow, and are upgraded.

Each host has a network namespace, and a folder for /etc/messiahs and /var/lib/messiahs. `hub` is above `left` and
`right`; `right` begins with the previous release. Keys are made on the hosts, and certificates signed elsewhere, except
at the hub, where the key of its site's root lies.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from messiahs import __version__
from messiahs.channel.certificates.tls import make_root
from messiahs.cli.federation.temporary import remove_tasks
from messiahs.cli.main import main
from tests.commands import Command
from tests.live.conftest import fixed_machine
from tests.live.linked_pair import only_on
from tests.live.small_sites import Site
from tests.live.units import command_of
from tests.netns.network import Network, network
from tests.releases.released import VERSIONS, Installed, installed
from tests.waiting import eventually

pytestmark = pytest.mark.netns

SITES: Final = ("hub", "left", "right")
NEWCOMER: Final = "annex"
_PORT: Final = 7301
_POLICY: Final = 'policy "{}" version 1;\naccept from any {{}}\naccept from users {{}}\n'
_TYPED: Final = ("mkdir ", "cp ", "install ", "messiahs certificate ")
_THIS_TREE: Final = str(Path(sys.executable).parent / "messiahs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The hosts by name, each with what it was given; `desks` has the folders of the sites' administrators."""

    network: Network
    hosts: dict[str, Site]
    desks: Path
    old: Installed

    def describe(self, site: str, *, policy: str = "open", period: str = "300ms") -> None:
        """Write the topology and the policy of a site, at the desk of its administrator."""
        desk = self.desks / site
        (desk / "open.policy").write_text(_POLICY.format(policy))
        lines = ["version: 1", "federation: pact", f"defaults: {{policy: open.policy, update_period: {period}}}"]
        if site != "hub":
            other = "left" if site == "right" else "right"
            lines.append(f"introductions: [{{file: roots/{other}.pem, names: [{other}]}}]")
        lines.append("systems:")
        for name in SITES if site == "hub" else ("hub", site):
            parent = "" if name == "hub" else ", parent: hub"
            # The previous release knows no such key. Tasks of this one are contained as they are by default.
            machine = fixed_machine(slots=2, attributes=f"{{site: {name}}}").replace("isolation: process, ", "")
            own = f"machine: {machine}" if name == site else f"external: true, trust: roots/{name}.pem"
            lines.append(f"  {name}: {{host: {self.network.addresses[name]}, port: {_PORT}{parent}, {own}}}")
        (desk / "site.yaml").write_text("\n".join(lines) + "\n")

    def bundle(self, site: str, *, command: str = _THIS_TREE) -> None:
        """Make the bundle of a site, bring it to its only host, and do there what the first step of its page says."""
        desk, host = self.desks / site, self.hosts[site].folder
        words = ("topology", "bundle", str(desk / "site.yaml"), "--out", str(desk / "dist"), "--command", command)
        assert main(words) == 0
        shutil.copytree(desk / "dist" / self.network.addresses[site], host / "bundle", dirs_exist_ok=True)
        (host / "etc" / "systemd" / "system").mkdir(parents=True, exist_ok=True)
        self._follow(site, 1, at=host / "bundle")

    def certify(self, site: str) -> None:
        """Get a certificate for a host as its page says: the request goes to the desk, and the certificate back."""
        desk, bundle = self.desks / site, self.hosts[site].folder / "bundle"
        self._follow(site, 2, at=bundle)
        shutil.move(bundle / f"{site}.csr", desk)
        # Here, the root's key is at the desk.
        self._follow(site, 3, at=desk, state=desk)
        shutil.copy(desk / f"{site}.pem", bundle)
        shutil.copy(desk / "pact" / "tls" / "root.pem", bundle)
        self._follow(site, 4, at=bundle)
        if site == "hub":
            shutil.copy(desk / "pact" / "tls" / "root.key", self.hosts[site].folder / "state" / "pact" / "tls")

    def _follow(self, site: str, step: int, *, at: Path, state: Path | None = None) -> None:
        """Type the commands of a step on the page of a host, but those for the real systemd and its accounts."""
        host = self.hosts[site].folder
        state = state or host / "state"
        page = (host / "bundle" / "README.md").read_text()
        (text,) = re.findall(rf"^{step}\. (.*)$", page, re.MULTILINE)
        commands = [each for each in re.findall("`([^`]*)`", text) if each.startswith(_TYPED)]
        assert commands, page
        script = "\n".join(commands).replace("/etc/", f"{host}/etc/").replace("/var/lib/messiahs", str(state))
        path = f"{Path(_THIS_TREE).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path}
        shell = ["bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(shell, cwd=at, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{script}\n{done.stderr}"

    def start(self, site: str) -> None:
        """Start the unit of a host, and wait until its module answers."""
        host = self.hosts[site]
        command = command_of(host.folder / "etc" / "systemd" / "system" / f"messiahs-{site}.service", host.folder)
        if str(self.old.command) in command:
            # As the page on upgrades says: the previous release does not know this option.
            at = command.index("--sockets")
            del command[at : at + 2]
        self._begin(host, command)

    def join(self, token: str) -> None:
        """Start the newcomer with a token."""
        host = self.hosts[NEWCOMER]
        (host.folder / "token").write_text(token)
        own, parent = (f"{self.network.addresses[name]}:{_PORT}" for name in (NEWCOMER, "hub"))
        words = ["module", "run", NEWCOMER, "--join", parent, "--token", str(host.folder / "token")]
        words += ["--listen", own, "--machine", f"slots=2,site={NEWCOMER}", "--state", str(host.folder / "state")]
        host.process = Command(
            [*self._inside(host), _THIS_TREE, *words], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    def _begin(self, host: Site, command: list[str]) -> None:
        host.process = Command(
            [*self._inside(host), *command], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        eventually(lambda: host.machines("up"), command)

    def _inside(self, host: Site) -> list[str]:
        return ["nsenter", f"--net=/run/netns/{host.netns}"]


@pytest.fixture
def deployment(short_folder: Path, tmp_path: Path) -> Iterator[Deployment]:
    """Make the hosts, on which nothing runs yet, and the desks of the administrators, who have each other's roots."""
    # The account of tasks loads the code of the old release, too.
    short_folder.chmod(0o755)
    old = installed(VERSIONS[-1], short_folder / "old")
    with network((*SITES, NEWCOMER), wires=(), switched=(*SITES, NEWCOMER)) as made:
        hosts = {name: Site(name=name, folder=short_folder / name, netns=made.netns(name)) for name in made.addresses}
        deployment = Deployment(network=made, hosts=hosts, desks=tmp_path, old=old)
        for site in SITES:
            root = make_root("pact")
            tls = tmp_path / site / "pact" / "tls"
            tls.mkdir(parents=True)
            (tls / "root.pem").write_bytes(root.certificate)
            (tls / "root.key").write_bytes(root.key)
            (tls / "root.key").chmod(0o600)
            (tmp_path / site / "roots").mkdir()
        for site in SITES:
            for other in SITES:
                shutil.copy(tmp_path / other / "pact" / "tls" / "root.pem", tmp_path / site / "roots" / f"{other}.pem")
        for host in hosts.values():
            host.folder.mkdir()
        with _ended(hosts):
            yield deployment


@contextmanager
def _ended(hosts: dict[str, Site]) -> Iterator[None]:
    try:
        yield
    finally:
        for host in hosts.values():
            if host.process is not None and host.process.poll() is None:
                host.end()
            remove_tasks(host.folder / "state")


def _ran_at(user: Site, machine: Site) -> str:
    """Run a task of a user at one module on the machine of another one; return what it prints, and what is wrong."""
    done = user.run("run", "--deadline", "100s", *only_on(machine), "--", "echo", "well")
    return done.stdout + done.stderr


def _replace(deployment: Deployment, site: str, *, command: str) -> str:
    """Replace the release of a host, and return the one that runs then."""
    host = deployment.hosts[site]
    assert host.end() == 0
    deployment.bundle(site, command=command)
    deployment.start(site)
    host.command = (command,)
    return host.run("version").stdout.split()[1]


def test_sites_are_deployed_changed_joined_upgraded_and_rolled_back(deployment: Deployment) -> None:
    hub, left, right, annex = (deployment.hosts[name] for name in (*SITES, NEWCOMER))
    old = str(deployment.old.command)
    right.command = (old,)
    for site in SITES:
        deployment.describe(site)
        deployment.bundle(site, command=old if site == "right" else _THIS_TREE)
        deployment.certify(site)
        deployment.start(site)
    eventually(lambda: hub.machines("up") == 3)
    assert _ran_at(left, right) == "well\n"
    assert _ran_at(right, left) == "well\n"

    # A policy and a period change under a running task, and nothing is restarted.
    task = right.run("submit", "--quiet", *only_on(left), "--", "sleep", "20").stdout.strip()
    eventually(lambda: right.document("status", task)["tasks"][0]["substate"] == "running")
    assert left.process is not None
    before = left.document("module", "list")["modules"]
    deployment.describe("left", policy="changed", period="400ms")
    deployment.bundle("left")
    applied = left.run("topology", "apply", str(left.folder / "etc" / "messiahs" / "pact" / "topology.yaml"))
    assert applied.returncode == 0, applied.stderr
    lines = applied.stdout.splitlines()
    assert [line.split(",")[0].split(" /")[0] for line in lines] == [
        "left: update_period: 0.3s -> 0.4s",
        "left: policy:",
    ]
    assert left.document("module", "policy")["name"] == "changed"
    assert left.document("module", "list")["modules"] == before
    assert right.run("wait", task).returncode == 0

    # A fourth host joins the hub with a token, and an administrator lets it in.
    deployment.join(hub.run("join", "token", "--name", NEWCOMER).stdout)
    eventually(lambda: [each["name"] for each in hub.document("join", "list")["requests"]] == [NEWCOMER])
    approved = hub.run("join", "approve", NEWCOMER)
    assert approved.returncode == 0, approved.stderr
    eventually(lambda: hub.machines("up") == 4)
    assert _ran_at(hub, annex) == "well\n"
    again = hub.run("topology", "apply", str(hub.folder / "etc" / "messiahs" / "pact" / "topology.yaml")).stdout
    assert f"{NEWCOMER} joined as child, and is not in the file" in again
    assert annex.document("module", "list")["modules"][0]["parents"] == ["hub"]

    # A host is upgraded from the previous release, and goes back to it.
    for command, release in ((_THIS_TREE, __version__), (old, VERSIONS[-1])):
        assert _replace(deployment, "right", command=command) == release
        eventually(lambda: hub.machines("up") == 4)
        assert _ran_at(left, right) == "well\n"
        assert _ran_at(right, left) == "well\n"
    assert right.document("status", task)["tasks"][0]["state"] == "finished"
    for name in SITES:
        keys = [file for file in (deployment.desks / name / "dist").rglob("*") if b"PRIVATE KEY" in _bytes(file)]
        assert not keys
    assert json.loads((deployment.desks / "hub" / "dist" / "bundle.json").read_text())["federation"] == "pact"
    assert {host.name: host.end() for host in (left, right, annex, hub)} == dict.fromkeys(
        ("left", "right", "annex", "hub"), 0
    )


def _bytes(file: Path) -> bytes:
    return file.read_bytes() if file.is_file() else b""
