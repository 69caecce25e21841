"""Two sites of three levels each, in network namespaces where only the gates can reach the other site."""

import hashlib
import random
import subprocess
import sys
from pathlib import Path

import pytest

from messiahs.client import Source, Submission, prepare_inputs, upload
from messiahs.core.relay.byte_route import ANOTHER_SERVER
from tests.live.relay import heard_by
from tests.live.sites import on
from tests.netns.conftest import LINK, SECOND_LINK, Wired
from tests.netns.traffic import Traffic
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.netns

MIB = 1 << 20
TASKS = 100
HOPS = ("gate-a", "group-a", "gate-b")
WAYS = (LINK, ("group-a", "gate-a"), ("a1", "group-a"))
"""The wires from site b to the machine a1: the receiving host, and the sending one. Before them is the switch of b."""


@pytest.mark.parametrize(("origin", "machine", "size_bytes"), [("b1", "a1", 40 * MIB), ("a2", "b2", 10 * MIB)])
def test_a_task_runs_at_the_other_site_with_large_files_and_a_long_log(
    wired: Wired, shared: Path, origin: str, machine: str, size_bytes: int
) -> None:
    before = {hop: wired.sites.memory_bytes(hop) for hop in HOPS}
    traffic = Traffic(sites=wired.sites, folder=shared, origin=origin, machine=machine, size_bytes=size_bytes)
    traffic.begin()
    traffic.end()
    wired.sites.leave_nothing()
    grown = {hop: wired.sites.memory_bytes(hop) - size for hop, size in before.items()}
    assert max(grown.values()) < 64 * MIB, grown


@pytest.mark.parametrize(("origin", "machine"), [("b2", "a2"), ("a1", "b1")])
def test_run_behaves_as_if_the_other_site_were_here(wired: Wired, shared: Path, origin: str, machine: str) -> None:
    here = wired.sites.at(origin)
    (shared / "small").write_text("a file\n")
    script = "cat small - > both; cat both; echo done >&2; exit 3"
    run = [sys.executable, "-m", "messiahs.cli.main", "run", *on(machine), "--input", str(shared / "small"), "--"]
    command = [*run, "sh", "-c", script]
    done = subprocess.run(
        command, input="what was typed\n", capture_output=True, text=True, env=here.environment, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "a file\nwhat was typed\n", "done\n")


def _passed(wired: Wired) -> list[int]:
    """Return the bytes that the origin b1 has sent, and those that have passed each wire since."""
    return [wired.network.sent_to_switch("b1"), *(wired.network.received(*way) for way in WAYS)]


def test_the_input_of_many_tasks_passes_each_wire_once(wired: Wired, shared: Path) -> None:
    source = shared / "input"
    source.write_bytes(random.Random(12).randbytes(4 * MIB))
    before = _passed(wired)
    prepared = prepare_inputs([Source(path=str(source))])
    _, requirement = on("a1")
    command = Submission(
        argv=("sh", "-c", "sha256sum < input"), requirement=requirement, inputs=prepared.inputs, members=TASKS
    )
    with wired.sites.client("b1") as client:
        upload(client, prepared.contents)
        array = client.submit(command)
        ended = client.wait(array, timeout=PATIENCE_SECONDS)
        shown = b"".join(client.logs(f"{array}.{TASKS}")).decode()
    assert ended["counts"] == {"finished": TASKS}
    assert shown.split()[0] == hashlib.sha256(source.read_bytes()).hexdigest()
    passed = [now - start for now, start in zip(_passed(wired), before, strict=True)]
    assert all(4 * MIB <= each < 6 * MIB for each in passed), passed
    wired.sites.leave_nothing()


@pytest.mark.parametrize(
    ("origin", "machine", "through", "why"),
    [
        ("b2", "a1", "gate-b", f"a1 is not reached straight: {ANOTHER_SERVER}"),
        ("a2", "b1", "group-a", "gate-a is not reached straight: "),
    ],
)
def test_the_history_names_the_way_and_why_there_is_no_better_one(
    wired: Wired, origin: str, machine: str, through: str, why: str
) -> None:
    here = wired.sites.at(origin)
    task = here.submit(*on(machine), "--", "true")
    assert here.run("wait", task).returncode == 0
    *_, way = [step for step in here.status(task)["history"] if step["event"] == "route"]
    assert way["module"] == through
    assert way["text"].startswith(f"through {through}")
    assert why in way["text"]


def test_with_a_second_link_the_first_one_may_break(wired: Wired) -> None:
    wired.network.join(*SECOND_LINK)
    try:
        eventually(lambda: "group-a" in heard_by(wired.sites.at("group-b"), "group-b"))
        wired.network.cut(*LINK)
        eventually(lambda: "gate-a" not in heard_by(wired.sites.at("gate-b"), "gate-b"))
        # Only the primary parent's machines are in what group-b tells its children, so they do not know of this way.
        done = wired.sites.at("group-b").run("run", *on("a1"), "--", "echo", "by the other way")
        assert (done.returncode, done.stdout) == (0, "by the other way\n")
    finally:
        wired.network.cut(*SECOND_LINK)
        wired.network.join(*LINK)
    wired.sites.await_links()
