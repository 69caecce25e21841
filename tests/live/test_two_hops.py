"""A chain of three modules: the middle one has no machine, and its neighbors do not know each other."""

from tests.live.conftest import Federation
from tests.waiting import eventually

AT_LEAF = ("--require", "$speed >= 900")


def test_a_task_goes_two_hops_and_its_output_comes_back(trio: Federation) -> None:
    eventually(lambda: trio.vectors()["up"]["machines"] == 2)
    done = trio.run("run", *AT_LEAF, "--", "sh", "-c", "echo far; exit 6")
    assert (done.returncode, done.stdout) == (6, "far\n")
    assert trio.document("status")["tasks"][-1]["executed_on"] == "leaf"


def test_a_killed_hop_loses_nothing(trio: Federation) -> None:
    array = trio.submit(*AT_LEAF, "--array", "1-30", "--", "sleep", "0.1")
    eventually(lambda: trio.status(array)["counts"].get("finished", 0) >= 5)
    before = trio.pid("middle", "daemon")
    trio.kill("middle", "daemon")
    eventually(lambda: trio.pid("middle", "daemon") != before)
    assert trio.run("wait", array).returncode == 0
    members = trio.members(array)
    assert {(member["state"], member["attempt"]) for member in members} == {("finished", 1)}


def test_a_leaf_without_users_of_its_own_can_use_the_root(trio: Federation) -> None:
    eventually(lambda: trio.vectors("leaf")["down"]["machines"] == 2)
    done = trio.run("run", "--module", "leaf", "--require", "$speed < 900", "--", "true")
    assert done.returncode == 0
    assert trio.document("status", "--module", "leaf")["tasks"][-1]["executed_on"] == "root"
