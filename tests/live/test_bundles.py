"""Bundles at work: their units as systemd reads them, and modules that run from an unpacked bundle."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from messiahs.cli.federation.temporary import remove_tasks
from messiahs.cli.main import main
from messiahs.config.settings import DEFAULT_TASK_UIDS
from tests.commands import Command
from tests.live.conftest import Federation
from tests.live.units import command_of
from tests.ports import free_port
from tests.waiting import eventually

_BASE = Path(sys.executable).parent / "messiahs"
_FILE = """
version: 1
federation: pact
defaults: {{policy: open.policy, update_period: 200ms}}
systems:
  gate: {{host: {host}, port: {gate}}}
  desk: {{host: 127.0.0.1, port: {desk}, parent: gate, machine: {{isolation: process, slots: 1}}}}
"""
_POLICY = 'policy "open" version 1;\naccept from any {}\naccept from users {}\n'
_EXPOSURE_PERCENT = {"127.0.0.1/system/messiahs-desk.service": 65, "gate.example/system/messiahs-gate.service": 20}
_needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")


def _bundle(folder: Path, *, host: str = "127.0.0.1") -> Path:
    """Write a bundle for one host, or for two, and return the folder of its hosts."""
    (folder / "open.policy").write_text(_POLICY)
    (folder / "site.yaml").write_text(_FILE.format(host=host, gate=free_port(), desk=free_port()))
    words = ["topology", "bundle", str(folder / "site.yaml"), "--out", str(folder / "dist")]
    assert main([*words, "--command", str(_BASE)]) == 0
    return folder / "dist"


def _analyzed(*words: str, environment: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["systemd-analyze", *words], env=environment, capture_output=True, text=True, check=False)


@_needs_systemd
def test_systemd_accepts_every_line_of_the_units(tmp_path: Path) -> None:
    units = sorted(_bundle(tmp_path, host="gate.example").glob("*/system/*.service"))
    assert len(units) == 2
    done = _analyzed("verify", "--man=no", *map(str, units))
    assert (done.returncode, done.stderr) == (0, "")


@_needs_systemd
def test_systemd_accepts_every_line_of_the_units_of_users(tmp_path: Path) -> None:
    units = sorted(_bundle(tmp_path, host="gate.example").glob("*/user/*.service"))
    assert len(units) == 2
    # Their manager wants the folders of a user who is logged in.
    (tmp_path / "run" / "systemd").mkdir(parents=True)
    user = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path / "run"), "HOME": str(tmp_path)}
    done = _analyzed("--user", "verify", "--man=no", *map(str, units), environment=user)
    assert (done.returncode, done.stderr) == (0, "")


@_needs_systemd
def test_systemd_finds_the_units_little_exposed(tmp_path: Path) -> None:
    dist = _bundle(tmp_path, host="gate.example")
    for unit, percent in _EXPOSURE_PERCENT.items():
        done = _analyzed("security", "--offline=true", "--no-pager", f"--threshold={percent}", str(dist / unit))
        if "unrecognized option" in done.stderr:
            pytest.skip("this systemd-analyze judges no files")
        assert done.returncode == 0, done.stdout


@contextmanager
def _service(unit: Path, folder: Path) -> Iterator[None]:
    """Run what a unit starts, with the capabilities that it leaves, and the folders of the host in `folder`."""
    command = command_of(unit, folder)
    with Command(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=60)


def test_modules_run_a_task_from_an_unpacked_bundle_with_the_rights_that_its_units_leave(short_folder: Path) -> None:
    host = _bundle(short_folder) / "127.0.0.1"
    shutil.copytree(host, short_folder / "etc" / "messiahs" / "pact")
    state = short_folder / "state"
    with ExitStack() as running:
        for name in ("gate", "desk"):
            running.enter_context(_service(host / "system" / f"messiahs-{name}.service", short_folder))
        at_gate = Federation(topology=host / "topology.yaml", name="pact", state=state, module="gate")
        eventually(lambda: (state / "pact" / "gate.sock").exists() and (state / "pact" / "desk.sock").exists())
        done = at_gate.run("run", "--", "id", "-u")
        assert done.returncode == 0, done.stderr
        first, last = DEFAULT_TASK_UIDS if os.geteuid() == 0 else (os.geteuid(), os.geteuid())
        assert first <= int(done.stdout) <= last
        (task,) = at_gate.document("status")["tasks"]
        assert task["executed_on"] == "desk"
    remove_tasks(state)
