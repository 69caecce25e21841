"""Ten modules compete for one machine: no slot is granted twice, and every module gets its share."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from messiahs.client import ModuleClient, Submission
from tests.live.conftest import Federation, shared_folder
from tests.waiting import eventually

SLOTS = 4
MEM = 1 << 30
ORIGINS = tuple(f"o{number}" for number in range(8))
MODULES = ("hub", "worker", *ORIGINS)
CLIENTS = 50
TASKS = 2
TOPOLOGY = f"""
version: 1
federation: crowd
defaults: {{update_period: 1s}}
systems:
  hub: {{}}
  worker:
    parent: hub
    machine: {{isolation: process, probe: fixed, nproc: {SLOTS}, slots: {SLOTS}, speed: 500, load: 0%, arch: x86_64,
              os: Linux, total_mem: 1GiB, avail_mem: 1GiB, total_disk: 8GiB, avail_disk: 8GiB}}
"""


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Start a hub with one machine and eight modules without any."""
    state = tmp_path_factory.mktemp("crowd")
    topology = state / "crowd.yaml"
    topology.write_text(TOPOLOGY + "".join(f"  {name}: {{parent: hub}}\n" for name in ORIGINS))
    made = Federation(topology=topology, name="crowd", state=state, module="hub")
    done = made.run("up", str(topology), "--detach", "--wait", "55")
    try:
        assert done.returncode == 0, done.stderr
        yield made
    finally:
        made.down()


def _client(crowd: Federation, module: str) -> ModuleClient:
    return ModuleClient(crowd.state / "crowd" / f"{module}.sock", patience=60)


def test_fifty_clients_at_once_get_every_slot_once(crowd: Federation, tmp_path_factory: pytest.TempPathFactory) -> None:
    shared = shared_folder(tmp_path_factory)
    together = threading.Barrier(CLIENTS)

    def ask(number: int) -> dict[str, Any]:
        mem, disk = ((256, 1024), (512, 1024), (64, 4096))[number % 3]
        script = f"echo start {mem} {disk} >> {shared}/log; sleep 0.1; echo end {mem} {disk} >> {shared}/log"
        tdv = {"cpus": 1, "mem": mem << 20, "disk": disk << 20}
        with _client(crowd, MODULES[number % len(MODULES)]) as client:
            submission = Submission(argv=("sh", "-c", script), tdv=tdv, members=TASKS)
            together.wait()
            return client.wait(client.submit(submission), timeout=240)

    with ThreadPoolExecutor(CLIENTS) as clients:
        ended = list(clients.map(ask, range(CLIENTS)))
    assert [document["counts"] for document in ended] == [{"finished": TASKS}] * CLIENTS
    running: list[tuple[int, int]] = []
    most = 0
    for line in (shared / "log").read_text().splitlines():
        word, mem, disk = line.split()
        if word == "start":
            running.append((int(mem), int(disk)))
        else:
            running.remove((int(mem), int(disk)))
        most = max(most, len(running))
        assert len(running) <= SLOTS
        assert sum(mem for mem, _ in running) <= MEM >> 20
        assert sum(disk for _, disk in running) <= 8 * 1024
    assert running == []
    assert most >= 2


def test_a_few_tasks_do_not_wait_for_the_end_of_an_array_that_keeps_the_machine_full(crowd: Federation) -> None:
    with _client(crowd, "o1") as greedy, _client(crowd, "o2") as modest, _client(crowd, "worker") as near:
        array = greedy.submit(Submission(argv=("sleep", "0.05"), members=4_000))
        eventually(lambda: greedy.tasks(array)["tasks"][0]["counts"].get("finished", 0) > SLOTS)
        near_array = near.submit(Submission(argv=("sleep", "0.05"), members=4_000))
        few = [modest.submit(Submission(argv=("sleep", "0.05"), members=2, name=str(number))) for number in range(2)]
        for task in few:
            assert modest.wait(task, timeout=240)["counts"] == {"finished": 2}
        eventually(lambda: near.tasks(near_array)["tasks"][0]["counts"].get("finished", 0) > SLOTS, seconds=240)
        for client, each in ((greedy, array), (near, near_array)):
            assert client.tasks(each)["tasks"][0]["counts"].get("queued", 0) > 100
            client.cancel(each)
            done = client.wait(each, timeout=240)
            assert set(done["counts"]) <= {"finished", "killed"}


def test_quanta_do_not_appear_in_the_history_of_tasks(crowd: Federation) -> None:
    with _client(crowd, "o3") as first, _client(crowd, "o4") as second:
        arrays = [client.submit(Submission(argv=("sleep", "0.2"), members=120)) for client in (first, second)]
        for client, array in zip((first, second), arrays, strict=True):
            client.wait(array, timeout=240)
            members = client.tasks(array, members=True)["tasks"]
            assert {member["attempt"] for member in members} == {1}
