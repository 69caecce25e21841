"""The paper's campus: fifteen modules, policies, and a real job on all machines."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.conftest import Federation, federation
from tests.waiting import eventually


@pytest.fixture(scope="module")
def campus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Share the campus among the tests of this file."""
    yield from federation("campus", tmp_path_factory.mktemp("campus"), module="blays")


def _demo(place: Path, *words: str, cwd: Path | None = None) -> "subprocess.Popen[str]":
    # As the installed program is called, which does not search the folder where it is called.
    command = [sys.executable, "-P", "-m", "messiahs.cli.main", "demo", *words]
    environment = {**os.environ, "TMPDIR": str(place)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=cwd, env=environment, stdout=pipe, stderr=pipe, text=True)


def test_the_demo_checks_every_file_and_leaves_nothing(short_folder: Path, tmp_path: Path) -> None:
    # Others may write in the folder where it is called: nothing is imported from there.
    (tmp_path / "msgspec.py").write_text("raise SystemExit('imported from the folder where it was called')")
    running = _demo(short_folder, "--json", cwd=tmp_path)
    out, err = running.communicate(timeout=300)
    assert running.returncode == 0, err
    document = json.loads(out)
    assert document["problems"] == []
    assert document["tasks"] == sum(document["machines"].values())
    assert len(document["machines"]) >= 5
    assert list(short_folder.iterdir()) == []


def test_an_interrupted_demo_leaves_nothing(short_folder: Path) -> None:
    running = _demo(short_folder)
    eventually(lambda: any(short_folder.glob("*/state/campus/blays.sock")))
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=120)
    assert running.returncode == 130
    assert list(short_folder.iterdir()) == []


def test_every_machine_is_counted_once(campus: Federation) -> None:
    eventually(lambda: campus.vectors("purdue")["up"]["machines"] == 11)
    eventually(lambda: campus.vectors()["down"]["machines"] == 11)


def test_a_plain_task_passes_the_policies_from_every_side(campus: Federation) -> None:
    for module in ("blays", "purdue", "cs", "harbor", "leonardo"):
        done = campus.run("run", "--module", module, "--", "echo", module)
        assert (done.returncode, done.stdout) == (0, f"{module}\n"), done.stderr


def test_a_requirement_reaches_a_machine_three_hops_away(campus: Federation) -> None:
    wanted = '$site eq "ecn" and $owner eq "engineering"'
    done = campus.run("run", "--require", wanted, "--", "echo", "far")
    assert (done.returncode, done.stdout) == (0, "far\n"), done.stderr
    last = campus.document("status")["tasks"][-1]
    assert last["executed_on"] in {"harbor", "quarry"}


def test_attributes_of_a_task_reach_the_policy_of_a_distant_machine(campus: Federation) -> None:
    # The department is asked by its sister, engineering, and applies its rules for siblings.
    far = ("--module", "harbor", "--require", '$owner eq "software"', "--no-wait")
    assert campus.run("run", *far, "--set", "gpus=2", "--", "true").returncode == 0
    refused = campus.run("run", *far, "--set", "gpus=5", "--", "true")
    assert refused.returncode == 125
    assert "not that many GPUs here" in refused.stderr


def test_a_machine_with_two_parents_is_found_through_either(campus: Federation) -> None:
    wanted = '$site eq "xinu" and $slots = 2'
    done = campus.run("run", "--module", "leonardo", "--require", wanted, "--", "true")
    assert done.returncode == 0, done.stderr


def test_the_reasons_of_a_waiting_task_name_every_system_that_was_asked(campus: Federation) -> None:
    far = ("--module", "harbor", "--set", "gpus=9", "--require", '$owner eq "software"')
    task = campus.submit(*far, "--", "true")
    eventually(lambda: bool(campus.status(task)["reasons"]))
    reasons = json.dumps(campus.status(task)["reasons"])
    assert "refused_by_policy" in reasons
    assert "not that many GPUs here" in reasons
    assert campus.run("cancel", task).returncode == 0
