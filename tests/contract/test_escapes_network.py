"""What tasks in sandboxes of each make reach of the network: what the machine gives, or less by its policy."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.core.interface.actions import StartAttempt
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import Command
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.starter.sandbox.outbound import why_no_outbound
from tests.contract.escape_rig import MAKES, OUTBOUND, contained, executor_of, image_for, output_of
from tests.contract.executor_rig import Rig, play_scene, start_of, starter_settings

pytestmark = pytest.mark.processes

_CONNECT = """
import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname())
print("reaches itself")
"""
_LISTEN = """
import socket, time
server = socket.create_server(("127.0.0.1", 5555))
print("ready", flush=True)
time.sleep(600)
"""
_LOOK = f"python3 -c '{_CONNECT}' | tail -1; readlink /proc/self/ns/net; grep -c : /proc/net/dev"
_HOST = "that of the host"
REACHES = {"none": (False, 1), "loopback": (True, 1), "outbound": (True, 2), "host": (True, _HOST)}
"""Whether a task with a network reaches itself, and how many interfaces it sees, or whose."""


@pytest.fixture(params=[make for make in MAKES if make != OUTBOUND])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StarterSettings]:
    with contained(request.param, tmp_path) as settings:
        yield settings


def skip_without(network: str) -> None:
    if network == "outbound" and (problem := why_no_outbound()):
        pytest.skip(problem)


def limited(rig: Rig, number: int, network: str, script: str = _LOOK, /) -> StartAttempt:
    """Return the start of a script that a policy limits to a network."""
    command = Command(argv=("sh", "-c", f"exec 2>&1; {script}"), inputs=() if rig.image is None else (rig.image,))
    image = "" if rig.image is None else rig.image.sha256.hex()
    return replace(start_of(number), command=command, image=image, network=network)


async def seen_by(rig: Rig, number: int, network: str, script: str = _LOOK, /) -> str:
    """Return what a limited script wrote."""
    rig.executor.perform(limited(rig, number, network, script))
    end = await rig.end_of(number)
    assert (end.cause, end.text) == ("", "")
    return rig.output(number)


def reach_in(seen: str) -> tuple[bool, int | str]:
    *_, namespace, interfaces = seen.splitlines()
    is_that_of_host = namespace == str(Path("/proc/self/ns/net").readlink())
    return "reaches itself" in seen, _HOST if is_that_of_host else int(interfaces)


@pytest.mark.parametrize("network", REACHES)
def test_the_network_is_the_one_that_was_chosen(settings: StarterSettings, network: str) -> None:
    skip_without(network)

    async def act(rig: Rig) -> None:
        assert reach_in(await output_of(rig, 1, _LOOK)) == REACHES[network]

    play_scene(act, lambda: executor_of(replace(settings, network=network)), image=image_for(settings))


@pytest.mark.parametrize("network", ["none", "loopback", "outbound"])
def test_a_task_that_the_policy_limits_reaches_less_than_the_machine_and_the_next_one_has_it_all(
    settings: StarterSettings, network: str
) -> None:
    skip_without(network)

    async def act(rig: Rig) -> None:
        numbers = iter(range(1, 99))
        for each in ("", network, "", "host", network, network, ""):
            reached = reach_in(await seen_by(rig, next(numbers), each))
            assert reached == REACHES[each or "host"]

    play_scene(act, lambda: executor_of(replace(settings, network="host")), image=image_for(settings))


@pytest.mark.parametrize("network", ["loopback", "host"])
def test_no_task_reaches_more_than_the_machine_gives_whatever_a_start_says(
    settings: StarterSettings, network: str
) -> None:
    async def act(rig: Rig) -> None:
        assert reach_in(await seen_by(rig, 1, network)) == REACHES["none"]

    play_scene(act, lambda: executor_of(replace(settings, network="none")), image=image_for(settings))


def test_a_limited_task_reaches_neither_the_host_nor_another_limited_one(settings: StarterSettings) -> None:
    name = f"\0messiahs-test-{settings.directory}"
    tried = "python3 -c 'import socket, sys; socket.create_connection((sys.argv[1], sys.argv[2]), 5)'"

    async def act(rig: Rig) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
            abstract.bind(name)
            abstract.listen()
            reach = f"{tried} 127.0.0.1 {server.getsockname()[1]} && echo reached"
            call = f"python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('\\\\0' + '{name[1:]}')\""
            script = f"{reach}; {call} && echo reached; true"
            rig.executor.perform(limited(rig, 1, "loopback", f"python3 -c '{_LISTEN}'"))
            await rig.until(lambda: rig.output(1) == "ready\n")
            assert (await seen_by(rig, 2, "host", script)).count("reached") == 2
            script += f"; {tried} 127.0.0.1 5555 && echo reached; true"
            for number, network in enumerate(("loopback", "none"), 3):
                seen = await seen_by(rig, number, network, script)
                assert "reached" not in seen, seen

    play_scene(act, lambda: executor_of(replace(settings, network="host")), image=image_for(settings))


@pytest.mark.parametrize("settings", ["sandbox"], indirect=True)
def test_one_account_suffices_for_tasks_with_and_without_a_limit(settings: StarterSettings) -> None:
    only = settings.task_uids[1]
    chosen = replace(settings, network="host", task_uids=(only, only))

    async def act(rig: Rig) -> None:
        networks = ("none", "", "loopback", "loopback", "", "none")
        for number, network in enumerate(networks, 1):
            rig.executor.perform(limited(rig, number, network, f"id -u; {_LOOK}"))
        for number, network in enumerate(networks, 1):
            await rig.end_of(number)
            assert rig.output(number).splitlines()[0] == str(only)
            assert reach_in(rig.output(number)) == REACHES[network or "host"]

    play_scene(act, lambda: executor_of(chosen))


@pytest.mark.parametrize("settings", ["sandbox"], indirect=True)
def test_a_slot_serves_limited_tasks_one_after_the_other(settings: StarterSettings) -> None:
    async def act(rig: Rig) -> None:
        # The numbers of processes begin again in a new one.
        uses = ("true", "true", f"python3 -c '{_CONNECT}'", "true")
        seen = [await seen_by(rig, number, "loopback", f"echo $$; {use}") for number, use in enumerate(uses, 1)]
        first, second, third, fourth = (int(text.split()[0]) for text in seen)
        assert first < second < third < fourth

    play_scene(act, lambda: executor_of(replace(settings, network="host")))


@pytest.mark.parametrize("kind", ["namespace", "degraded"])
def test_without_a_sandbox_no_task_runs_that_the_policy_limits(tmp_path: Path, kind: str) -> None:
    async def act(rig: Rig) -> None:
        rig.executor.perform(limited(rig, 1, "none", "echo ran"))
        end = await rig.end_of(1)
        text = "the machine's policy limits the network of the task, which only sandboxes can do"
        assert (end.cause, end.text, rig.output(1)) == (Cause.SPAWN_FAILED, text, "")

    with starter_settings(tmp_path, kind=kind) as made:
        play_scene(act, lambda: executor_of(made))
