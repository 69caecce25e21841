"""Inputs, outputs and logs of tasks whose origin and executor are at two sites: they pass two hops.

`phys` submits, `lab` executes, and the bytes pass `uni` and `chem`, each of which is reached by its own neighbors only.
"""

import json
import os
from pathlib import Path

from tests.live.small_sites import Site, Sites, bound, described, on, started
from tests.waiting import PATIENCE_SECONDS, eventually

__all__ = ["described"]
MEGABYTE = 1 << 20


def moved(site: Site, peer: str) -> int:
    """Return how many bytes a system moved through a module that counts them, as far as they are stored."""
    file = site.folder / "state" / "pact" / site.name / "moved.json"
    return int(json.loads(file.read_text()).get(peer, (0, 0))[1]) if file.exists() else 0


def input_of(folder: Path, size: int) -> Path:
    """Make a file that no module has stored, also not in the folder of an earlier run."""
    path = folder / "large"
    path.write_bytes(os.urandom(size))
    return path


def submit(site: Site, *words: str) -> str:
    done = site.run("submit", "--quiet", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_small_and_large_files_pass_two_hops_both_ways(described: Sites, tmp_path: Path) -> None:
    phys, large = started(described)["phys"], input_of(tmp_path, 20 * MEGABYTE + 5)
    (tmp_path / "small").write_bytes(b"small")
    words = ("--input", str(large), "--input", str(tmp_path / "small"), "--output", "both")
    task = submit(phys, *on("lab"), *words, "--", "sh", "-c", "cat large small > both; echo said")
    assert phys.run("wait", task).returncode == 0, phys.run("status", task).stdout
    assert phys.run("fetch", task, "--into", str(tmp_path / "home")).returncode == 0
    assert (tmp_path / "home" / "both").read_bytes() == large.read_bytes() + b"small"
    assert phys.run("logs", task).stdout == "said\n"
    assert phys.executed_on() == "lab"


def test_a_large_input_of_many_tasks_at_two_executors_crosses_each_link_once(
    described: Sites,
    tmp_path: Path,
) -> None:
    for name in ("uni", "chem", "lab"):
        bound(described, name, bounds="daily: 1TiB")
    sites = started(described)
    phys, large = sites["phys"], input_of(tmp_path, 20 * MEGABYTE)
    words = ("--input", str(large), "--array", "1-12")
    task = submit(phys, *on("chem", "lab"), *words, "--", "sh", "-c", "wc -c < large; sleep 0.3")
    assert phys.run("wait", task).returncode == 0, phys.run("status", task).stdout
    members = phys.members(task)
    assert {member["executed_on"] for member in members} == {"chem", "lab"}
    for name, peer in (("uni", "phys"), ("chem", "uni"), ("lab", "chem")):
        assert 20 * MEGABYTE <= moved(sites[name], peer) < 22 * MEGABYTE, name


def test_hops_without_a_cache_pass_files_on(described: Sites, tmp_path: Path) -> None:
    for name in ("uni", "chem"):
        bound(described, name, bounds="cache: 0B, daily: 1TiB")
    sites = started(described)
    phys, large = sites["phys"], input_of(tmp_path, 20 * MEGABYTE)
    words = ("--input", str(large), "--output", "copy")
    task = submit(phys, *on("lab"), *words, "--", "cp", "large", "copy")
    assert phys.run("wait", task).returncode == 0, phys.run("status", task).stdout
    assert phys.run("fetch", task, "--into", str(tmp_path / "home")).returncode == 0
    assert (tmp_path / "home" / "copy").read_bytes() == large.read_bytes()
    # The same file again, which no hop has stored, goes only as far as the executor's hash of it.
    again = submit(phys, *on("lab"), *words, "--", "cp", "large", "copy")
    assert phys.run("wait", again).returncode == 0
    assert moved(sites["chem"], "uni") < 62 * MEGABYTE


def test_a_hop_that_lets_no_more_bytes_pass_today_is_named_in_the_history(
    described: Sites,
    tmp_path: Path,
) -> None:
    bound(described, "chem", bounds="daily: 1MiB")
    phys, large = started(described)["phys"], input_of(tmp_path, 2 * MEGABYTE)
    task = submit(phys, *on("lab"), "--input", str(large), "--", "true")
    eventually(lambda: "chem: uni may move 1MiB in a day" in json.dumps(phys.document("status", task)))
    assert phys.run("cancel", task).returncode == 0


def test_a_transfer_goes_on_at_a_hop_that_was_killed_in_the_middle(
    described: Sites,
    tmp_path: Path,
) -> None:
    bound(described, "uni", bounds="rate: 20MiB, daily: 640MiB")
    bound(described, "chem", bounds="daily: 640MiB")
    sites = started(described)
    phys, uni, size = sites["phys"], sites["uni"], 100 * MEGABYTE
    task = submit(phys, *on("lab"), "--input", str(input_of(tmp_path, size)), "--", "sh", "-c", "wc -c < large")
    eventually(lambda: moved(uni, "phys") > size // 3)
    assert uni.process is not None
    uni.process.kill()
    uni.process.communicate()
    uni.start()
    assert phys.run("wait", task).returncode == 0, phys.run("status", task).stdout
    assert phys.run("logs", task).stdout == f"{size}\n"
    assert phys.document("status", task)["tasks"][0]["attempt"] == 1
    assert moved(sites["chem"], "uni") < size * 3 // 2


def test_logs_are_followed_through_hops(described: Sites) -> None:
    phys = started(described)["phys"]
    task = submit(phys, *on("lab"), "--", "sh", "-c", "echo begun; exec sleep 600")
    eventually(lambda: phys.run("logs", task).stdout == "begun\n")
    following = phys.begin("logs", "--follow", task)
    assert following.stdout is not None
    assert following.stdout.readline() == "begun\n"
    assert phys.run("cancel", task).returncode == 0
    following.communicate(timeout=PATIENCE_SECONDS)
