"""Bytes that a hop refuses to pass: the status of the waiting task names the hop, and what there is too little of.

`phys` submits, `lab` executes, and `chem` between them has no machine, and little of everything else.
"""

import json
from pathlib import Path

import pytest

from tests.live.disks import fill, mounted
from tests.live.small_sites import Sites, bound, described, on
from tests.live.test_bytes_through_hops import MEGABYTE, input_of, submit
from tests.waiting import eventually

__all__ = ["described"]


@pytest.fixture
def described_hop(described: Sites) -> Sites:
    """Take the machine from `chem`, and let `lab` execute two tasks at once."""
    for name in ("uni", "chem"):
        file = described[name].folder / "site.yaml"
        machine = "machine: {isolation: process, slots: 1, attributes: {site: chem}}"
        text = file.read_text().replace(machine, "reach: open")
        file.write_text(text.replace("slots: 1, attributes: {site: lab}", "slots: 2, attributes: {site: lab}"))
    return described


def started(sites: Sites) -> Sites:
    """Start all four, and wait until both ends know of every machine."""
    for site in sites.values():
        site.start()
    eventually(lambda: [sites[name].machines("down") for name in ("phys", "lab")] == [3, 3])
    return sites


def small(folder: Path, content: bytes) -> Path:
    file = folder / "small"
    file.write_bytes(content)
    return file


def test_a_hop_with_all_streams_in_use_is_named(described_hop: Sites, tmp_path: Path) -> None:
    bound(described_hop, "chem", bounds="streams: 1, rate: 1MiB")
    phys = started(described_hop)["phys"]
    # A machine of another site that has delivered nothing has one task.
    assert phys.run("run", *on("lab"), "--", "true").returncode == 0
    first = submit(phys, *on("lab"), "--input", str(input_of(tmp_path, 200 * MEGABYTE)), "--", "true")
    # Another requirement, and so another claim.
    second = submit(phys, *on("lab", "lab"), "--input", str(input_of(tmp_path, 100 * MEGABYTE)), "--", "true")
    refusal = "chem: uni has 1 streams of files open, as many as it may"
    eventually(lambda: refusal in json.dumps(phys.document("status", first, second)))
    assert phys.run("cancel", first, second).returncode == 0


def test_a_hop_whose_disk_is_full_is_named_and_passes_files_when_it_has_room(
    described_hop: Sites, tmp_path: Path
) -> None:
    folder = described_hop["chem"].folder / "state" / "pact" / "chem"
    folder.mkdir(parents=True, exist_ok=True)
    with mounted(folder, "-t", "tmpfs", "-o", "size=200m,mode=700", "tmpfs"):
        sites = started(described_hop)
        phys = sites["phys"]
        # Rows still have room, of what files never use.
        filler = fill(folder, leave_bytes=9 * MEGABYTE + MEGABYTE // 2)
        task = submit(phys, *on("lab"), "--input", str(small(tmp_path, b"few bytes")), "--", "cat", "small")
        refusal = "chem: its disk or its cache has no room for small files"
        eventually(lambda: refusal in json.dumps(phys.document("status", task)))
        filler.unlink()
        assert phys.run("wait", task).returncode == 0, phys.run("status", task).stdout
        assert phys.run("logs", task).stdout == "few bytes"
        assert sites["chem"].end() == 0


def test_small_files_pass_a_hop_without_a_cache(described_hop: Sites, tmp_path: Path) -> None:
    for name in ("uni", "chem"):
        bound(described_hop, name, bounds="cache: 0B")
    phys = started(described_hop)["phys"]
    for content in (b"few bytes", b"other bytes"):
        task = submit(phys, *on("lab"), "--input", str(small(tmp_path, content)), "--", "cat", "small")
        assert phys.run("wait", task).returncode == 0, phys.run("status", task).stdout
        assert phys.run("logs", task).stdout == content.decode()
