"""The account that all tasks of a starter of root share where they have no sandboxes of their own."""

import os
import pwd
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.interface.actions import DiscardAttempt
from messiahs.errors import ExecutorError
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.protocol.layout import ATTEMPTS
from tests.contract.escape_rig import executor_of
from tests.contract.executor_rig import Rig, attempt_id, play_scene, root_of, starter_settings

pytestmark = pytest.mark.processes
_NEEDS_ROOT = "needs root: tasks of another account's starter have that account"


@pytest.fixture(autouse=True)
def only_as_root() -> None:
    if os.geteuid() != 0:
        pytest.skip(_NEEDS_ROOT)


@pytest.fixture(params=["namespace", "degraded", "bubblewrap"])
def settings(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[StarterSettings]:
    with starter_settings(tmp_path, kind=request.param) as settings:
        yield settings


async def account_in(rig: Rig, number: int) -> int:
    rig.run(number, "id", "-u")
    assert (await rig.end_of(number)).exit_code == 0
    return int(rig.output(number))


def test_two_starters_never_share_an_account_and_one_has_the_same_at_each_start(settings: StarterSettings) -> None:
    # No other test on this machine has these meanwhile.
    first = 2_100_200_000 + 2 * os.getpid()
    settings = replace(settings, task_uids=(first, first + 1))

    async def act(rig: Rig) -> None:
        owns.append(await account_in(rig, 1))
        beside = await Rig(executor_of(other)).started()
        try:
            assert {*owns, await account_in(beside, 1)} == {first, first + 1}
            with pytest.raises(ExecutorError, match="the starter does not start"):
                await executor_of(third).start(lambda _: None, lambda _: None)
            assert "use all accounts of tasks" in (third.directory / "starter.log").read_text()
        finally:
            await beside.executor.stop(end_tasks=True)

    async def again(rig: Rig) -> None:
        assert [await account_in(rig, 2)] == owns

    owns: list[int] = []
    other, third = (replace(settings, directory=settings.directory.parent / name) for name in ("other", "third"))
    play_scene(act, lambda: executor_of(settings))
    play_scene(again, lambda: executor_of(settings))


@pytest.mark.parametrize("kind", ["namespace", "bubblewrap", "sandbox"])
def test_what_nobody_left_from_release_1_is_read_and_removed_and_no_task_is_nobody(tmp_path: Path, kind: str) -> None:
    nobody = pwd.getpwnam("nobody")

    async def before(rig: Rig) -> None:
        rig.run(1, "sh", "-c", "mkdir folder && touch folder/file && echo kept")
        await rig.end_of(1)

    async def after(rig: Rig) -> None:
        assert rig.output(1) == "kept\n"
        assert await account_in(rig, 2) != nobody.pw_uid
        rig.executor.perform(DiscardAttempt(attempt=attempt_id(1)))
        await rig.until(lambda: not (folder / "stdout").exists() and not list((root / "trash").iterdir()))

    with starter_settings(tmp_path, kind=kind) as settings:
        play_scene(before, lambda: executor_of(settings))
        root = root_of(settings)
        (folder,) = (root / ATTEMPTS).iterdir()
        for path in (root / ATTEMPTS, *folder.rglob("*")):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
        play_scene(after, lambda: executor_of(settings))
