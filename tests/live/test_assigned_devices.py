"""Device files of GPUs in sandboxes: a task sees that of its own one alone, and nobody gets one that is not there."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from messiahs.config.settings import DEFAULT_TASK_UIDS
from messiahs.executor.protocol.layout import VIEW, find_work_folders
from tests.fake_devices import device_folder, make_device
from tests.live.lab import Lab, lab
from tests.waiting import eventually

pytestmark = pytest.mark.live

_TOPOLOGY = """
version: 1
federation: devices
defaults: {{update_period: 500ms}}
systems:
  home: {{}}
  {module}:
    parent: home
    machine: {{isolation: {isolation}, slots: 8, counted: {{gpus: {{0: [{gpu0}, {shared}], 1: [{gpu1}, {shared}]}}}}}}
"""


class Gpus(NamedTuple):
    """A machine with two GPUs, and the folder of their devices."""

    lab: Lab
    module: str
    folder: Path


@pytest.fixture(scope="module", params=["sandbox", "bubblewrap"])
def gpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gpus]:
    isolation: str = request.param
    if isolation == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("needs the package bubblewrap")
    with device_folder() as folder:
        paths = {name: str(make_device(folder / name)) for name in ("gpu0", "gpu1", "shared")}
        module = f"of-{isolation}"
        topology = tmp_path_factory.mktemp("devices") / "devices.yaml"
        topology.write_text(_TOPOLOGY.format(module=module, isolation=isolation, **paths))
        with lab(topology, name="devices", module="home") as made:
            yield Gpus(made, module, folder)


def logged(gpus: Gpus, text: str) -> bool:
    return text in (gpus.lab.federation.folder(gpus.module) / "module.log").read_text()


def told(made: Lab, task: str) -> str:
    eventually(lambda: made.federation.run("logs", task).stdout.endswith("end\n"))
    return made.federation.run("logs", task).stdout.removesuffix("end\n")


def test_two_tasks_at_once_see_a_different_device_each(gpus: Gpus) -> None:
    made, look = gpus.lab, f"ls {gpus.folder}; head -c 1 {gpus.folder}/gpu* | wc -c; echo end"
    tasks = [made.federation.submit("--gpus", "1", "--", "sh", "-c", f"{look}; exec sleep 600") for _ in range(2)]
    seen = [told(made, task) for task in tasks]
    assert sorted(seen) == ["gpu0\nshared\n1\n", "gpu1\nshared\n1\n"]
    for task, shown in zip(tasks, seen, strict=True):
        (number,) = made.federation.status(task)["assigned"]["gpus"]
        assert shown.startswith(f"gpu{number}\n")
        made.federation.run("cancel", task)
    bare = made.federation.run("run", "--", "sh", "-c", f"ls {gpus.folder} /dev")
    assert gpus.folder.name not in bare.stdout
    assert "null" in bare.stdout


def test_a_gpu_whose_device_is_gone_is_not_offered(gpus: Gpus) -> None:
    made, device = gpus.lab, gpus.folder / "gpu0"
    device.unlink()
    problem = f"gpus 0 is not offered to tasks: {device}: No such file or directory"
    eventually(lambda: logged(gpus, problem))
    found = made.federation.run("doctor", "--module", gpus.module).stdout
    assert f"warn devices: {problem}\n" in found, found
    assert f"ok   devices: {gpus.folder}/gpu1 is open to tasks\n" in found, found
    both = made.federation.submit("--gpus", "2", "--", "true")
    eventually(lambda: "too few GPUs: at most 1" in made.federation.run("explain", both).stdout)
    one = made.federation.run("run", "--gpus", "1", "--", "sh", "-c", "echo $MESSIAHS_GPUS")
    assert one.stdout == "1\n"
    make_device(device)
    eventually(lambda: logged(gpus, "gpus 0 is offered to tasks again"))
    assert made.federation.run("wait", both).returncode == 0


def test_a_task_whose_sandbox_cannot_be_set_up_says_so_and_runs_once_it_can(gpus: Gpus) -> None:
    made = gpus.lab.federation
    if gpus.module == "of-bubblewrap":
        pytest.skip("boxes have no folder on which their roots are put together")
    tasks = find_work_folders(made.folder(gpus.module), DEFAULT_TASK_UIDS).tasks
    assert tasks is not None
    view = tasks / VIEW
    view.rmdir()
    try:
        task = made.submit("--gpus", "1", "--", "true")
        reason = f"its sandbox cannot be set up: mount {view}: No such file or directory"
        ended = f"attempt 1 spawn_failed at {gpus.module}: {reason}\n"
        eventually(lambda: ended in made.run("explain", task).stdout)
        why = f"the last attempt could not be started: {reason}"
        eventually(lambda: any(each["text"] == why for each in made.status(task)["reasons"]))
        assert logged(gpus, f"a task could not be started: {reason} (attempt {task}#1)")
    finally:
        view.mkdir()
    assert made.run("wait", task).returncode == 0


def test_a_device_that_is_an_open_file_of_whoever_looks_at_it_is_refused_with_its_place(
    gpus: Gpus, tmp_path: Path
) -> None:
    topology = tmp_path / "boards.yaml"
    machine = "machine: {isolation: sandbox, counted: {boards: {0: [/dev/stdin]}}}"
    topology.write_text(f"version: 1\nfederation: devices\nsystems:\n  home: {{{machine}}}\n")
    found = gpus.lab.federation.run("topology", "check", str(topology))
    problem = "boards: 0: `/dev/stdin` leads to open files of the program that looks at it: no task may have it"
    assert found.returncode == 1
    assert problem in found.stderr
