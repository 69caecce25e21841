"""Real links of different delay and speed below one module, whose policy weighs them: `policies/wide-area.policy`.

The machines near and late are half busy, and far is idle. Packets to late take 0.4 s in each direction, and to far
pass 8 Mbit in a second.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from messiahs.cli.federation.temporary import remove_tasks
from messiahs.core.model.instants import MILLISECOND
from tests.live.conftest import ROOT, fixed_machine
from tests.live.small_sites import Site
from tests.netns.network import network
from tests.waiting import eventually

pytestmark = pytest.mark.netns
MACHINES: Final = {"near": "50%", "late": "50%", "far": "0%"}
HOME: Final = "home"
PORT: Final = 7301
MIB: Final = 1 << 20
DELAY_SECONDS: Final = 0.4
FAR_MBIT: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """The module of which the three machines are children."""

    site: Site
    folder: Path

    def view(self, machine: str) -> dict[str, Any]:
        """Return what it knows of a machine."""
        with self.site.client() as client:
            return dict(client.vectors()["views"].get(machine, {}))

    def executed_on(self, *options: str) -> str:
        """Run a task, and return the machine that ran it."""
        done = self.site.run("submit", "--quiet", *options, "--", "true")
        assert done.returncode == 0, done.stderr
        task = done.stdout.strip()
        assert self.site.run("wait", task).returncode == 0
        with self.site.client() as client:
            return str(client.tasks(task)["tasks"][0]["executed_on"])

    def executed_with(self, name: str, *, mebibytes: int) -> str:
        """Run a task with an input that nobody has yet, and return the machine that ran it."""
        with (self.folder / name).open("wb") as file:
            file.write(name.encode())
            file.truncate(mebibytes * MIB)
        return self.executed_on("--input", str(self.folder / name))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    hosts = (HOME, *MACHINES)
    shutil.copy(ROOT / "policies" / "wide-area.policy", tmp_path)
    with network(hosts, wires=[(HOME, machine) for machine in MACHINES], switched=()) as made:
        lines = ["version: 1", "federation: pact", "defaults: {policy: wide-area.policy, siblings: 0}", "systems:"]
        for name in hosts:
            machine = f", parent: home, machine: {fixed_machine(load=MACHINES[name])}" if name != HOME else ""
            lines.append(f"  {name}: {{host: {made.addresses[name]}, port: {PORT}{machine}}}")
        (tmp_path / "site.yaml").write_text("\n".join(lines) + "\n")
        sites = {name: Site(name=name, folder=tmp_path, netns=made.netns(name)) for name in hosts}
        made.slow(HOME, "far", mbit=FAR_MBIT)
        with made.delayed(HOME, "late", seconds=DELAY_SECONDS):
            try:
                for site in sites.values():
                    site.start()
                    eventually((tmp_path / "state" / "pact" / f"{site.name}.sock").exists)
                yield Home(site=sites[HOME], folder=tmp_path)
            finally:
                for site in sites.values():
                    if site.process is not None and site.process.poll() is None:
                        site.end()
                remove_tasks(tmp_path / "state")


def test_tasks_go_where_the_way_and_the_wait_together_take_least(home: Home) -> None:
    delay_ms = 2 * DELAY_SECONDS * 1_000

    def trip_ms(machine: str) -> float:
        found = home.view(machine).get("round_trip_ns")
        return -1 if found is None else found / MILLISECOND

    eventually(lambda: trip_ms("late") >= delay_ms and 0 <= trip_ms("near") < delay_ms and trip_ms("far") >= 0)
    # A small task takes half a minute more on a busy machine, whatever the way to an idle one.
    assert home.executed_on() == "far"
    # How slow that way is shows the first input.
    assert home.executed_with("first", mebibytes=4) == "far"
    eventually(lambda: home.view("far")["throughput"] is not None)
    throughput = home.view("far")["throughput"]
    assert FAR_MBIT * 1_000_000 / 8 / 4 < throughput < 1.5 * FAR_MBIT * 1_000_000 / 8
    # 64 MiB would take a minute to get there. Of the two others, equally busy, only the delay tells one from the other.
    assert home.executed_with("second", mebibytes=64) == "near"
    assert home.executed_on("--set", "comm_load=100000000") == "near"
    assert home.executed_on() == "far"
    explained = json.loads(home.site.run("plan", "--json", "--set", "comm_load=100000000", "--", "true").stdout)
    assert [each["system"] for each in explained["search"]["order"]] == ["near", "late", "far"]
