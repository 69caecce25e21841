"""Device files that tasks may get, and those that give power over the host."""

import os
from pathlib import Path

import pytest

from messiahs.config.device_files import DeviceError, device_at, devices_for, problem_of_path, problems_of_things
from messiahs.core.model.counted import Counted
from tests.fake_devices import device_folder, make_device


@pytest.mark.parametrize(
    "path",
    [
        *("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-caps/nvidia-cap1", "/dev/kfd"),
        *("/dev/dri/renderD128", "/dev/dri/by-path/pci-0000:03:00.0-render", "/dev/ttyUSB0", "/dev/accel/accel0"),
    ],
)
def test_devices_of_things_have_such_paths(path: str) -> None:
    assert problem_of_path(path) == ""


@pytest.mark.parametrize(
    "path",
    [
        *("", "nvidia0", "/dev", "/dev/", "/dev/dri/", "/dev//nvidia0", "/dev/../etc/shadow", "/dev/./nvidia0"),
        *("/etc/passwd", "/devices/nvidia0", "/dev/nvidia 0", "/dev/nvidia0\n", "/dev/nvidia0\0"),
    ],
)
def test_other_paths_are_refused(path: str) -> None:
    assert problem_of_path(path) == "is not the absolute path of a device file below /dev"


@pytest.mark.parametrize(
    ("paths", "what"),
    [
        ("mem kmem core port kmsg nvram cpu/0/msr", "memory"),
        ("console ptmx pts/0 tty tty1 ttyS0 vcs vcsa1", "a terminal of the host"),
        ("input/event0 uinput hidraw0", "keyboards"),
        ("sg0 bsg/0:0:0:0 nvme0 ng0n1 mapper/control loop-control", "disks"),
        ("watchdog watchdog0 ipmi0", "switch the host off"),
        ("shm/gpu fd/0", "a folder of files"),
        ("shm mqueue pts", "is a folder, which every sandbox has for itself"),
        ("stdin stdout stderr fd", "leads to open files of the program that looks at it"),
    ],
)
def test_what_gives_power_over_the_host_is_refused_by_its_name(paths: str, what: str) -> None:
    for path in paths.split():
        assert what in problem_of_path(f"/dev/{path}"), path


@pytest.mark.parametrize(
    ("major", "minor", "what"),
    [
        (1, 1, "memory"),
        (1, 11, "memory"),
        (5, 1, "terminal"),
        (136, 0, "terminal"),
        (13, 64, "keyboards"),
        (21, 0, "disks"),
    ],
)
def test_what_gives_power_over_the_host_is_refused_by_its_numbers_whatever_its_name(
    major: int, minor: int, what: str
) -> None:
    with device_folder() as folder:
        device = make_device(folder / "gpu0", numbers=os.makedev(major, minor))
        with pytest.raises(DeviceError, match=what):
            device_at(str(device))


def test_a_link_that_leads_out_of_dev_is_refused() -> None:
    with device_folder() as folder:
        (folder / "gpu0").symlink_to("/etc/passwd")
        with pytest.raises(DeviceError, match=f"{folder}/gpu0 leads to /etc/passwd, which is not the absolute path"):
            device_at(f"{folder}/gpu0")


def test_a_device_has_the_path_to_which_links_lead_and_its_mode() -> None:
    with device_folder() as folder:
        device = make_device(folder / "gpu0", mode=0o660)
        (folder / "link").symlink_to("gpu0")
        found = device_at(f"{folder}/link")
        assert (found.named, found.actual) == (f"{folder}/link", str(device))
        assert not found.is_open_to_others
        device.chmod(0o666)
        assert device_at(str(device)).is_open_to_others


def test_a_file_of_a_shared_device_is_named_once() -> None:
    devices = {"gpus": {0: ("/dev/gpu0", "/dev/control"), 1: ("/dev/gpu1", "/dev/control")}}
    gpus, licences = Counted(name="gpus", numbers=(0, 1)), Counted(name="licences", numbers=(0,))
    assert devices_for((gpus, licences), devices) == ("/dev/gpu0", "/dev/control", "/dev/gpu1")
    assert devices_for((licences,), devices) == ()


def test_each_thing_without_a_file_is_named() -> None:
    devices = {"gpus": {0: ("/dev/null",), 1: ("/dev/null", "/dev/not-there"), 3: ("/dev/fd",)}}
    missing, refused = problems_of_things(devices)
    assert missing == ("gpus", 1, "/dev/not-there: No such file or directory")
    assert refused[:2] == ("gpus", 3)
    assert Path("/dev/null").is_char_device()
