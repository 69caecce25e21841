"""Standard input of a task whose origin and executor are at two sites: it passes two hops, and outlives each of them.

`phys` submits, `lab` executes, and the bytes pass `uni` and `chem`.
"""

import os

import pytest

from tests.live.test_stdin import copied
from tests.live.test_two_larger_sites import Sites, described, on, started

__all__ = ["described"]


@pytest.fixture
def sites(described: Sites) -> Sites:
    """Start all four."""
    return started(described)


@pytest.mark.parametrize("name", ["uni", "chem"])
def test_a_hop_killed_in_the_middle_loses_and_repeats_nothing(sites: Sites, name: str) -> None:
    hop, phys = sites[name], sites["phys"]

    def kill() -> None:
        assert hop.process is not None
        hop.process.kill()
        hop.process.communicate()
        hop.start()

    environment = {**os.environ, "MESSIAHS_STATE": str(phys.folder / "state"), "MESSIAHS_MODULE": "phys"}
    copied(on("lab"), environment, interrupt=kill)
    (task,) = phys.document("status")["tasks"]
    assert (task["state"], task["attempt"], task["executed_on"]) == ("finished", 1, "lab")
    assert any(entry["event"] == "route" for entry in task["history"])
