"""Machines that lack what `network: outbound` needs: their modules do not start, and everybody says what is missing.

What such a network lets through is tested between hosts, in `tests/netns/test_outbound.py`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from messiahs.cli.federation.deployment import federation_directory, prepare
from messiahs.config.topology.reading import load_topology
from messiahs.executor.starter.sandbox.outbound import why_no_outbound
from tests.contract.test_choice_of_isolation import SAY

pytestmark = pytest.mark.processes

_TOPOLOGY = """
version: 1
federation: cage
systems:
  cage: {machine: {slots: 1, isolation: sandbox, network: outbound}}
"""
_ALL_THERE = "mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200"
_WITHOUT = {
    f'{_ALL_THERE} && mount --bind /dev/null "$(command -v slirp4netns)"': (
        "`network: outbound` needs slirp4netns (the package slirp4netns), which is not installed"
    ),
    "mount -t tmpfs none /dev/net": (
        "`network: outbound` needs /dev/net/tun, which is not there: load the module tun of the kernel"
    ),
    f"{_ALL_THERE} && chmod 600 /dev/net/tun": (
        "`network: outbound` needs /dev/net/tun open to all accounts, as systemd sets it: chmod 666 /dev/net/tun"
    ),
}

_BROKEN = f'{_ALL_THERE} && printf x >"$0" && chmod 755 "$0" && mount --bind "$0" "$(command -v slirp4netns)"'
_RUN = """
import sys
from dataclasses import replace
from pathlib import Path
from messiahs.errors import ExecutorError
from tests.contract.escape_rig import executor_of
from tests.contract.executor_rig import Rig, play_scene, starter_settings

async def act(rig: Rig) -> None:
    rig.run(1, "true")
    print((await rig.end_of(1)).text)

with starter_settings(Path(sys.argv[1]), kind=sys.argv[2]) as settings:
    try:
        play_scene(act, lambda: executor_of(replace(settings, network="outbound")))
    except ExecutorError as error:
        print(error)
"""


_ISOLATIONS = ["sandbox", *(["bubblewrap"] if shutil.which("bwrap") else [])]


def output(hiding: str, *command: str, scratch: Path | None = None) -> str:
    """Run a command that sees the machine without something, and return what it prints; `scratch` is the shell's $0."""
    entering = ("unshare", "--mount", "sh", "-c", f'{hiding} && exec "$@"', str(scratch or "sh"))
    return subprocess.run([*entering, *command], check=False, capture_output=True, text=True).stdout


@pytest.fixture(autouse=True)
def _can_hide() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, who alone can set up sandboxes with accounts of their own")
    if shutil.which("slirp4netns") is None:
        pytest.skip("needs the package slirp4netns")


@pytest.mark.parametrize("isolation", _ISOLATIONS)
@pytest.mark.parametrize("hiding", _WITHOUT)
def test_the_starter_refuses_and_names_what_is_missing(tmp_path: Path, hiding: str, isolation: str) -> None:
    told = output(hiding, sys.executable, "-c", SAY, str(tmp_path), isolation, "outbound")
    assert told == f"refused: tasks cannot be run in sandboxes here: {_WITHOUT[hiding]}\n"


@pytest.mark.parametrize("isolation", _ISOLATIONS)
def test_the_starter_runs_where_nothing_is_missing(tmp_path: Path, isolation: str) -> None:
    told = output(_ALL_THERE, sys.executable, "-c", SAY, str(tmp_path), isolation, "outbound")
    assert told.startswith(f"{isolation}: ")


def test_the_starter_refuses_where_tasks_have_no_sandboxes(tmp_path: Path) -> None:
    told = output(_ALL_THERE, sys.executable, "-c", SAY, str(tmp_path), "process", "outbound")
    needs = "`network: outbound` needs `isolation: sandbox` or `bubblewrap`"
    assert told == f"refused: tasks cannot be run in sandboxes here: {needs}\n"


@pytest.mark.parametrize("isolation", _ISOLATIONS)
def test_the_reason_is_reported_why_the_program_of_a_network_cannot_be_executed(tmp_path: Path, isolation: str) -> None:
    told = output(_BROKEN, sys.executable, "-c", _RUN, str(tmp_path), isolation, scratch=tmp_path / "broken")
    assert "slirp4netns does not start: [Errno 8] Exec format error" in told


@pytest.mark.parametrize("hiding", _WITHOUT)
def test_the_doctor_names_what_is_missing(short_folder: Path, hiding: str) -> None:
    (short_folder / "cage.yaml").write_text(_TOPOLOGY)
    state = short_folder / "s"
    prepare(load_topology(short_folder / "cage.yaml"), federation_directory(state, "cage"))
    doctor = (sys.executable, "-m", "messiahs.cli.main", "doctor", "--module", "cage", "--state", str(state))
    assert f"{_WITHOUT[hiding]}: the module does not start without it" in output(hiding, *doctor)


def test_a_program_that_is_not_on_the_path_is_missing() -> None:
    assert why_no_outbound("/nowhere").endswith("(the package slirp4netns), which is not installed")
