"""The most that a machine gives to one task: more is denied with both values, and nothing stated means that much."""

from collections.abc import Iterator

import pytest

from messiahs.executor.linux.cgroups.finding import find_place
from tests.live.lab import Lab, lab
from tests.waiting import eventually

pytestmark = pytest.mark.live

_TOPOLOGY = """
version: 1
federation: bounds
defaults: {update_period: 500ms}
systems:
  home: {}
  small:
    parent: home
    machine:
      isolation: process
      slots: 2
      at_most: {mem: 256MiB, disk: 16MiB, time: 2s, open_files: 2048}
      attributes: {size: small}
  large: {parent: home, machine: {isolation: process, slots: 2, attributes: {size: large}}}
  narrow: {parent: home, machine: {isolation: process, slots: 1, at_most: {disk: 16MiB}, attributes: {size: narrow}}}
"""
_SMALL, _NARROW = ("--require", '$size eq "small"'), ("--require", '$size eq "narrow"')
_NOT_NARROW = ("--require", '$size ne "narrow"')


@pytest.fixture(scope="module")
def bounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("bounds")
    topology = folder / "bounds.yaml"
    topology.write_text(_TOPOLOGY)
    with lab(topology, name="bounds", module="home") as made:
        yield made


def ended(made: Lab, *words: str) -> dict[str, object]:
    """Run a task to its end, and return its status."""
    task = made.federation.submit(*words)
    made.federation.run("wait", task)
    return made.federation.status(task)


def test_a_task_that_states_more_runs_elsewhere(bounds: Lab) -> None:
    for wish in (("--time", "1h"), ("--disk", "32MiB"), ("--mem", "512MiB")):
        status = ended(bounds, *_NOT_NARROW, *wish, "--", "true")
        assert (status["state"], status["executed_on"]) == ("finished", "large")


def test_users_read_the_maximum_in_the_list_of_modules(bounds: Lab) -> None:
    listed = {each["name"]: each["at_most"] for each in bounds.federation.document("module", "list")["modules"]}
    at_most = {"mem": 256 << 20, "disk": 16 << 20, "time": 2, "open_files": 2_048}
    assert listed == {"home": {}, "small": at_most, "large": {}, "narrow": {"disk": 16 << 20}}
    with bounds.federation.client("small") as client:
        assert client.module()["at_most"] == at_most


def test_a_task_that_can_run_nowhere_else_is_told_the_maximum(bounds: Lab) -> None:
    task = bounds.federation.submit(*_SMALL, "--time", "1h", "--disk", "1GiB", "--", "true")
    eventually(lambda: bounds.federation.status(task)["reasons"])
    explained = bounds.federation.run("explain", task).stdout
    bounds.federation.run("cancel", task)
    assert "it states 1 GiB of disk: at most 16 MiB here; it states 3600 s of run time: at most 2 s here" in explained


def test_a_task_that_states_nothing_is_ended_at_the_maximum_and_told_whose_it_is(bounds: Lab) -> None:
    status = ended(bounds, *_SMALL, "--", "sleep", "600")
    assert (status["state"], status["cause"]) == ("aborted", "time_limit")
    text = "a task that states no time runs for at most 2 s on this machine: state what it needs with --time"
    assert status["text"] == text
    status = ended(bounds, *_NARROW, "--", "sh", "-c", "head -c 24M /dev/zero >a; exec sleep 600")
    assert (status["state"], status["cause"]) == ("aborted", "disk_limit")


def test_the_origin_reads_what_a_task_used_that_reached_its_limit_of_memory(bounds: Lab) -> None:
    if problem := find_place(prepares=False).problem:
        pytest.skip(problem)
    status = ended(bounds, *_NARROW, "--mem", "64MiB", "--", "python3", "-c", "len(bytearray(200 << 20))")
    assert (status["state"], status["cause"]) == ("aborted", "memory_limit")
    used = status["usage"]
    assert isinstance(used, dict)
    assert 32 << 20 <= used["peak_memory_bytes"] <= 64 << 20
    assert used["cpu_s"] > 0
    assert used["suspended_s"] == 0


def test_the_origin_reads_how_much_a_task_wrote(bounds: Lab) -> None:
    used = ended(bounds, *_NARROW, "--", "sh", "-c", "head -c 8M /dev/urandom >a; sync a")["usage"]
    assert isinstance(used, dict)
    assert used["written_bytes"] >= 8 << 20
    assert used["read_bytes"] >= 0


def test_a_task_cannot_open_more_files(bounds: Lab) -> None:
    task = bounds.federation.submit(*_SMALL, "--", "sh", "-c", "ulimit -Hn")
    bounds.federation.run("wait", task)
    assert bounds.federation.run("logs", task).stdout == "2048\n"
