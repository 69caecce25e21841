"""How tasks are contained, as the module found it and as this command finds it."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.cli.doctor.containing import check_isolation
from messiahs.cli.doctor.findings import Finding, Level, Patient
from messiahs.client.connection import Document
from messiahs.client.locating import ModulePlace
from messiahs.config.settings import MachineSettings, ModuleSettings
from messiahs.core.model.counted import Counted
from tests.fake_devices import device_folder, make_device
from tests.old_linux import be_on_old_linux
from tests.unit.executor.apart import in_own_process

pytestmark = pytest.mark.processes


def found(folder: Path, what: str, *, machine: MachineSettings, document: Document | None = None) -> Finding:
    (folder / "campus" / "xinu").mkdir(parents=True, exist_ok=True)
    settings = ModuleSettings(
        federation="campus",
        name="xinu",
        state_directory=folder / "campus",
        listen="127.0.0.1:7101",
        certificate_file=folder / "certificate.pem",
        key_file=folder / "key.pem",
        trust_file=folder / "root.pem",
        machine=machine,
    )
    place = ModulePlace(federation="campus", module="xinu", state_directory=folder)
    patient = Patient(place=place, settings=settings, pid=None, document=document, neighbors=[], reach=[])
    (finding,) = (each for each in check_isolation(patient) if each.what == what)
    return finding


def test_limits_are_those_that_the_module_reaches_and_not_this_command(tmp_path: Path) -> None:
    lacks = "no process namespace; no control groups: there is none that this account may divide"
    document: Document = {"containment": {"isolation": "process", "lacks": lacks}}
    finding = found(tmp_path, "limits", machine=MachineSettings(isolation="process"), document=document)
    assert finding.level is Level.WARN
    assert finding.text.startswith("no control groups: there is none that this account may divide: --mem")


def test_sandboxes_of_an_ordinary_account_fail_as_the_next_start_does(tmp_path: Path) -> None:
    folder = tmp_path / "campus" / "xinu"
    folder.mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(folder, 3001, 3001)
    machine = MachineSettings(isolation="sandbox")
    finding = found(tmp_path, "isolation", machine=machine)
    assert finding.level is Level.FAIL
    assert "only root can set up sandboxes" in finding.text
    assert found(tmp_path, "isolation", machine=replace(machine, isolation="process")).level is Level.WARN


@pytest.mark.parametrize(("isolation", "level"), [("sandbox", Level.FAIL), ("", Level.WARN)])
def test_a_linux_that_is_too_old_for_sandboxes_is_named(tmp_path: Path, isolation: str, level: Level) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, whose tasks have sandboxes by default")

    def act() -> None:
        be_on_old_linux()
        finding = found(tmp_path, "isolation", machine=MachineSettings(isolation=isolation))
        assert finding.level is level
        assert "no sandboxes: they need openat2 (Linux 5.6), which Linux" in finding.text

    in_own_process(act)


def test_a_folder_to_show_that_is_not_there_is_named(tmp_path: Path) -> None:
    machine = MachineSettings(isolation="bubblewrap", shown=("/usr", "/nonexistent"))
    finding = found(tmp_path, "show", machine=machine)
    assert (finding.level, finding.text) == (
        Level.WARN,
        "`show` names /nonexistent, which is not there: tasks do not see it",
    )


@pytest.mark.parametrize(
    ("mode", "level", "text"),
    [(0o666, Level.OK, "is open to tasks"), (0o660, Level.WARN, "has the mode 660, with which tasks")],
)
def test_the_mode_of_a_device_decides_whether_tasks_can_open_it(
    tmp_path: Path, mode: int, level: Level, text: str
) -> None:
    with device_folder() as folder:
        device = make_device(folder / "gpu0", mode=mode)
        finding = found(tmp_path, "devices", machine=MachineSettings(devices={"gpus": {0: (str(device),)}}))
        assert finding.level is level
        assert finding.text.startswith(f"{device} {text}")


def test_a_thing_whose_device_is_missing_is_named(tmp_path: Path) -> None:
    machine = MachineSettings(devices={"gpus": {2: ("/dev/not-there",)}})
    finding = found(tmp_path, "devices", machine=machine)
    assert (finding.level, finding.text) == (
        Level.WARN,
        "gpus 2 is not offered to tasks: /dev/not-there: No such file or directory",
    )


def test_gpus_of_a_machine_with_sandboxes_need_device_files(tmp_path: Path) -> None:
    gpus = Counted(name="gpus", numbers=(0,))
    finding = found(tmp_path, "devices", machine=MachineSettings(isolation="bubblewrap", counted=(gpus,)))
    assert finding.level is Level.WARN
    assert "tasks in sandboxes find no device of them" in finding.text
