"""Inputs, outputs and logs of tasks whose origin and executor are at two sites: they pass two hops.

`phys` submits, `lab` executes, and the bytes pass `uni` and `chem`, each of which is reached by its own neighbors only.
"""

import random
from pathlib import Path

import pytest

from tests.live.test_two_larger_sites import Sites, described, on, started

__all__ = ["described"]
MEGABYTE = 1 << 20


@pytest.fixture
def sites(described: Sites) -> Sites:
    """Start all four."""
    return started(described)


def test_small_and_large_files_pass_two_hops_both_ways(sites: Sites, tmp_path: Path) -> None:
    large, small = random.Random(7).randbytes(20 * MEGABYTE + 5), b"small"
    (tmp_path / "large").write_bytes(large)
    (tmp_path / "small").write_bytes(small)
    words = ("--input", str(tmp_path / "large"), "--input", str(tmp_path / "small"), "--output", "both")
    phys = sites["phys"]
    done = phys.run("submit", "--quiet", *on("lab"), *words, "--", "sh", "-c", "cat large small > both; echo said")
    task = done.stdout.strip()
    assert phys.run("wait", task).returncode == 0, phys.run("status", task).stdout
    assert phys.run("fetch", task, "--into", str(tmp_path / "home")).returncode == 0
    assert (tmp_path / "home" / "both").read_bytes() == large + small
    assert phys.run("logs", task).stdout == "said\n"
    assert phys.executed_on() == "lab"
