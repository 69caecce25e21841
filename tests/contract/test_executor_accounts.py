"""Tasks that run as an account of the host, which the policy of the machine names."""

import grp
import pwd
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from messiahs.core.interface.actions import EndAttempt
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import Command
from messiahs.core.model.counted import Counted
from messiahs.core.model.images import IMAGE_INPUT
from messiahs.core.model.task_files import InputFile
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import StarterSettings
from tests.contract.executor_rig import OFFSET_NS, Rig, attempt_id, play_scene, root_of, start_of, starter_settings
from tests.contract.task_files import Files, starter_files
from tests.fake_devices import device_folder, make_device
from tests.local_accounts import add_to_group, delete_account, made_account
from tests.oci_images import image_of_this_machine

pytestmark = pytest.mark.processes

_REFUSED = "the account that the machine's policy gives the task cannot be used: "


@pytest.fixture
def account() -> Iterator[str]:
    with made_account() as name:
        yield name


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    with starter_files(tmp_path, kind="sandbox") as files:
        yield files


def run(
    rig: Rig,
    number: int,
    account: str,
    script: str,
    /,
    *,
    inputs: tuple[InputFile, ...] = (),
    outputs: tuple[str, ...] = (),
) -> None:
    """Start a script as an account, in the image that is among its inputs, if one is."""
    command = Command(argv=("sh", "-c", f"exec 2>&1; {script}"), inputs=inputs, outputs=outputs)
    image = next((one.sha256.hex() for one in inputs if one.name == IMAGE_INPUT), "")
    rig.executor.perform(replace(start_of(number), command=command, image=image, account=account))


async def output_as(rig: Rig, number: int, account: str, script: str, /, inputs: tuple[InputFile, ...] = ()) -> str:
    run(rig, number, account, script, inputs=inputs)
    end = await rig.end_of(number)
    assert (end.cause, end.text) == ("", "")
    return rig.output(number)


def executor_of(settings: StarterSettings) -> OsProcessExecutor:
    return OsProcessExecutor(settings, boottime_offset_ns=OFFSET_NS)


@pytest.mark.parametrize("has_image", [False, True])
def test_a_task_has_the_account_and_its_groups_and_the_next_one_has_not(
    files: Files, account: str, *, has_image: bool
) -> None:
    known = pwd.getpwnam(account)
    groups = sorted((known.pw_gid, grp.getgrnam(f"{account}-more").gr_gid))

    async def act(rig: Rig) -> None:
        inputs: tuple[InputFile, ...] = (files.add("data", b"given"),)
        inputs += (files.add(IMAGE_INPUT, image_of_this_machine()),) if has_image else ()
        script = "id -u; id -g; id -G; echo $USER $HOME; cat data; test -O . -a -O data && echo own"
        seen = (await output_as(rig, 1, account, script, inputs)).split("\n")
        assert seen[:2] == [str(known.pw_uid), str(known.pw_gid)]
        assert sorted(map(int, seen[2].split())) == groups
        assert seen[3:] == [f"{account} /task/work", "givenown", ""]
        assert (await output_as(rig, 2, account, "id -un")) == f"{account}\n"
        first, last = files.settings.task_uids
        assert first <= int(await output_as(rig, 3, "", "id -u", inputs)) <= last

    files.play(act)


def test_the_groups_of_the_account_open_devices_that_are_closed_to_others(files: Files, account: str) -> None:
    with device_folder() as folder:
        device = make_device(folder / "gpu0", mode=0o660)
        shutil.chown(device, group=f"{account}-more")
        settings = replace(files.settings, counted=("gpus",), devices={"gpus": {0: (str(device),)}})

        async def act(rig: Rig) -> None:
            command = Command(argv=("sh", "-c", f"head -c 3 {device} | wc -c"))
            start = replace(start_of(1), command=command, assigned=(Counted(name="gpus", numbers=(0,)),))
            for number, name, read in ((1, account, "3\n"), (2, "", "0\n")):
                rig.executor.perform(replace(start, attempt=attempt_id(number), account=name))
                await rig.end_of(number)
                assert rig.output(number) == read

        play_scene(act, lambda: executor_of(settings))


def test_it_has_no_capability_and_can_gain_none(files: Files, account: str) -> None:
    async def act(rig: Rig) -> None:
        status = await output_as(rig, 1, account, "cat /proc/self/status")
        found = dict(line.split(":\t", 1) for line in status.splitlines())
        assert {int(found[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
        assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")
        assert len(set(found["Uid"].split())) == len(set(found["Gid"].split())) == 1

    files.play(act)


def test_what_it_wrote_comes_out_also_through_a_later_daemon(files: Files, account: str) -> None:
    async def scene(rig: Rig) -> None:
        run(rig, 1, account, "echo said; mkdir out; echo made >out/x", outputs=("out",))
        end = await rig.end_of(1)
        assert [output.name for output in end.outputs] == ["stdout", "stderr", "work/out/x"]
        run(rig, 2, account, "echo early; exec sleep 600")
        await rig.until(lambda: rig.output(2) == "early\n")
        await rig.executor.stop(end_tasks=False)
        later = await Rig(executor_of(files.settings)).started()
        assert (later.output(1), later.output(1, "work/out/x"), later.output(2)) == ("said\n", "made\n", "early\n")
        await later.executor.stop(end_tasks=True)

    files.play(scene)


@pytest.fixture
def installed(files: Files) -> Iterator[StarterSettings]:
    """Return a starter whose folders are where tasks see everything around them, and sockets beside it."""
    with TemporaryDirectory(dir="/var/lib", prefix="messiahs-test-") as name:
        folder = Path(name)
        settings = replace(files.settings, directory=folder / "site/module", hidden=(str(folder / "sockets"),))
        for place in (folder, folder / "sockets", folder / "site", settings.directory):
            place.mkdir(exist_ok=True)
            place.chmod(0o755)
        with ExitStack() as opened:
            for place in (folder / "sockets", folder / "site"):
                listener = opened.enter_context(closing(socket.socket(socket.AF_UNIX)))
                listener.bind(str(place / "api.sock"))
            yield settings


def test_two_tasks_of_one_account_reach_neither_each_other_nor_a_socket_of_the_module(
    installed: StarterSettings, account: str
) -> None:
    async def act(rig: Rig) -> None:
        run(rig, 1, account, "echo secret | tee mine /tmp/mine /dev/shm/mine; exec sleep 600")
        await rig.until(lambda: rig.output(1) == "secret\n")
        root, folder = root_of(installed), installed.directory.parents[1]
        assert any(root.rglob("mine"))
        script = f"find {folder} /tmp /dev/shm /task; cat {root}/slots/*/work/mine 2>/dev/null; ps -e -o comm="
        seen = await output_as(rig, 2, account, script)
        assert f"{folder}/sockets\n{folder}/site\n" in seen or f"{folder}/site\n{folder}/sockets\n" in seen
        assert not [word for word in ("api.sock", f"{folder}/site/", "/mine\n", "secret", "sleep") if word in seen]
        # Without an account, only the rights to them keep a task from these folders.
        seen = await output_as(rig, 3, "", script)
        assert f"{folder}/site/api.sock\n" in seen
        assert not [word for word in ("/mine\n", "secret", "sleep") if word in seen]
        rig.executor.perform(EndAttempt(attempt=attempt_id(1), grace_ns=0, cause=Cause.KILLED))
        await rig.end_of(1)

    play_scene(act, lambda: executor_of(installed))


def test_a_folder_of_sockets_that_was_removed_is_hidden_from_later_tasks_once_it_is_there_again(
    installed: StarterSettings, account: str
) -> None:
    sockets = installed.directory.parents[1] / "sockets"

    async def act(rig: Rig) -> None:
        shutil.rmtree(sockets)
        run(rig, 1, account, "true")
        end = await rig.end_of(1)
        assert (end.cause, end.exit_code) == (Cause.SPAWN_FAILED, None)
        problem = f"its sandbox cannot be set up: {sockets} is not there, which the task must not see"
        assert end.text.startswith(problem)
        sockets.mkdir()
        (sockets / "later.sock").touch()
        assert await output_as(rig, 2, account, f"find {sockets}") == f"{sockets}\n"

    play_scene(act, lambda: executor_of(installed))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("root", "it is root, or a member of its group"),
        ("no-such-account", "this host has no such account"),
        ("nobody", "it is that of other tasks, or stands for accounts without a number"),
    ],
)
def test_nothing_runs_as_root_as_nobody_or_as_an_account_that_is_not_there(files: Files, name: str, why: str) -> None:
    async def act(rig: Rig) -> None:
        run(rig, 1, name, "echo ran")
        end = await rig.end_of(1)
        assert (end.cause, end.exit_code, end.text) == (Cause.SPAWN_FAILED, None, _REFUSED + why)
        assert rig.output(1) == ""
        assert await output_as(rig, 2, "", "echo next") == "next\n"

    files.play(act)


def test_an_account_that_vanished_after_the_start_ends_the_next_attempt(files: Files, account: str) -> None:
    async def act(rig: Rig) -> None:
        assert await output_as(rig, 1, account, "id -un") == f"{account}\n"
        delete_account(account)
        for number, inputs in ((2, ()), (3, (files.add(IMAGE_INPUT, image_of_this_machine()),))):
            run(rig, number, account, "echo ran", inputs=inputs)
            end = await rig.end_of(number)
            assert (end.cause, end.text) == (Cause.SPAWN_FAILED, f"{_REFUSED}this host has no such account")
            assert rig.output(number) == ""

    files.play(act)


def test_a_member_of_the_group_of_root_runs_nothing(files: Files, account: str) -> None:
    add_to_group(account, "root")

    async def act(rig: Rig) -> None:
        run(rig, 1, account, "echo ran")
        assert (await rig.end_of(1)).text == f"{_REFUSED}it is root, or a member of its group"

    files.play(act)


def test_one_account_for_each_task_suffices_for_those_with_an_account_of_the_host(files: Files, account: str) -> None:
    files.limit_accounts(files.settings.task_uids[1])

    async def act(rig: Rig) -> None:
        for number, name in enumerate((account, "", account, account, ""), 1):
            run(rig, number, name, "id -un")
        for number, name in enumerate((account, "task", account, account, "task"), 1):
            assert (await rig.end_of(number)).exit_code == 0
            assert rig.output(number) == f"{name}\n"

    files.play(act)


def test_a_task_with_an_account_has_the_network_of_the_policy_and_the_next_one_that_of_the_machine(
    files: Files, account: str
) -> None:
    connect = "import socket as s; a = s.create_server(('127.0.0.1', 0)); s.create_connection(a.getsockname())"
    script = f'python3 -c "{connect}" && echo connected; id -un; readlink /proc/self/ns/net'
    own = str(Path("/proc/self/ns/net").readlink())

    async def act(rig: Rig) -> None:
        for number, (name, network) in enumerate([(account, "none"), (account, ""), ("", "none"), ("", "")], 1):
            command = Command(argv=("sh", "-c", script))
            rig.executor.perform(replace(start_of(number), command=command, account=name, network=network))
            await rig.end_of(number)
            seen = rig.output(number).splitlines()
            assert seen[-2] == (name or "task")
            assert (seen[-1] == own, "connected" in seen) == ((False, False) if network else (True, True))

    play_scene(act, lambda: executor_of(replace(files.settings, network="host")))


@pytest.mark.parametrize("kind", ["namespace", "bubblewrap"])
def test_without_a_sandbox_of_its_own_no_task_gets_an_account(tmp_path: Path, kind: str) -> None:
    async def act(rig: Rig) -> None:
        run(rig, 1, "daemon", "echo ran")
        end = await rig.end_of(1)
        assert (end.cause, end.text) == (
            Cause.SPAWN_FAILED,
            "the machine's policy gives the task an account of the host, which only `isolation: sandbox` can do",
        )
        assert rig.output(1) == ""

    with starter_settings(tmp_path, kind=kind) as settings:
        play_scene(act, lambda: executor_of(settings))
