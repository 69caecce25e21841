"""Environment modules of a machine, which a task names: they are loaded before it begins."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.interface.messages import Command
from messiahs.core.model.environment_modules import ENV_MODULES
from tests.contract.executor_rig import BACK_ENDS, Rig, start_of
from tests.contract.task_files import Files, starter_files

pytestmark = pytest.mark.processes

_INIT = b"""module() {
    [ "$1" = load ] || return 1
    shift
    for name; do case $name in broken*) return 1 ;; *) LOADED="${LOADED-}[$name]"; export LOADED ;; esac; done
}
"""
_SYSTEM = ("/usr/share/modules/init/sh", "/usr/share/lmod/lmod/init/sh", "/etc/profile.d/modules.sh")


@pytest.fixture(params=BACK_ENDS)
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files]:
    with starter_files(tmp_path, kind=request.param) as files:
        yield files


def begin(rig: Rig, files: Files, number: int, modules: str, /, *argv: str, home: str = "site") -> None:
    env = ((ENV_MODULES, modules), ("MODULESHOME", home))
    init = files.add("site/init/sh", _INIT + f"# of {number}\n".encode())
    rig.begin(replace(start_of(number), command=Command(argv=argv, env=env, inputs=(init,))))


def test_the_named_modules_are_loaded_before_the_command_which_gets_its_own_words(files: Files) -> None:
    async def act(rig: Rig) -> None:
        begin(rig, files, 1, "gcc/12.2 openmpi", "sh", "-c", 'echo "$LOADED $*"; exit 7', "sh", "two words", "*")
        end = await rig.end_of(1)
        assert (end.cause, end.exit_code) == ("", 7)
        assert rig.output(1) == "[gcc/12.2][openmpi] two words *\n"

    files.play(act)


def test_one_that_cannot_be_loaded_ends_the_task_with_the_reason(files: Files) -> None:
    async def act(rig: Rig) -> None:
        begin(rig, files, 1, "gcc broken/1", "echo", "ran")
        end = await rig.end_of(1)
        assert (end.exit_code, rig.output(1)) == (127, "")
        assert rig.output(1, "stderr") == "not loaded: environment modules gcc broken/1\n"

    files.play(act)


@pytest.mark.skipif(any(Path(place).exists() for place in _SYSTEM), reason="this machine has environment modules")
def test_a_machine_without_them_says_so(files: Files) -> None:
    async def act(rig: Rig) -> None:
        begin(rig, files, 1, "gcc", "echo", "ran", home="absent")
        end = await rig.end_of(1)
        assert (end.exit_code, rig.output(1)) == (127, "")
        assert rig.output(1, "stderr") == "this machine has no environment modules\n"

    files.play(act)


@pytest.mark.skipif(not Path(_SYSTEM[0]).exists(), reason="needs the package environment-modules")
def test_those_of_the_system_are_loaded(files: Files) -> None:
    async def act(rig: Rig) -> None:
        begin(rig, files, 1, "null", "sh", "-c", "echo $LOADEDMODULES", home="absent")
        end = await rig.end_of(1)
        assert (end.exit_code, rig.output(1)) == (0, "null\n"), rig.output(1, "stderr")
        begin(rig, files, 2, "null of-nobody/1", "echo", "ran", home="absent")
        end = await rig.end_of(2)
        assert (end.exit_code, rig.output(2)) == (127, "")
        assert "of-nobody/1" in rig.output(2, "stderr")

    files.play(act)
