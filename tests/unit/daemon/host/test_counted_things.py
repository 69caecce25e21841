"""A machine offers the counted things whose device files are there."""

import logging

import pytest

from messiahs.config.settings import MachineSettings
from messiahs.core.model.counted import Counted
from messiahs.daemon.host.counted_things import offered_by
from tests.fake_devices import device_folder, make_device

_LICENCES = Counted(name="licences", numbers=(0, 1))


def test_a_thing_without_its_device_is_not_offered_until_that_is_there(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with device_folder() as folder:
        device = make_device(folder / "gpu0")
        machine = MachineSettings(
            counted=(Counted(name="gpus", numbers=(0, 1)), _LICENCES),
            devices={"gpus": {0: (str(device),), 1: (f"{folder}/gpu1",)}},
        )
        offered = offered_by(machine)
        for _ in range(2):
            assert offered() == (Counted(name="gpus", numbers=(0,)), _LICENCES)
        device.unlink()
        assert offered() == (Counted(name="gpus", numbers=()), _LICENCES)
        make_device(device)
        make_device(folder / "gpu1")
        assert offered() == machine.counted
        assert [record.message for record in caplog.records] == [
            f"gpus 1 is not offered to tasks: {folder}/gpu1: No such file or directory",
            f"gpus 0 is not offered to tasks: {device}: No such file or directory",
            *(f"gpus {number} is offered to tasks again" for number in (0, 1)),
        ]


def test_things_without_device_files_are_always_offered() -> None:
    assert offered_by(MachineSettings(counted=(_LICENCES,)))() == (_LICENCES,)
